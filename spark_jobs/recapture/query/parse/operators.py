"""The operators of expressions, by their nodes in the tree of a query."""

from sqlglot import exp

COMPARISONS = exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE
ARITHMETIC = exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod
BITWISE = exp.BitwiseAnd | exp.BitwiseOr | exp.BitwiseXor | exp.BitwiseNot
SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}
"""Signs in Spark SQL. Division of bigints is div."""
