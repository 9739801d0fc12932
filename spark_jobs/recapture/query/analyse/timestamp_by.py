"""TIMESTAMP BY: the application time of an event, which the policies need before any SQL runs."""

from sqlglot import exp

from recapture.errors import DefinitionError
from recapture.model import AsaType, FirstOf, InputColumn, Instant, MetadataColumn, Shifted, Time
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.relations import From, InputRelation
from recapture.query.generate.values import quoted_name
from recapture.query.parse.names import call_name, identifiers
from recapture.query.parse.source import Source
from recapture.query.parse.window_calls import UNITS
from recapture.time_model import timestamps

_FORMS = (
    "a field, DATEADD(millisecond, field, '1970-01-01T00:00:00Z'), COALESCE of such, CAST(field AS datetime), "
    "EventEnqueuedUtcTime or BlobLastModifiedUtcTime"
)


def time_of(source: Source, input_: InputRelation, types: FieldTypes, read: From, node: exp.Expr) -> Time:
    """The time that an expression after TIMESTAMP BY says. Raises DefinitionError for whatever is not supported."""
    if isinstance(node, exp.Paren):
        return time_of(source, input_, types, read, node.this)
    if isinstance(node, exp.Cast):
        if getattr(node.args["to"].this, "name", "") != "DATETIME":
            raise _refused(source, node)
        return time_of(source, input_, types, read, node.this)
    if isinstance(node, exp.Literal) and node.is_string:
        return _instant(source, node)
    match call_name(node):
        case "COALESCE" if node.expressions:
            return FirstOf(tuple(time_of(source, input_, types, read, each) for each in node.expressions))
        case "DATEADD":
            return _shifted(source, input_, types, read, node)
    column = _column(input_, read, node)
    if column is None:
        raise _refused(source, node)
    if isinstance(column, MetadataColumn):
        if column.type is not AsaType.DATETIME:
            raise _refused(source, node)
        return column
    _want(source, types, column, AsaType.DATETIME, node)
    return InputColumn(column.path, AsaType.DATETIME)


def _shifted(source: Source, input_: InputRelation, types: FieldTypes, read: From, node: exp.Expr) -> Shifted:
    parts = node.expressions
    unit = UNITS.get(parts[0].name.lower()) if len(parts) == 3 else None
    amount = _column(input_, read, parts[1]) if len(parts) == 3 else None
    if unit is None or not isinstance(amount, InputColumn):
        raise source.refuse(
            node, "in TIMESTAMP BY, DATEADD takes a unit from day to microsecond, a field and a time: " + _FORMS
        )
    _want(source, types, amount, AsaType.BIGINT, parts[1])
    return Shifted(unit, InputColumn(amount.path, AsaType.BIGINT), time_of(source, input_, types, read, parts[2]))


def _column(input_: InputRelation, read: From, node: exp.Expr) -> InputColumn | MetadataColumn | None:
    """The column that a node names; the input is not told to read it for the rows."""
    before = dict(input_.columns)
    value = read.field(node) if identifiers(node) else None
    found = (
        None if value is None else next(each for each in input_.columns.values() if quoted_name(each.name) == value.sql)
    )
    input_.columns.clear()
    input_.columns.update(before)
    return found


def _want(source: Source, types: FieldTypes, column: InputColumn, kind: AsaType, where: exp.Expr) -> None:
    if types.by_use([column.path]):
        types.want([column.path], kind, where)
    elif types.of(column.path, where) is not kind:
        told = f"`{column.name}` is declared {column.type}: TIMESTAMP BY takes a {kind} here"
        raise types.disagree([column.path], kind, where) or source.refuse(where, told)


def _instant(source: Source, node: exp.Literal) -> Instant:
    import pyarrow as pa

    found, valid = timestamps.parse(pa.array([node.name]))
    if not valid[0]:
        raise source.refuse(node, f"'{node.name}' is not an ISO time, such as '1970-01-01T00:00:00Z'")
    return Instant(int(found[0]))


def _refused(source: Source, node: exp.Expr) -> DefinitionError:
    return source.refuse(node, f"TIMESTAMP BY takes {_FORMS}")
