"""TIMESTAMP BY: the application time of an event, which the policies need before any row is computed."""

from sqlglot import exp

from recapture import tokens
from recapture.errors import DefinitionError
from recapture.model import (
    AsaType,
    Branch,
    Chosen,
    FirstOf,
    InputColumn,
    Instant,
    MetadataColumn,
    Shifted,
    TimeExpression,
)
from recapture.query.analyse.coercion import ticks_of
from recapture.query.analyse.relations import From
from recapture.query.parse.names import call_name
from recapture.query.parse.source import Source
from recapture.query.parse.window_calls import UNITS

_FORMS = (
    "a field, CAST(field AS datetime), DATEADD(millisecond, field, '1970-01-01T00:00:00Z'), a fixed time, "
    "an input column such as EventEnqueuedUtcTime, or COALESCE or CASE of these"
)
_CASES = "in TIMESTAMP BY, write CASE field WHEN 'value' THEN time … ELSE time END, or COALESCE(time, time)"


def time_of(from_clause: From, node: exp.Expr) -> TimeExpression:
    """Return the time that an expression after TIMESTAMP BY stands for, over the input that `from_clause` names.

    COALESCE(a, DATEADD(second, b, '1970-01-01')) => FirstOf(a, Shifted(10_000_000, b, Instant(1970-01-01)))

    Raise DefinitionError for expressions that are not supported.
    """
    if isinstance(node, exp.Paren):
        return time_of(from_clause, node.this)
    if isinstance(node, exp.Cast):
        if getattr(node.args["to"].this, "name", "") != "DATETIME":
            raise _unsupported(from_clause.source, node)
        return time_of(from_clause, node.this)
    if isinstance(node, exp.Case):
        return _case(from_clause, node)
    if node.is_string:
        return _instant(from_clause.source, node)
    match call_name(node):
        case "COALESCE" if node.expressions:
            return FirstOf(tuple(time_of(from_clause, argument) for argument in node.expressions))
        case "DATEADD":
            return _shifted(from_clause, node)
    column = from_clause.event_column(node)
    if column is None:
        raise _unsupported(from_clause.source, node)
    if isinstance(column, MetadataColumn):
        if column.type is not AsaType.DATETIME:
            raise _unsupported(from_clause.source, node)
        return column
    _require(from_clause, column, AsaType.DATETIME, node)
    return InputColumn(column.path, AsaType.DATETIME)


def _shifted(from_clause: From, node: exp.Expr) -> Shifted:
    parts = node.expressions
    unit = UNITS.get(parts[0].name.lower()) if len(parts) == 3 else None
    amount = from_clause.event_column(parts[1]) if len(parts) == 3 else None
    if unit is None or not isinstance(amount, InputColumn):
        message = f"in TIMESTAMP BY, DATEADD takes a unit from day to microsecond, a field and a time: {_FORMS}"
        raise from_clause.source.error(node, message)
    _require(from_clause, amount, AsaType.BIGINT, parts[1])
    return Shifted(unit, InputColumn(amount.path, AsaType.BIGINT), time_of(from_clause, parts[2]))


def _case(from_clause: From, node: exp.Case) -> TimeExpression:
    """Return the time that a CASE chooses, by the texts of fields or by the first time that is not NULL.

    CASE k WHEN 'A' THEN a ELSE b END         => Chosen((Branch(k, "A", a),), b)
    CASE WHEN a IS NOT NULL THEN a ELSE b END => FirstOf((a, b))
    """
    default = node.args.get("default")
    other = None if default is None or isinstance(default.unnest(), exp.Null) else time_of(from_clause, default)
    whens = [(when.this.unnest(), when.args["true"]) for when in node.args["ifs"]]
    if node.this is not None or not all(isinstance(condition, exp.Not) for condition, _ in whens):
        return Chosen(tuple(_branch(from_clause, node.this, *when) for when in whens), other)
    times = [_present(from_clause, *when) for when in whens]
    return FirstOf((*times, *([other] if other else [])))


def _present(from_clause: From, condition: exp.Expr, node: exp.Expr) -> TimeExpression:
    """Return the time of a WHEN that says that it is not NULL: a IS NOT NULL, a => a"""
    test = condition.this
    is_null = isinstance(test, exp.Is) and isinstance(test.expression, exp.Null)
    column = from_clause.event_column(test.this.unnest()) if is_null else None
    time = time_of(from_clause, node)
    decisive = time.amount if isinstance(time, Shifted) and isinstance(time.base, Instant) else time
    if not isinstance(decisive, InputColumn | MetadataColumn) or column is None or column.name != decisive.name:
        raise from_clause.source.error(condition, _CASES)
    return time


def _branch(from_clause: From, operand: exp.Expr | None, condition: exp.Expr, time: exp.Expr) -> Branch:
    sides = (operand, condition) if operand is not None else (condition.this, condition.expression)
    is_equality = operand is not None or isinstance(condition, exp.EQ)
    column = from_clause.event_column(sides[0]) if is_equality else None
    if not isinstance(column, InputColumn) or not sides[1].is_string:
        raise from_clause.source.error(condition, _CASES)
    _require(from_clause, column, AsaType.STRING, sides[0])
    is_declared = from_clause.types.is_declared(from_clause.input_field(column))
    field = InputColumn(column.path, AsaType.STRING, is_declared)
    value = sides[1].name if is_declared else tokens.of_string(sides[1].name)
    return Branch(field, value, time_of(from_clause, time))


def _require(from_clause: From, column: InputColumn, type_: AsaType, where: exp.Expr) -> None:
    """Let a field be of a type; raises DefinitionError if it is of another."""
    field, types = from_clause.input_field(column), from_clause.types
    if types.are_undecided([field]):
        types.decide([field], type_)
    elif types.of(field, where) is not type_:
        message = f"`{column.name}` is declared {column.type}: TIMESTAMP BY takes a {type_} here"
        raise types.disagreement([field], type_, where) or from_clause.source.error(where, message)


def _instant(source: Source, node: exp.Expr) -> Instant:
    ticks = ticks_of(node.name)
    if ticks is None:
        raise source.error(node, f"'{node.name}' is not an ISO time, such as '1970-01-01T00:00:00Z'")
    return Instant(ticks)


def _unsupported(source: Source, node: exp.Expr) -> DefinitionError:
    return source.error(node, f"TIMESTAMP BY takes {_FORMS}")
