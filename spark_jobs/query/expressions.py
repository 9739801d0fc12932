"""Scalar expressions and conditions of ASAQL as typed Spark SQL, exact or refused.

Spark must run in ANSI mode (its default): as in T-SQL, overflow of bigint arithmetic and division by zero then fail
the run rather than give a silent NULL. A query guards itself with CASE WHEN divisor = 0 THEN NULL ELSE … END.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlglot import exp

from spark_jobs.errors import DefinitionError
from spark_jobs.query.fields import is_system_timestamp
from spark_jobs.query.inference import ARITHMETIC, COMPARISONS
from spark_jobs.query.model import AsaType
from spark_jobs.query.source import Source, only

_LARGEST_BIGINT = 2**63 - 1
_SIGNS: dict[type[exp.Expr], str] = {
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
}
_NUMBERS = (AsaType.BIGINT, AsaType.FLOAT)
_UNORDERED = (AsaType.TEXT, AsaType.BIT)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_AGGREGATES = exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max


@dataclass(frozen=True)
class Value:
    """A scalar in Spark SQL. The type of NULL is None; `text` is what a literal says."""

    sql: str
    type: AsaType | None
    text: str | None = None


@dataclass(frozen=True)
class Scope:
    """What names mean where an expression stands: to an event, or to a group of a window."""

    field: Callable[[exp.Expr], Value | None]
    """A field's value; None for a node that is no field."""
    system_timestamp: Callable[[exp.Expr], Value]
    aggregate: Callable[[exp.Expr], Value]


def quoted_name(name: str) -> str:
    """A name for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def quoted_text(text: str) -> str:
    """A text literal for Spark SQL; the dollar is escaped, because Spark substitutes ${…} in statements."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024") + "'"


@dataclass(frozen=True)
class Expressions:
    """The compiler of expressions in one scope."""

    source: Source
    scope: Scope

    def value(self, node: exp.Expr) -> Value:
        """A scalar's SQL and type; raises DefinitionError for whatever is not supported."""
        if is_system_timestamp(node):
            return self.scope.system_timestamp(node)
        field = self.scope.field(node)
        if field is not None:
            return field
        if isinstance(node, _AGGREGATES):
            return self.scope.aggregate(node)
        if isinstance(node, exp.Paren):
            only(self.source, node, "this")
            return self.value(node.this)
        if isinstance(node, exp.Literal):
            return self._literal(node)
        if isinstance(node, exp.Null):
            return Value("NULL", None)
        if isinstance(node, exp.Neg):
            return self._negation(node)
        if isinstance(node, ARITHMETIC):
            return self._arithmetic(node)
        if isinstance(node, exp.Case):
            return self._case(node)
        raise self._unsupported(node)

    def condition(self, node: exp.Expr) -> str:
        """A condition's SQL, with SQL's three truth values."""
        if isinstance(node, exp.Paren):
            only(self.source, node, "this")
            return self.condition(node.this)
        if isinstance(node, exp.And | exp.Or):
            only(self.source, node, "this", "expression")
            sign = "AND" if isinstance(node, exp.And) else "OR"
            return f"({self.condition(node.this)} {sign} {self.condition(node.expression)})"
        if isinstance(node, exp.Not):
            only(self.source, node, "this")
            return f"(NOT {self.condition(node.this)})"
        if isinstance(node, COMPARISONS):
            only(self.source, node, "this", "expression")
            return self._comparison(_SIGNS[type(node)], self.value(node.this), self.value(node.expression), node)
        if isinstance(node, exp.Between):
            only(self.source, node, "this", "low", "high")
            value, low, high = (self.value(part) for part in (node.this, node.args["low"], node.args["high"]))
            return f"({self._comparison('>=', value, low, node)} AND {self._comparison('<=', value, high, node)})"
        if isinstance(node, exp.In):
            only(self.source, node, "this", "expressions")
            return self._membership(node)
        if isinstance(node, exp.Is):
            return self._null_test(node)
        raise self._not_a_condition(node)

    def _literal(self, node: exp.Literal) -> Value:
        text = str(node.this)
        if node.is_string:
            return Value(quoted_text(text), AsaType.TEXT, text)
        if text.isdecimal() and text.isascii():
            if int(text) > _LARGEST_BIGINT:
                raise self.source.refuse(node, f"{text} does not fit a bigint: write {text}.0 for a float")
            return Value(f"{int(text)}L", AsaType.BIGINT, text)
        try:
            number = float(text) if "_" not in text else math.inf
        except ValueError:
            number = math.inf
        if math.isinf(number):
            raise self.source.refuse(node, f"{text} is not a bigint or a float")
        return Value(f"{number!r}D", AsaType.FLOAT, text)

    def _negation(self, node: exp.Neg) -> Value:
        only(self.source, node, "this")
        value = self._number(node.this)
        return Value(f"(- {value.sql})", value.type)

    def _arithmetic(self, node: exp.Expr) -> Value:
        # `typed` and `safe` say how T-SQL divides, which is what is done here.
        only(self.source, node, "this", "expression", "typed", "safe")
        sides = [self._number(node.this), self._number(node.expression)]
        (left, right), kind = self._alike(sides, node)
        sign = _SIGNS[type(node)]
        if sign == "%" and kind is AsaType.FLOAT:
            raise self.source.refuse(node, "% takes two bigints: declare the fields with CREATE TABLE")
        if sign == "/" and kind is AsaType.BIGINT:
            sign = "div"
        return Value(f"({left} {sign} {right})", kind)

    def _case(self, node: exp.Case) -> Value:
        only(self.source, node, "this", "ifs", "default")
        subject = self.value(node.this) if node.this else None
        conditions, results = [], []
        for branch in node.args["ifs"]:
            only(self.source, branch, "this", "true")
            conditions.append(
                self._comparison("=", subject, self.value(branch.this), branch)
                if subject
                else self.condition(branch.this)
            )
            results.append(self.value(branch.args["true"]))
        default = node.args.get("default")
        sqls, kind = self._alike([*results, self.value(default) if default else Value("NULL", None)], node)
        branches = " ".join(f"WHEN {test} THEN {sql}" for test, sql in zip(conditions, sqls, strict=False))
        return Value(f"(CASE {branches} ELSE {sqls[-1]} END)", kind)

    def _comparison(self, sign: str, left: Value, right: Value, where: exp.Expr) -> str:
        (left_sql, right_sql), _ = self._comparable([left, right], sign, where)
        return f"({left_sql} {sign} {right_sql})"

    def _membership(self, node: exp.In) -> str:
        if not node.expressions:
            raise self.source.refuse(node, "IN takes a list of values, IN (1, 2): no table and no query")
        values = [self.value(part) for part in (node.this, *node.expressions)]
        (subject, *members), _ = self._comparable(values, "=", node)
        return f"({subject} IN ({', '.join(members)}))"

    def _null_test(self, node: exp.Is) -> str:
        only(self.source, node, "this", "expression")
        if not isinstance(node.expression, exp.Null):
            raise self.source.refuse(node, "IS is supported as IS NULL and IS NOT NULL")
        return f"({self.value(node.this).sql} IS NULL)"

    def _comparable(self, values: list[Value], sign: str, where: exp.Expr) -> tuple[list[str], AsaType]:
        if any(value.type is None for value in values):
            raise self.source.refuse(where, "nothing is equal to NULL: write IS NULL or IS NOT NULL")
        sqls, kind = self._alike(values, where)
        if kind in _UNORDERED and sign not in ("=", "<>"):
            raise self.source.refuse(where, f"{kind} is compared with = and <> only, not with {sign}")
        return sqls, kind

    def _number(self, node: exp.Expr) -> Value:
        value = self.value(node)
        if value.type not in _NUMBERS:
            raise self.source.refuse(node, f"arithmetic takes bigint and float, and this is {value.type or 'NULL'}")
        return value

    def _alike(self, values: list[Value], where: exp.Expr) -> tuple[list[str], AsaType]:
        """The values in one type: bigint widens to float, a literal text to datetime, a literal 0 or 1 to bit."""
        kinds = {value.type for value in values if value.type}
        if len(kinds) == 1:
            return [value.sql for value in values], kinds.pop()
        if kinds == set(_NUMBERS):
            return [_as_float(value) for value in values], AsaType.FLOAT
        if kinds == {AsaType.DATETIME, AsaType.TEXT}:
            texts = [value.text for value in values if value.type is AsaType.TEXT]
            if None not in texts:
                return [self._as_datetime(value, where) for value in values], AsaType.DATETIME
        if kinds == {AsaType.BIT, AsaType.BIGINT}:
            digits = [value.text for value in values if value.type is AsaType.BIGINT]
            if set(digits) <= {"0", "1"}:
                return [_as_bit(value) for value in values], AsaType.BIT
        if not kinds:
            raise self.source.refuse(where, "NULL alone has no type here")
        names = " and ".join(sorted(kinds))
        raise self.source.refuse(where, f"{names} do not go together here: declare the types with CREATE TABLE")

    def _as_datetime(self, value: Value, where: exp.Expr) -> str:
        if value.type is not AsaType.TEXT or value.text is None:
            return value.sql
        problem = f"'{value.text}' is not an ISO time of at most 6 decimals, such as '2026-03-01T10:00:00Z'"
        if not _INSTANT.fullmatch(value.text):
            raise self.source.refuse(where, problem)
        try:
            instant = datetime.fromisoformat(value.text)
        except ValueError:
            raise self.source.refuse(where, problem) from None
        aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        microseconds = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        return f"timestamp_micros({microseconds}L)"

    def _not_a_condition(self, node: exp.Expr) -> DefinitionError:
        if isinstance(node, exp.Like | exp.Escape):
            return self.source.refuse(node, "LIKE is not supported: compare with = or IN")
        if isinstance(node, exp.Subquery | exp.Select | exp.Exists):
            return self.source.refuse(node, "a query inside a query is not supported")
        if isinstance(node, exp.Func) and not isinstance(node, exp.Case | _AGGREGATES):
            return self._unsupported(node)
        if isinstance(node, exp.Predicate | exp.Binary) and not isinstance(node, ARITHMETIC | exp.Dot):
            return self._unsupported_sign(node)
        return self.source.refuse(node, f"a condition is expected, such as x > 1, at `{self.source.word(node)}`")

    def _unsupported(self, node: exp.Expr) -> DefinitionError:
        word = self.source.word(node)
        if isinstance(node, exp.Cast):
            return self.source.refuse(node, "a cast is not supported: declare types with CREATE TABLE")
        if isinstance(node, exp.Distinct):
            return self.source.refuse(node, "DISTINCT is not supported")
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            return self.source.refuse(node, "* is not supported: name the columns; COUNT(*) counts events")
        if isinstance(node, exp.Window):
            return self.source.refuse(node, f"{word}(…) OVER (…) is not supported: use the window of GROUP BY")
        if isinstance(node, exp.Subquery | exp.Select):
            return self.source.refuse(node, "a query inside a query is not supported")
        if isinstance(node, exp.Predicate | exp.Connector | exp.Not):
            return self.source.refuse(node, "a condition is not a value: write CASE WHEN … THEN 1 ELSE 0 END")
        if isinstance(node, exp.Anonymous | exp.Dot) or (isinstance(node, exp.Func) and node.meta.get("start")):
            return self.source.refuse(
                node,
                f"the function {word} is not supported: there are COUNT, SUM, AVG, MIN, MAX and System.Timestamp()",
            )
        return self._unsupported_sign(node)

    def _unsupported_sign(self, node: exp.Expr) -> DefinitionError:
        word = self.source.word(node)
        return self.source.refuse(node, f"not supported in an expression: {type(node).__name__} near `{word}`")


def _as_float(value: Value) -> str:
    return f"CAST({value.sql} AS DOUBLE)" if value.type is AsaType.BIGINT else value.sql


def _as_bit(value: Value) -> str:
    return {"0": "false", "1": "true"}[value.text or ""] if value.type is AsaType.BIGINT else value.sql
