"""Trees of Spark SQL: sqlglot's nodes for what its generator writes as we need it, and templates for the rest.

A tree is a value. It is compared with ==, which heeds the case of names and strings. It never changes once it is
built, so several trees may share a part; the `parent` of a node then means nothing. A SELECT statement renders the
trees of its items and conditions when it is written.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

from recapture.query.generate.values import quoted_name, quoted_text

BOUND = "@@"
"""Beginning of names that no column of a row has: of bound values, elements of APPLY, results of analytic functions."""
_TEXT = "sql"
"""Key in the `meta` of a node that keeps its text."""


class Template(exp.Expression):
    """Spark SQL that is written by hand, with trees in its places. It is rendered as it is: sqlglot rewrites nothing.

    Its text is a string literal, since sqlglot compares other strings in any case.
    """


def template(sql: str, **places: exp.Expr) -> exp.Expr:
    """Return Spark SQL with a tree in each {place}. Any other brace is written twice.

    "length({text})", text=upper(`s`) => length(upper(`s`))
    """
    return Template(this=exp.Literal.string(sql), **places)


def as_it_is(sql: str) -> str:
    """Return SQL as part of a template's text, in which braces are written twice: '{' => '{{'"""
    return sql.replace("{", "{{").replace("}", "}}")


def column(name: str, table: str | None = None) -> exp.Column:
    """Return a column: odd `name => `odd ``name`"""
    qualifier = {} if table is None else {"table": exp.Identifier(this=table, quoted=True)}
    return exp.Column(this=exp.Identifier(this=name, quoted=True), **qualifier)


def string(text: str) -> exp.Literal:
    """Return a text literal: it's => 'it\\'s'"""
    return exp.Literal.string(text)


def bigint(number: int) -> exp.Literal:
    """Return the literal of a bigint that is not negative: 5 => 5L"""
    return exp.Literal(this=f"{number}L", is_string=False)


def shifted(tree: exp.Expr, number: int) -> exp.Paren:
    """Return a bigint plus a number, which may be negative: `x`, -5 => (`x` - 5L)"""
    return operation(exp.Add if number >= 0 else exp.Sub, tree, bigint(abs(number)))


def double(number: float) -> exp.Literal:
    """Return the literal of a double that is not negative: 1.5 => 1.5D"""
    return exp.Literal(this=f"{number!r}D", is_string=False)


def spark_call(function: str, *arguments: exp.Expr) -> exp.Anonymous:
    """Return the call of a Spark function: "upper", `s` => upper(`s`)"""
    return exp.Anonymous(this=function, expressions=list(arguments))


def user_call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """Return the call of a user-defined function: "udf_f", `x` => `udf_f`(`x`)"""
    return spark_call(quoted_name(name), *arguments)


def user_calls(tree: exp.Expr) -> list[exp.Expr]:
    """Return the different calls of user-defined functions in a tree that are in no other call, in order."""
    calls: list[exp.Expr] = []
    for node in tree.walk(prune=_is_user_call):
        if _is_user_call(node) and node not in calls:
            calls.append(node)
    return calls


def _is_user_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).startswith("`")


def replaced(tree: exp.Expr, old: Sequence[exp.Expr], new: Sequence[exp.Expr]) -> exp.Expr:
    """Return a tree with other parts in the places of some: `x` + f(`y`), [f(`y`)], [`z`] => `x` + `z`"""
    if tree in old:
        return new[old.index(tree)]

    def with_others(part: Any) -> Any:
        if isinstance(part, list):
            return [with_others(item) for item in part]
        return replaced(part, old, new) if isinstance(part, exp.Expr) else part

    return type(tree)(**{key: with_others(part) for key, part in tree.args.items()})


def operation(operator: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> exp.Paren:
    """Return a binary operation in parentheses: Add, `x`, 5L => (`x` + 5L)"""
    return exp.Paren(this=operator(this=left, expression=right))


def cast_as(node: exp.Expr, spark_type: str, lenient: bool = False) -> exp.Expr:
    """Return Spark's own CAST, or its TRY_CAST if `lenient`: `x`, "DOUBLE" => CAST(`x` AS DOUBLE)

    It is a template, as sqlglot rewrites some casts for Spark.
    """
    return template(f"{'try_cast' if lenient else 'CAST'}({{value}} AS {spark_type})", value=node)


def case_when(branches: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr) -> exp.Paren:
    """Return a CASE in parentheses: [(c, `x`)], `y` => (CASE WHEN c THEN `x` ELSE `y` END)"""
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Paren(this=exp.Case(ifs=ifs, default=default))


def is_of_row(node: exp.Column) -> bool:
    """Return whether a column is one of the row: not a field of a struct, not a value that `let` bound to a name."""
    return not node.table and not node.name.startswith(BOUND)


def renamed(tree: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
    """Return a tree over columns of the row with other names: upper(`x`), {"x": "y"} => upper(`y`)"""
    copy = tree.copy()
    for node in copy.walk():
        node.meta.pop(_TEXT, None)
        if isinstance(node, exp.Column) and is_of_row(node):
            node.set("this", exp.Identifier(this=names.get(node.name, node.name), quoted=True))
    return copy


def _template_sql(generator: SparkGenerator, node: Template) -> str:
    return node.name.format(**{place: generator.sql(part) for place, part in node.args.items() if place != "this"})


class _Generator(SparkGenerator):
    """sqlglot's generator of Spark SQL, with templates, and with our quotes: control characters are not escaped."""

    TRANSFORMS: ClassVar = {
        **SparkGenerator.TRANSFORMS,
        exp.Literal: lambda self, node: quoted_text(node.name) if node.is_string else node.name,
        Template: _template_sql,
    }

    def sql(self, expression: str | exp.Expr | None, key: str | None = None, comment: bool = True) -> str:
        """Return the text of a node, or of its part `key`; a node of _KEEPING keeps its text."""
        if key or not isinstance(expression, _KEEPING):
            return super().sql(expression, key, comment)
        text = expression.meta_get(_TEXT)
        if text is None:
            text = expression.meta[_TEXT] = super().sql(expression)
        return str(text)


_KEEPING = (exp.Paren, exp.Anonymous, Template)
"""Nodes that keep their text: several windows write the same items, and `once` asks for the length of a text."""
_GENERATOR = _Generator(dialect=Spark(), normalize_functions=False)


def render(tree: exp.Expr) -> str:
    """Return a tree's Spark SQL.

    Add(`x`, upper('a')) => `x` + upper('a')
    """
    try:
        return _GENERATOR.sql(tree)
    except RecursionError:
        # A long chain of operators is a deep tree. After its inner parts have their texts, no part is deep.
        for node in reversed([*tree.find_all(*_KEEPING)]):
            _GENERATOR.sql(node)
        return _GENERATOR.sql(tree)
