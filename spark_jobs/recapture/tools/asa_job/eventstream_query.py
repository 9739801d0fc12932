"""Write an operator of a Fabric eventstream as a SELECT.

Eventstreams run in the runtime of Stream Analytics ("Time management (Azure Stream Analytics)"). The operators and
their properties are those of "Topology - Get Eventstream Topology" in the Fabric REST API.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AliasChoices, BeforeValidator, Field

from recapture.tools.asa_job.documents import JobPart, parse_part

WINDOW_END = "Window_End_Time"
"""Column that a Group by operator adds to its rows."""
_COMPARISONS = {
    "equals": "=",
    "notequals": "<>",
    "greaterthan": ">",
    "greaterthanorequals": ">=",
    "lessthan": "<",
    "lessthanorequals": "<=",
}
_PATTERNS = {
    "contains": ("LIKE", "%{}%"),
    "doesnotcontain": ("NOT LIKE", "%{}%"),
    "startswith": ("LIKE", "{}%"),
    "doesnotstartwith": ("NOT LIKE", "{}%"),
    "endswith": ("LIKE", "%{}"),
    "doesnotendwith": ("NOT LIKE", "%{}"),
}
_WITHOUT_VALUE = {
    "isempty": "{0} = ''",
    "isnull": "{0} IS NULL",
    "isnotnull": "{0} IS NOT NULL",
    "isnotnullorempty": "{0} IS NOT NULL AND {0} <> ''",
}
_AGGREGATES = {
    "average": "AVG",
    "count": "COUNT",
    "maximum": "MAX",
    "minimum": "MIN",
    "standarddeviation": "STDEV",
    "standarddeviationpopulation": "STDEVP",
    "sum": "SUM",
    "variance": "VAR",
    "variancepopulation": "VARP",
}
_PERCENTILES = {"percentilecontinuous": "PERCENTILE_CONT", "percentilediscrete": "PERCENTILE_DISC"}
_UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "month", "year")
_WITH_UNIT = ("dateadd", "datediff", "datename", "datepart")
"""Functions whose first argument is a unit of time, which has no quotation marks."""
_BITS = {"1": "1", "true": "1", "0": "0", "false": "0"}
TYPES = ("bigint", "float", "nvarchar(max)", "datetime", "bit")
"""Types that CAST converts to, as both languages write them."""
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class NotExpressibleError(Exception):
    """Part of an operator that a query cannot express; the message says which and why."""


def _segments(listed: Any) -> Any:
    """Return the segments of a path: the documents write each as a name, or as an object {"field": name}."""
    if isinstance(listed, list):
        return [segment.get("field", "") if isinstance(segment, dict) else segment for segment in listed]
    return listed


class Column(JobPart):
    """Reference to a column, or to a field in it."""

    column_name: str
    column_path_segments: Annotated[tuple[str, ...], BeforeValidator(_segments)] = ()
    column_path: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of the column and of the fields in it."""
        return (self.column_name, *(self.column_path_segments or self.column_path))

    @property
    def sql(self) -> str:
        """Expression for the value."""
        return ".".join(map(quoted, self.steps))


class _Duration(JobPart):
    value: int
    unit: str

    @property
    def sql(self) -> str:
        """Unit and size, as windows take them. Raise NotExpressibleError if the unit has no fixed length."""
        unit = self.unit.lower()
        if unit == "week":
            return f"day, {7 * self.value}"
        if unit not in _UNITS[:6]:
            raise NotExpressibleError(f"its duration is in the unit {_word(self.unit)}")
        return f"{unit}, {self.value}"


class _Condition(JobPart):
    column: Column
    operator_type: str = Field(default="", validation_alias=AliasChoices("operatortype", "operator"))
    value: Any = None


class _Filter(JobPart):
    conditions: tuple[_Condition, ...]


class _Aggregation(JobPart):
    aggregation_function: str = Field(
        default="", validation_alias=AliasChoices("aggregationfunction", "aggregatefunction")
    )
    arguments: tuple[Any, ...] = ()
    column: Column
    alias: str | None = None
    partition_by: tuple[Column, ...] = ()
    duration: _Duration | None = None


class _Aggregate(JobPart):
    aggregations: tuple[_Aggregation, ...]


class _WindowProperties(JobPart):
    duration: _Duration | None = None
    offset: _Duration | None = None
    hop_size: _Duration | None = None
    timeout: _Duration | None = None
    max_duration: _Duration | None = None
    partition_by: Column | None = None


class _Window(JobPart):
    type: str
    properties: _WindowProperties = _WindowProperties()


class _GroupBy(JobPart):
    aggregations: tuple[_Aggregation, ...]
    group_by: tuple[Column, ...]
    window: _Window


class _Operation(JobPart):
    type: str
    alias: str | None = None
    properties: dict[str, Any] = Field(default_factory=dict)


class _ManageFields(JobPart):
    columns: tuple[_Operation, ...]


class _OneColumn(JobPart):
    column: Column
    target_data_type: str = ""


class _Call(JobPart):
    function_name: str
    arguments: tuple[Any, ...] = ()


class _Literal(JobPart):
    data_type: str = "Nvarchar(max)"
    value: Any = None


@dataclass(frozen=True)
class Operator:
    """Operator of an eventstream."""

    type: str
    properties: Any
    inputs: Sequence[str]
    """Quoted names of the nodes that it reads."""
    where: str
    columns: Sequence[str] = ()
    """Columns of what it reads, if they are known."""


def select(operator: Operator) -> str:
    """Return the SELECT of an operator. Raise NotExpressibleError if there is none that surely has the same rows."""
    write = _OPERATORS.get(operator.type.lower())
    if write is None:
        raise NotExpressibleError(_REASONS.get(operator.type.lower(), "an operator of this type is not supported"))
    return write(operator)


def computed_columns(properties: Any, where: str) -> list[str]:
    """Return the columns that an Aggregate operator adds to those of its input."""
    return [quoted(_alias(aggregation)) for aggregation in parse_part(_Aggregate, properties, where).aggregations]


def conditions_of(properties: Any, where: str) -> int:
    """Return the number of conditions of a Filter operator."""
    return len(parse_part(_Filter, properties, where).conditions)


def quoted(name: str) -> str:
    """Return a name in brackets. Raise NotExpressibleError if it cannot be in brackets."""
    if not name or re.search(r"[\[\]\n\r]", name):
        raise NotExpressibleError(f"the name {name!a} cannot be written in a query")
    return f"[{name}]"


def _filter(operator: Operator) -> str:
    conditions = parse_part(_Filter, operator.properties, operator.where).conditions
    where = " AND ".join(_condition(condition, operator.where) for condition in conditions)
    return f"SELECT * FROM {_only_input(operator)}{f' WHERE {where}' if where else ''}"


def _condition(condition: _Condition, where: str) -> str:
    kind, column = condition.operator_type.lower(), condition.column.sql
    if kind in _WITHOUT_VALUE:
        return _WITHOUT_VALUE[kind].format(column)
    if kind in _COMPARISONS:
        return f"{column} {_COMPARISONS[kind]} {_expression(condition.value, where)}"
    if kind in _PATTERNS:
        word, pattern = _PATTERNS[kind]
        text = _text(parse_part(_Literal, condition.value, where).value)
        escaped = re.sub(r"[%_\[]", r"[\g<0>]", text)
        return f"{column} {word} {_string(pattern.format(escaped))}"
    raise NotExpressibleError(f"it has a condition {_word(condition.operator_type)}")


def _union(operator: Operator) -> str:
    columns = ", ".join(operator.columns) or "*"
    return " UNION ".join(f"SELECT {columns} FROM {name}" for name in operator.inputs)


def _manage_fields(operator: Operator) -> str:
    operations = parse_part(_ManageFields, operator.properties, operator.where).columns
    columns = [_operation(operation, operator.where) for operation in operations]
    return f"SELECT {', '.join(columns)} FROM {_only_input(operator)}"


def _operation(operation: _Operation, where: str) -> str:
    match operation.type.lower():
        case "rename":
            column = parse_part(_OneColumn, operation.properties, where).column
            return _named(column.sql, operation.alias or column.steps[-1])
        case "cast":
            cast = parse_part(_OneColumn, operation.properties, where)
            type_ = cast.target_data_type.lower()
            if type_ not in TYPES:
                raise NotExpressibleError(f"it casts to {_word(cast.target_data_type)}")
            return _named(f"CAST({cast.column.sql} AS {type_})", operation.alias or cast.column.steps[-1])
        case "functioncall":
            if operation.alias is None:
                raise NotExpressibleError("it has a function call without an alias")
            return _named(_call(operation.properties, where), operation.alias)
    raise NotExpressibleError(f"it has an operation {_word(operation.type)}")


def _call(properties: Any, where: str) -> str:
    call = parse_part(_Call, properties, where)
    if not _NAME.fullmatch(call.function_name):
        raise NotExpressibleError("it calls a function whose name is not a word")
    arguments = [_expression(argument, where) for argument in call.arguments]
    if call.function_name.lower() in _WITH_UNIT and arguments:
        unit = arguments[0].strip("'").lower()
        if unit not in _UNITS:
            raise NotExpressibleError(f"it calls {call.function_name} with an unknown unit of time")
        arguments[0] = unit
    return f"{call.function_name.upper()}({', '.join(arguments)})"


def _aggregate(operator: Operator) -> str:
    aggregations = parse_part(_Aggregate, operator.properties, operator.where).aggregations
    columns = ["*"]
    for aggregation in aggregations:
        if aggregation.duration is None:
            raise NotExpressibleError("it has an aggregation without a duration")
        function = _AGGREGATES.get(aggregation.aggregation_function.lower())
        if function not in ("AVG", "COUNT", "MAX", "MIN", "SUM"):
            raise NotExpressibleError(f"{_word(aggregation.aggregation_function)} takes no duration")
        keys = ", ".join(column.sql for column in aggregation.partition_by)
        over = f"{f'PARTITION BY {keys} ' if keys else ''}LIMIT DURATION({aggregation.duration.sql})"
        columns.append(_named(f"{function}({aggregation.column.sql}) OVER ({over})", _alias(aggregation)))
    return f"SELECT {', '.join(columns)} FROM {_only_input(operator)}"


def _group_by(operator: Operator) -> str:
    read = parse_part(_GroupBy, operator.properties, operator.where)
    keys = [column.sql for column in read.group_by]
    columns = [_named(column.sql, column.steps[-1]) for column in read.group_by]
    columns += [
        _named(_aggregation(aggregation, operator.where), _alias(aggregation)) for aggregation in read.aggregations
    ]
    columns.append(_named("System.Timestamp()", WINDOW_END))
    return (
        f"SELECT {', '.join(columns)} FROM {_only_input(operator)} GROUP BY {', '.join([*keys, _window(read.window)])}"
    )


def _aggregation(aggregation: _Aggregation, where: str) -> str:
    kind, column = aggregation.aggregation_function.lower(), aggregation.column.sql
    if kind in _AGGREGATES:
        return f"{_AGGREGATES[kind]}({column})"
    if kind in _PERCENTILES and len(aggregation.arguments) == 1:
        return f"{_PERCENTILES[kind]}({_expression(aggregation.arguments[0], where)}) OVER (ORDER BY {column})"
    raise NotExpressibleError(f"it has an aggregation {_word(aggregation.aggregation_function)}")


def _alias(aggregation: _Aggregation) -> str:
    if aggregation.alias is None:
        raise NotExpressibleError("it has an aggregation without an alias")
    return aggregation.alias


def _window(window: _Window) -> str:
    """Return the window of GROUP BY. Raise NotExpressibleError if its type or a duration is missing."""
    read = window.properties
    offset = f", Offset({read.offset.sql})" if read.offset and read.offset.value else ""
    match window.type.lower(), read:
        case "tumbling", _WindowProperties(duration=_Duration() as size):
            return f"TumblingWindow(Duration({size.sql}){offset})"
        case "hopping", _WindowProperties(duration=_Duration() as size, hop_size=_Duration() as hop):
            return f"HoppingWindow(Duration({size.sql}), Hop({hop.sql}){offset})"
        case "sliding", _WindowProperties(duration=_Duration() as size):
            return f"SlidingWindow(Duration({size.sql}))"
        case "session", _WindowProperties(timeout=_Duration() as timeout, max_duration=_Duration() as longest):
            over = f" OVER (PARTITION BY {read.partition_by.sql})" if read.partition_by else ""
            return f"SessionWindow(Timeout({timeout.sql}), MaxDuration({longest.sql})){over}"
        case "snapshot", _:
            return "System.Timestamp()"
    raise NotExpressibleError(f"it has a window {_word(window.type)} that is not complete")


def _expression(value: Any, where: str) -> str:
    """Return a column, a literal or a call as an expression; the documents also write literals as JSON values."""
    if not isinstance(value, dict):
        return _string(value) if isinstance(value, str) else _number(value)
    keys = {key.lower() for key in value}
    if "columnname" in keys:
        return parse_part(Column, value, where).sql
    if "functionname" in keys:
        return _call(value, where)
    literal = parse_part(_Literal, value, where)
    match literal.data_type.lower():
        case "nvarchar(max)":
            return _string(_text(literal.value))
        case "bigint" | "float":
            return _number(literal.value)
        case "bit" if str(literal.value).lower() in _BITS:
            return _BITS[str(literal.value).lower()]
        case "datetime":
            return f"CAST({_string(_text(literal.value))} AS datetime)"
    raise NotExpressibleError(f"it has a literal of the type {_word(literal.data_type)} that cannot be read")


def _text(value: Any) -> str:
    """Return the value of a literal as a string. Raise NotExpressibleError if it has none."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise NotExpressibleError("it has a literal whose value is not a string")
    return str(value)


def _number(value: Any) -> str:
    if isinstance(value, bool) or not _NUMBER.fullmatch(str(value)):
        raise NotExpressibleError("it has a literal that is not a number")
    return str(value)


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _named(expression: str, name: str) -> str:
    column = quoted(name)
    return column if expression == column else f"{expression} AS {column}"


def _only_input(operator: Operator) -> str:
    if len(operator.inputs) != 1:
        raise NotExpressibleError(f"it reads {len(operator.inputs)} streams instead of one")
    return operator.inputs[0]


def _word(text: str) -> str:
    """Return a word of a definition for a message; anything else may be a secret."""
    return text if re.fullmatch(r"[A-Za-z]{1,40}(\(max\))?", text) else "of an unknown name"


_OPERATORS: Mapping[str, Callable[[Operator], str]] = {
    "filter": _filter,
    "union": _union,
    "managefields": _manage_fields,
    "aggregate": _aggregate,
    "groupby": _group_by,
}
_REASONS = {
    "join": "the definition does not say which side may be later, or what the columns are called",
    "expand": "the definition does not say what the columns of the elements are called",
}
