"""The operators of expressions, by their nodes in the tree of a query."""

from sqlglot import exp

COMPARISONS = exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE
ARITHMETIC = exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod
BITWISE = exp.BitwiseAnd | exp.BitwiseOr | exp.BitwiseXor | exp.BitwiseNot
ORDERED: dict[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
"""Comparisons that need an order, with their signs."""
