"""Scalar expressions in Spark SQL: a table with the SQL of each operation.

Spark must run in ANSI mode, which the session of a run sets: an overflow, a division by zero or an impossible CAST then
stops the run instead of giving NULL.
"""

import re
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from recapture.model import TYPES, AsaType
from recapture.query.lower.spark_text import (
    let,
    named_struct,
    once,
    python_call,
    quoted_name,
    quoted_text,
    unmarked,
)
from recapture.query.parse.date_parts import TICKS
from recapture.query.plan.expressions import Constant, Expr, walk
from recapture.query.plan.operations import Op
from recapture.time_model.ticks import LARGEST, TICKS_PER_MILLISECOND, TICKS_PER_SECOND, UNIX_EPOCH

_Writer = Callable[[Expr, Sequence[str]], str]
"""Writes an expression whose arguments are written already."""

_DAY = TICKS["day"]
_DAYS_TO_1970 = UNIX_EPOCH // _DAY
_LARGEST_INT = 2**31 - 1
_MONTHS = {"quarter": 3, "month": 1}
_CYCLES = {"hour": 24, "minute": 60, "second": 60, "millisecond": 1_000, "microsecond": 1_000_000}

_FLOAT = r"[ \t]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t]*"
_BIT = r"(?i)[ \t]*(?:true|false|1|0)[ \t]*"
_ISO = (
    r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[ T][0-9]{2}(?::[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_COMPLETIONS = (
    (r"^(.{10})\z", "$1T00"),
    (r"^(.{13})(?=[Z+-]|\z)", "$1:00"),
    (r"^(.{16})(?=[Z+-]|\z)", "$1:00"),
    (r"^(.{19}[0-9.]*)\z", "$1Z"),
)
"""Regular expressions of times that lack seconds or a zone, and the replacements that add them."""
_COMPLETE = r"^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?Z\z"
"""Regular expression of the usual form, which needs no completion."""
_IN_A_PATH = re.compile(r"(?!\s)[^'?*\[\]\\]+")
"""Regular expression of the names that may stand in a JSON path of Spark."""
_POSITION = r"^\[-?[0-9][^,\[\]]*(,-?[0-9][^,\[\]]*){1,2}\]$"
"""Regular expression of the coordinates of a point."""


def render(expression: Expr) -> str:
    """Return the Spark SQL of an expression: add(x, upper('a')) => (`x` + upper('a'))"""
    return unmarked(marked(expression))


def marked(expression: Expr) -> str:
    """Return the Spark SQL of an expression, in which the calls of Python functions are marked for `let`."""
    try:
        return _sql(expression)
    except RecursionError:
        # A long chain of operators is deep. After its inner parts have their texts, no part is deep.
        for part in reversed([*walk(expression)]):
            _sql(part)
        return _sql(expression)


_TEXTS: "WeakKeyDictionary[Expr, str]" = WeakKeyDictionary()
"""Texts of expressions, since several windows write the same ones."""


def _sql(expression: Expr) -> str:
    text = _TEXTS.get(expression)
    if text is None:
        written = [_sql(argument) for argument in expression.arguments]
        text = _TEXTS[expression] = _SPARK[expression.op](expression, written)
    return text


def _function(name: str) -> _Writer:
    return lambda _, arguments: f"{name}({', '.join(arguments)})"


def _infix(sign: str) -> _Writer:
    return lambda _, sides: f"({sides[0]} {sign} {sides[1]})"


def _template(sql: str) -> _Writer:
    """Return the writer of a template: {0} is an argument, {c[0]} a constant, {q[0]} a constant in quotes."""

    def write(expression: Expr, arguments: Sequence[str]) -> str:
        quoted = [quoted_text(constant) for constant in expression.constants if isinstance(constant, str)]
        return sql.format(*arguments, c=expression.constants, q=quoted)

    return write


def _once(name: str, sql: str) -> _Writer:
    """Return the writer of a template whose first argument is computed once a row, under a name."""

    def write(_: Expr, arguments: Sequence[str]) -> str:
        first, *others = arguments
        return once(first, name, lambda it: sql.format(it, *others))

    return write


_within_calendar = _once("ticks", f"CASE WHEN {{0}} < 0L OR {{0}} > {LARGEST}L THEN {{1}} ELSE {{0}} END")


def _each(sql: str, between: str) -> _Writer:
    """Return the writer of a template that is repeated for each argument."""
    return lambda _, arguments: between.join(sql.format(argument) for argument in arguments)


def _column(expression: Expr, _: Sequence[str]) -> str:
    name, qualifier = expression.constants
    return f"{quoted_name(str(qualifier))}.{quoted_name(str(name))}" if qualifier else quoted_name(str(name))


def _bigint(expression: Expr, _: Sequence[str]) -> str:
    [number] = expression.constants
    return f"(-{2**63 - 1}L - 1L)" if number == -(2**63) else f"{number}L"


def _negated(_: Expr, arguments: Sequence[str]) -> str:
    return f"(-{' ' if arguments[0].startswith('-') else ''}{arguments[0]})"


def _in(_: Expr, arguments: Sequence[str]) -> str:
    return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"


def _case(_: Expr, arguments: Sequence[str]) -> str:
    *branches, default = arguments
    whens = zip(branches[::2], branches[1::2], strict=True)
    return f"(CASE {' '.join(f'WHEN {condition} THEN {value}' for condition, value in whens)} ELSE {default} END)"


def _struct(expression: Expr, arguments: Sequence[str]) -> str:
    [names] = expression.constants
    assert isinstance(names, tuple)
    return named_struct(dict(zip(names, arguments, strict=True)))


def _result(_: Expr, arguments: Sequence[str]) -> str:
    """Write the result of a call of a Python function.

    Spark computes a Python function for all rows before anything else of a SELECT.

    So a call gives a struct of a value and an error, and the error is raised only where the value is used: a CASE
    guards a call, as it guards a CAST.
    """
    value_or_error = "CASE WHEN {0}.error IS NOT NULL THEN raise_error({0}.error) ELSE {0}.value END"
    return let(arguments[0], "result", value_or_error.format)


def _cast(expression: Expr, arguments: Sequence[str]) -> str:
    to, lenient = expression.constants
    return cast(arguments[0], TYPES[AsaType(str(to))].spark, lenient)


def cast(value: str, spark_type: str, lenient: Constant = False) -> str:
    """Return Spark's own CAST, or its TRY_CAST if `lenient`: `x`, "DOUBLE" => CAST(`x` AS DOUBLE)"""
    return f"{'try_cast' if lenient else 'CAST'}({value} AS {spark_type})"


def _checked(text: str, pattern: str, complaint: str) -> str:
    """Return the text, after a complaint if it does not match: Spark cannot cast it then, and its error shows both."""
    return _replaced(text, rf"^(?!{pattern}\z)", complaint)


def _replaced(text: str, pattern: str, replacement: str) -> str:
    return f"regexp_replace({text}, {quoted_text(pattern)}, {quoted_text(replacement)})"


def _finite(_: Expr, arguments: Sequence[str]) -> str:
    """Write FINITE; NaN is the largest number to Spark."""
    number, excess = arguments
    finite = "(CASE WHEN abs({0}) > 1.7976931348623157E308D THEN {1} ELSE {0} END)"
    return once(number, "number", lambda it: finite.format(it, excess))


def _string_to_float(expression: Expr, arguments: Sequence[str]) -> str:
    text, excess = arguments
    number = cast(_checked(text, _FLOAT, "not a float: "), "DOUBLE", expression.constants[0])
    return _finite(expression, [number, excess])


def _string_to_bit(expression: Expr, arguments: Sequence[str]) -> str:
    return cast(_checked(arguments[0], _BIT, "not a bit: "), "BOOLEAN", expression.constants[0])


def _string_to_datetime(expression: Expr, arguments: Sequence[str]) -> str:
    """Write the ticks of an ISO text: its microseconds as Spark reads them, and the seventh decimal."""
    text, outside = arguments

    def ticks(it: str) -> str:
        completed = _checked(it, _ISO, "not an ISO time: ")
        for short, long in _COMPLETIONS:
            completed = _replaced(completed, short, long)
        full = f"CASE WHEN {it} RLIKE {quoted_text(_COMPLETE)} THEN {it} ELSE {completed} END"
        return (
            f"unix_micros({cast(full, 'TIMESTAMP', expression.constants[0])}) * 10L + {UNIX_EPOCH}L"
            f" + CASE WHEN length({it}) > 26 THEN"
            f" CAST(concat('0', regexp_extract({it}, '[.][0-9]{{6}}([0-9])', 1)) AS BIGINT) ELSE 0L END"
        )

    return _within_calendar(expression, [once(text, "text", ticks), outside])


def _json_if(proof: str) -> _Writer:
    """Return the writer of a text itself, if the Spark function `proof` gives a value for it."""
    return _once("json", f"CASE WHEN {proof}({{0}}) IS NOT NULL THEN {{0}} WHEN {{0}} IS NOT NULL THEN {{1}} END")


def _datetime_to_string(_: Expr, arguments: Sequence[str]) -> str:
    clock = [(TICKS_PER_SECOND * 3600, 24), (TICKS_PER_SECOND * 60, 60), (TICKS_PER_SECOND, 60)]

    def iso(ticks: str) -> str:
        time = ", ':', ".join(f"lpad(CAST({ticks} div {unit}L % {count}L AS STRING), 2, '0')" for unit, count in clock)
        decimals = f"lpad(CAST({ticks} % {TICKS_PER_SECOND}L AS STRING), 7, '0')"
        return f"concat({cast(_date_of(ticks), 'STRING')}, 'T', {time}, '.', {decimals}, 'Z')"

    return once(arguments[0], "ticks", iso)


def _float_to_string(_: Expr, arguments: Sequence[str]) -> str:
    def plain(number: str) -> str:
        java = cast(number, "STRING")
        plain = _replaced(f"CAST(CAST({java} AS DECIMAL(38, 22)) AS STRING)", "[.]?0+$", "")
        signed = _replaced(_replaced(java, "[.]0E", "E"), "E([0-9])", "E+$1")
        return (
            f"CASE WHEN abs({number}) >= 1E15D OR (abs({number}) < 1E-5D AND {number} <> 0D)"
            f" THEN {_replaced(signed, '([+-])([0-9])$', '$10$2')} ELSE {plain} END"
        )

    return once(arguments[0], "number", plain)


def _date_of(ticks: str) -> str:
    """Return the date of a time, as a Spark DATE."""
    return f"date_from_unix_date(CAST({ticks} div {_DAY}L - {_DAYS_TO_1970}L AS INT))"


def _days(date: str) -> str:
    """Return the number of days from the calendar's start to a Spark DATE."""
    return f"(CAST(unix_date({date}) AS BIGINT) + {_DAYS_TO_1970}L)"


def _weekday(ticks: str) -> str:
    """Return the number of the weekday, 0 for Sunday."""
    return f"({ticks} div {_DAY}L + 1L) % 7L"


def _date_part(expression: Expr, arguments: Sequence[str]) -> str:
    [part], [ticks] = expression.constants, arguments
    match part:
        case "weekday":
            return f"({_weekday(ticks)} + 1L)"
        case "week":
            week = "((dayofyear({date}) + 5L - {weekday}) div 7L + 1L)"
            return once(ticks, "ticks", lambda it: week.format(date=_date_of(it), weekday=_weekday(it)))
        case "year" | "quarter" | "month" | "day" | "dayofyear":
            return cast(f"{part}({_date_of(ticks)})", "BIGINT")
    return f"({ticks} div {TICKS[str(part)]}L % {_CYCLES[str(part)]}L)"


def _date_boundaries(expression: Expr, arguments: Sequence[str]) -> str:
    """Write the number of boundaries up to a time: "hour", `at` => (`at` div 36000000000L)"""
    [part], [ticks] = expression.constants, arguments
    match part:
        case "quarter" | "month":
            months = f"(year({{0}}) * {12 // _MONTHS[str(part)]}L + {part}({{0}}))"
            return once(ticks, "ticks", lambda it: months.format(_date_of(it)))
        case "week":
            return f"(({ticks} div {_DAY}L + 1L) div 7L)"
    return f"({ticks} div {TICKS[str(part)]}L)"


def _name_of(expression: Expr, arguments: Sequence[str]) -> str:
    [names] = expression.constants
    assert isinstance(names, tuple)
    return f"elt({', '.join([cast(arguments[0], 'INT'), *map(quoted_text, names)])})"


def _datetime_from_parts(_: Expr, arguments: Sequence[str]) -> str:
    *parts, refused = arguments
    limits = ((1, 9999), *((0, most) for most in (23, 59, 59, 999)))
    limited = zip([parts[0], *parts[3:]], limits, strict=True)
    outside = " OR ".join(f"{part} < {least}L OR {part} > {most}L" for part, (least, most) in limited)
    units = ("hour", "minute", "second", "millisecond")
    time = " + ".join(f"{part} * {TICKS[unit]}L" for part, unit in zip(parts[3:], units, strict=True))
    date = f"make_date({', '.join(cast(part, 'INT') for part in parts[:3])})"
    return f"(CASE WHEN {outside} THEN {refused} ELSE {_days(date)} * {_DAY}L + {time} END)"


def _moved_by_months(expression: Expr, arguments: Sequence[str]) -> str:
    [ticks, amount], [months] = arguments, expression.constants

    def moved(it: str) -> str:
        date = f"add_months({_date_of(it)}, CAST({amount} * {months}L AS INT))"
        return f"({_days(date)} * {_DAY}L + {it} % {_DAY}L)"

    return once(ticks, "ticks", moved)


def unix_milliseconds(ticks: str) -> str:
    """Return ticks as milliseconds since 1970."""
    return f"({ticks} div {TICKS_PER_MILLISECOND}L - {UNIX_EPOCH // TICKS_PER_MILLISECOND}L)"


def _int(count: str) -> str:
    """Return a count that is not NULL, as a Spark INT."""
    return f"CAST(least({count}, {_LARGEST_INT}L) AS INT)"


def _at_least_1(start: str) -> str:
    return f"greatest({start}, 1L)"


def _counted(count: str, refused: Sequence[str], use: Callable[[str], str]) -> str:
    """Return what `use` makes of a count that is not NULL; a negative one is `refused`, unless it cannot be."""
    if not refused:
        return use(count)
    checked = "(CASE WHEN {0} < 0L THEN {1} WHEN {0} >= 0L THEN {2} END)"
    return once(count, "count", lambda it: checked.format(it, refused[0], use(it)))


def _taking(function: str) -> _Writer:
    def write(_: Expr, arguments: Sequence[str]) -> str:
        text, count, *refused = arguments
        return _counted(count, refused, lambda it: f"{function}({text}, {_int(it)})")

    return write


def _substring_from(_: Expr, arguments: Sequence[str]) -> str:
    text, start, count, *refused = arguments
    return _counted(count, refused, lambda it: f"substring({text}, {_int(start)}, {_int(it)})")


def _substring(_: Expr, arguments: Sequence[str]) -> str:
    text, start, count, *refused = arguments
    length = f"greatest(0L, least({{1}}, {_LARGEST_INT}L) + least(greatest({{0}}, -{_LARGEST_INT}L), 1L) - 1L)"

    def part(first: str, it: str) -> str:
        size = f"CAST({length.format(first, it)} AS INT)"
        return f"CASE WHEN {first} IS NOT NULL THEN substring({text}, {_int(_at_least_1(first))}, {size}) END"

    return once(start, "start", lambda first: _counted(count, refused, lambda it: part(first, it)))


def _stuff(_: Expr, arguments: Sequence[str]) -> str:
    text, start, count, insertion, *refused = arguments

    def stuffed(it: str) -> str:
        overlay = f"overlay({text} PLACING {insertion} FROM {_int(_at_least_1(start))} FOR {_int(it)})"
        return f"CASE WHEN {start} > length({text}) THEN '' WHEN {start} IS NOT NULL THEN {overlay} END"

    return _counted(count, refused, stuffed)


def _position(expression: Expr, arguments: Sequence[str]) -> str:
    [sought, text, start], [is_not_empty, has_start] = arguments, expression.constants

    def position(it: str) -> str:
        located = f"CAST(locate({it}, {text}, {_int(_at_least_1(start))}) AS BIGINT)"
        if is_not_empty:
            return located if has_start else f"(CASE WHEN {start} IS NOT NULL THEN {located} END)"
        known = f"{text} IS NOT NULL" + ("" if start == "1L" else f" AND {start} IS NOT NULL")
        return f"(CASE WHEN {it} = '' AND {known} THEN 0L WHEN {start} IS NOT NULL THEN {located} END)"

    return once(sought, "sought", position)


def _json_property(expression: Expr, arguments: Sequence[str]) -> str:
    """Write JSON_PROPERTY: r, 'id' => coalesce(get_json_object(r, '$[\\'id\\']'), …)"""
    record, name = arguments
    key = expression.arguments[1]
    if key.op is not Op.STRING or not _IN_A_PATH.fullmatch(str(key.constants[0])):
        return _in_map(record, name, f"try_element_at(`@@properties`, {name})")
    path = quoted_text(f"$['{key.constants[0]}']")
    similar = "coalesce(get_json_object({it}, {path}), {in_map})"
    return once(record, "record", lambda it: similar.format(it=it, path=path, in_map=_in_map(it, name, "NULL")))


def _in_map(record: str, name: str, exact: str) -> str:
    """Return `exact` if a record has the exact name, or else the text of the first property in other letters."""

    def text(it: str) -> str:
        first = f"get(map_values(map_filter({it}, (`@@key`, `@@value`) -> lower(`@@key`) = lower({name}))), 0)"
        return f"CASE WHEN map_contains_key({it}, CAST({name} AS STRING)) THEN {exact} ELSE {first} END"

    return let(f"from_json({record}, 'MAP<STRING, STRING>')", "properties", text)


_COORDINATES = "CAST({0} AS STRING), ',', CAST({1} AS STRING)"
_GEOJSON = "get_json_object({0}, '$.coordinates')"

_SPARK: dict[Op, _Writer] = {
    Op.COLUMN: _column,
    Op.STRING: _template("{q[0]}"),
    Op.BIGINT: _bigint,
    Op.DOUBLE: _template("{c[0]!r}D"),
    Op.BIT: lambda expression, _: "TRUE" if expression.constants[0] else "FALSE",
    Op.NULL: _template("NULL"),
    Op.ROW: _template("1"),
    Op.FAIL: _template("raise_error({q[0]})"),
    Op.AND: _infix("AND"),
    Op.OR: _infix("OR"),
    Op.NOT: _template("(NOT {0})"),
    Op.EQUAL: _infix("="),
    Op.NOT_EQUAL: _infix("<>"),
    Op.LESS: _infix("<"),
    Op.LESS_OR_EQUAL: _infix("<="),
    Op.GREATER: _infix(">"),
    Op.GREATER_OR_EQUAL: _infix(">="),
    Op.IN: _in,
    Op.IS_NULL: _template("({0} IS NULL)"),
    Op.IS_NOT_NULL: _template("{0} IS NOT NULL"),
    Op.IS_ANY_NULL: _each("{} IS NULL", " OR "),
    Op.CASE: _case,
    Op.COALESCE: _function("coalesce"),
    Op.ADD: _infix("+"),
    Op.SUBTRACT: _infix("-"),
    Op.MULTIPLY: _infix("*"),
    Op.DIVIDE: _infix("/"),
    Op.INTEGER_DIVIDE: _infix("DIV"),
    Op.INTEGER_QUOTIENT: _template("CAST((CAST({0} AS BIGINT) div CAST({1} AS BIGINT)) AS DOUBLE)"),
    Op.MODULO: _infix("%"),
    Op.NEGATE: _negated,
    Op.BIT_AND: _infix("&"),
    Op.BIT_OR: _infix("|"),
    Op.BIT_XOR: _infix("^"),
    Op.BIT_NOT: _template("(~{0})"),
    Op.GREATEST: _function("greatest"),
    Op.LEAST: _function("least"),
    Op.ABSOLUTE: _function("abs"),
    Op.SIGN: _function("sign"),
    # From 2^52 on, floats have no decimals.
    **{
        op: _once(
            "number",
            f"(CASE WHEN abs({{0}}) < 4503599627370496D THEN CAST({function}({{0}}) AS DOUBLE) ELSE {{0}} END)",
        )
        for op, function in ((Op.FLOOR, "floor"), (Op.CEILING, "ceil"))
    },
    Op.ROUND: _template("round({0}, {c[0]})"),
    Op.POWER: _function("pow"),
    Op.SQUARE_ROOT: _function("sqrt"),
    Op.SQUARE: _template("pow({0}, 2D)"),
    Op.EXPONENTIAL: _function("exp"),
    Op.FINITE: _finite,
    Op.CAST: _cast,
    Op.STRING_TO_FLOAT: _string_to_float,
    Op.STRING_TO_BIT: _string_to_bit,
    Op.STRING_TO_DATETIME: _string_to_datetime,
    Op.STRING_TO_RECORD: _json_if("json_object_keys"),
    Op.STRING_TO_ARRAY: _json_if("json_array_length"),
    Op.DATETIME_TO_STRING: _datetime_to_string,
    Op.FLOAT_TO_STRING: _float_to_string,
    Op.IS_BIGINT_TEXT: _template("{0} RLIKE '^-?[0-9]+$'"),
    Op.BIGINT_TEXT: _template(
        "CASE WHEN {0} RLIKE '^-?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$' AND NOT {0} RLIKE '^-?[0-9]+$'"
        " THEN CAST(try_cast(try_cast({0} AS DOUBLE) AS BIGINT) AS STRING)"
        " WHEN {0} = 'true' THEN '1' WHEN {0} = 'false' THEN '0' ELSE {0} END"
    ),
    Op.ARE_NUMBER_KINDS: _each("{} IN ('bigint', 'float')", " AND "),
    Op.NUMBER_KEY: _template("CAST(CAST({0} AS DOUBLE) + 0.0D AS STRING)"),
    Op.DATE_PART: _date_part,
    Op.DATE_BOUNDARIES: _date_boundaries,
    Op.NAME_OF: _name_of,
    Op.DATETIME_FROM_PARTS: _datetime_from_parts,
    Op.MOVED: _template("({0} + {1} * {c[0]}L)"),
    Op.MOVED_BY_MONTHS: _moved_by_months,
    Op.WITHIN_CALENDAR: _within_calendar,
    Op.UNIX_MILLISECONDS: lambda _, arguments: unix_milliseconds(arguments[0]),
    Op.CONCAT: _function("concat"),
    Op.JOIN_STRINGS: _function("concat_ws"),
    Op.UPPER: _function("upper"),
    Op.LOWER: _function("lower"),
    Op.REVERSE: _function("reverse"),
    Op.TRIM: _template("trim(BOTH {q[0]} FROM {0})"),
    Op.TRIM_START: _template("trim(LEADING {q[0]} FROM {0})"),
    Op.TRIM_END: _template("trim(TRAILING {q[0]} FROM {0})"),
    Op.LENGTH: _template("CAST(length(rtrim({0})) AS BIGINT)"),
    Op.CODE_POINT: _once("text", "(CASE WHEN {0} <> '' THEN CAST(ascii({0}) AS BIGINT) END)"),
    Op.CHARACTER: _once(
        "number",
        "(CASE WHEN {0} >= 0L AND {0} <= 1114111L THEN decode(unhex(lpad(hex({0}), 8, '0')), 'UTF-32') END)",
    ),
    Op.REPEAT: lambda _, arguments: once(
        arguments[1], "count", lambda it: f"(CASE WHEN {it} >= 0L THEN repeat({arguments[0]}, {_int(it)}) END)"
    ),
    Op.REPLACE: _function("replace"),
    Op.TRANSLATE: _template("(CASE WHEN length({1}) <> length({2}) THEN {3} ELSE translate({0}, {1}, {2}) END)"),
    Op.LEFT: _taking("left"),
    Op.RIGHT: _taking("right"),
    Op.SUBSTRING: _substring,
    Op.SUBSTRING_FROM: _substring_from,
    Op.STUFF: _stuff,
    Op.POSITION: _position,
    Op.FIRST_MATCH: _template("CAST(length(regexp_extract(concat('@', {0}), {q[0]}, 1)) AS BIGINT)"),
    Op.MATCHES: _template("({0} RLIKE {q[0]})"),
    Op.LIKE: _template("({0} LIKE {q[0]})"),
    Op.LIKE_COMPUTED: _once(
        "pattern", r"(CASE WHEN contains({0}, '[') THEN {2} ELSE {1} LIKE replace({0}, '\\', '\\\\') END)"
    ),
    Op.JSON_PROPERTY: _json_property,
    Op.JSON_OF_ANY: _template(
        "CASE WHEN {0} IS NOT NULL THEN substring(to_json(array({0})), 2, length(to_json(array({0}))) - 2) END"
    ),
    Op.PARSED_RECORD: _once("json", "(CASE WHEN json_object_keys({0}) IS NOT NULL THEN {0} END)"),
    Op.ARRAY_ELEMENT: _template(
        "get(from_json({0}, 'ARRAY<STRING>'),"
        f" CAST(CASE WHEN {{1}} BETWEEN 0L AND {_LARGEST_INT}L THEN {{1}} ELSE -1L END AS INT))"
    ),
    Op.ARRAY_ELEMENT_AT: _template("get(from_json({0}, 'ARRAY<STRING>'), {c[0]})"),
    Op.ARRAY_LENGTH: _template("CAST(json_array_length({0}) AS BIGINT)"),
    Op.ARRAY_ELEMENTS: _template(
        "transform(from_json({0}, 'ARRAY<STRING>'), (`@@value`, `@@index`) ->"
        " named_struct('ArrayIndex', CAST(`@@index` AS BIGINT), 'ArrayValue', `@@value`))"
    ),
    Op.RECORD_PROPERTIES: _template(
        "transform(map_entries(from_json({0}, 'MAP<STRING, STRING>')), `@@entry` ->"
        " named_struct('PropertyName', `@@entry`.key, 'PropertyValue', `@@entry`.value))"
    ),
    # The text of a float is as in JSON; concat of NULL is NULL.
    Op.POINT: _template(f"""concat('{{{{"type":"Point","coordinates":[', {_COORDINATES}, ']}}}}')"""),
    Op.POINT_POSITION: _template(f"concat('[', {_COORDINATES}, ']')"),
    Op.POSITION_OF_POINT: _once(
        "point",
        f"CASE WHEN get_json_object({{0}}, '$.type') = 'Point' AND {_GEOJSON}"
        f" RLIKE {quoted_text(_POSITION).replace('{', '{{').replace('}', '}}')} THEN {_GEOJSON}"
        " WHEN {0} IS NOT NULL THEN {1} END",
    ),
    Op.STRUCT: _struct,
    Op.USER_CALL: lambda expression, arguments: python_call(str(expression.constants[0]), arguments),
    Op.RESULT: _result,
}
"""How Spark SQL writes each operation."""
