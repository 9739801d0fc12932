"""CAST and TRY_CAST between the types of ASA, as Spark SQL.

Microsoft's page "Data Types (Azure Stream Analytics)" gives few rules. A text is a datetime if it is ISO 8601, UTC
unless it names a zone; its 7 decimals count. A datetime becomes text with 7 decimals and Z, a bit becomes true or
false. Everything else follows T-SQL: a float is truncated towards zero to a bigint, and blanks around a number do not
matter. Unlike in T-SQL, an empty text is not a number.
"""

from sqlglot import exp

from recapture.errors import DefinitionError
from recapture.model import TYPES, AsaType
from recapture.query.generate.let import failure, once, once_in
from recapture.query.generate.times import date_of, within_calendar
from recapture.query.generate.trees import cast_as, spark_call, string, template
from recapture.query.generate.values import Value
from recapture.time_model.ticks import TICKS_PER_SECOND, UNIX_EPOCH

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
_JSON = (AsaType.RECORD, AsaType.ARRAY)


def cast(value: Value, to: AsaType, lenient: bool) -> exp.Expr:
    """Return the CAST of a value, or its TRY_CAST if `lenient`: CAST(`x` AS bigint) => CAST(`x` AS BIGINT)

    A value that cannot be cast stops the run in CAST, and is NULL in TRY_CAST. Raise DefinitionError for two types
    between which there is no cast.
    """
    source, node = value.type, value.node
    if source is None:
        return cast_as(exp.Null(), TYPES[to].spark)
    if source is to:
        return node
    if source is AsaType.STRING:
        return _from_text(node, to, lenient)
    if to is AsaType.STRING:
        return _to_text(node, source)
    if source in _JSON or to in _JSON:
        raise DefinitionError(f"a {source} cannot be cast to {to}")
    if source is AsaType.DATETIME:
        raise DefinitionError(f"a datetime cannot be cast to {to}: count with DATEDIFF(second, '1970-01-01', …)")
    if to is AsaType.DATETIME:
        raise DefinitionError(f"a {source} cannot be cast to datetime: count with DATEADD(second, …, '1970-01-01')")
    return cast_as(node, TYPES[to].spark, lenient)


def _from_text(text: exp.Expr, to: AsaType, lenient: bool) -> exp.Expr:
    match to:
        case AsaType.FLOAT:
            excess = exp.Null() if lenient else failure("CAST: the number does not fit a float")
            return finite(cast_as(_checked(text, _FLOAT, "not a float: "), "DOUBLE", lenient), excess)
        case AsaType.BIT:
            return cast_as(_checked(text, _BIT, "not a bit: "), "BOOLEAN", lenient)
        case AsaType.DATETIME:
            return _instant(text, lenient)
        case AsaType.RECORD:
            return _json(text, "json_object_keys", to, lenient)
        case AsaType.ARRAY:
            return _json(text, "json_array_length", to, lenient)
    return cast_as(text, TYPES[to].spark, lenient)


def _checked(text: exp.Expr, pattern: str, complaint: str) -> exp.Expr:
    """Return the text, after a complaint if it does not match: Spark cannot cast it then, and its error shows both."""
    return _replaced(text, rf"^(?!{pattern}\z)", complaint)


def _replaced(text: exp.Expr, pattern: str, replacement: str) -> exp.Expr:
    return spark_call("regexp_replace", text, string(pattern), string(replacement))


def finite(number: exp.Expr, excess: exp.Expr) -> exp.Expr:
    """Return a float, or `excess` if it is not finite; NaN is the largest number to Spark."""
    finite_or_excess = "(CASE WHEN abs({it}) > 1.7976931348623157E308D THEN {excess} ELSE {it} END)"
    return once_in(finite_or_excess, "number", number, excess=excess)


def _json(text: exp.Expr, proof: str, to: AsaType, lenient: bool) -> exp.Expr:
    """Return the text itself, if the Spark function `proof` gives a value for it: it is JSON of this type."""
    wrong = exp.Null() if lenient else failure(f"CAST: the string is not a JSON {to}")
    proven = f"CASE WHEN {proof}({{it}}) IS NOT NULL THEN {{it}} WHEN {{it}} IS NOT NULL THEN {{wrong}} END"
    return once_in(proven, "json", text, wrong=wrong)


def _instant(text: exp.Expr, lenient: bool) -> exp.Expr:
    """Return the ticks of an ISO text: its microseconds as Spark reads them, and the seventh decimal."""

    def ticks(it: exp.Expr) -> exp.Expr:
        completed = _checked(it, _ISO, "not an ISO time: ")
        for short, long in _COMPLETIONS:
            completed = _replaced(completed, short, long)
        choice = "CASE WHEN {it} RLIKE {complete} THEN {it} ELSE {completed} END"
        full = template(choice, it=it, complete=string(_COMPLETE), completed=completed)
        return template(
            f"unix_micros({{read}}) * 10L + {UNIX_EPOCH}L + CASE WHEN length({{it}}) > 26 THEN"
            " CAST(concat('0', regexp_extract({it}, '[.][0-9]{{6}}([0-9])', 1)) AS BIGINT) ELSE 0L END",
            read=cast_as(full, "TIMESTAMP", lenient),
            it=it,
        )

    outside = exp.Null() if lenient else failure("CAST: the time lies outside the years 1 to 9999")
    return within_calendar(once(text, "text", ticks), outside)


def _to_text(node: exp.Expr, source: AsaType) -> exp.Expr:
    match source:
        case AsaType.DATETIME:
            return once(node, "ticks", _iso)
        case AsaType.FLOAT:
            return once(node, "number", _plain)
        case AsaType.RECORD | AsaType.ARRAY:
            return node
    return cast_as(node, "STRING")


def _iso(ticks: exp.Expr) -> exp.Expr:
    clock = [(TICKS_PER_SECOND * 3600, 24), (TICKS_PER_SECOND * 60, 60), (TICKS_PER_SECOND, 60)]
    time = ", ':', ".join(f"lpad(CAST({{ticks}} div {unit}L % {count}L AS STRING), 2, '0')" for unit, count in clock)
    decimals = f"lpad(CAST({{ticks}} % {TICKS_PER_SECOND}L AS STRING), 7, '0')"
    date = cast_as(date_of(ticks), "STRING")
    return template(f"concat({{date}}, 'T', {time}, '.', {decimals}, 'Z')", date=date, ticks=ticks)


def _plain(number: exp.Expr) -> exp.Expr:
    """Return a float as .NET writes it: 21.5, 21, 0.00001; with an exponent from 1E+15 on and below 0.00001."""
    java = cast_as(number, "STRING")
    plain = _replaced(template("CAST(CAST({java} AS DECIMAL(38, 22)) AS STRING)", java=java), "[.]?0+$", "")
    signed = _replaced(_replaced(java, "[.]0E", "E"), "E([0-9])", "E+$1")
    return template(
        "CASE WHEN abs({number}) >= 1E15D OR (abs({number}) < 1E-5D AND {number} <> 0D)"
        " THEN {exponent} ELSE {plain} END",
        number=number,
        exponent=_replaced(signed, "([+-])([0-9])$", "$10$2"),
        plain=plain,
    )
