"""CAST and TRY_CAST between the types of ASA, as Spark SQL.

Microsoft's page "Data Types (Azure Stream Analytics)" gives few rules. A text is a datetime if it is ISO 8601, UTC
unless it names a zone; its 7 decimals count. A datetime becomes text with 7 decimals and Z, a bit becomes true or
false. Everything else follows T-SQL: a float is truncated towards zero to a bigint, and blanks around a number do not
matter. Unlike in T-SQL, an empty text is not a number.
"""

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.generate.let import failure, once
from recapture.query.generate.values import Value, quoted_text
from recapture.time_model.ticks import LARGEST, TICKS_PER_SECOND, UNIX_EPOCH

_SPARK = {AsaType.BIGINT: "BIGINT", AsaType.FLOAT: "DOUBLE", AsaType.TEXT: "STRING", AsaType.BIT: "BOOLEAN"}
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
_LARGEST_FLOAT = "1.7976931348623157E308D"
_SECONDS_A_DAY = 86_400
_DAYS_TO_1970 = UNIX_EPOCH // TICKS_PER_SECOND // _SECONDS_A_DAY
_DAY = _SECONDS_A_DAY * TICKS_PER_SECOND
_JSON = (AsaType.RECORD, AsaType.ARRAY)


def cast(value: Value, to: AsaType, lenient: bool) -> str:
    """Return the SQL of CAST, or where `lenient` of TRY_CAST.

    A value that cannot be cast stops the run in CAST, and is NULL in TRY_CAST. Raise DefinitionError for two types
    between which there is no cast.
    """
    source, sql = value.type, value.sql
    if source is None:
        return f"CAST(NULL AS {_SPARK.get(to, 'BIGINT' if to is AsaType.DATETIME else 'STRING')})"
    if source is to:
        return sql
    if source is AsaType.TEXT:
        return _from_text(sql, to, lenient)
    if to is AsaType.TEXT:
        return _to_text(sql, source)
    if source in _JSON or to in _JSON:
        raise DefinitionError(f"a {source} cannot be cast to {to}")
    if source is AsaType.DATETIME:
        raise DefinitionError(f"a datetime cannot be cast to {to}: count with DATEDIFF(second, '1970-01-01', …)")
    if to is AsaType.DATETIME:
        raise DefinitionError(f"a {source} cannot be cast to datetime: count with DATEADD(second, …, '1970-01-01')")
    return f"{_cast(lenient)}({sql} AS {_SPARK[to]})"


def _cast(lenient: bool) -> str:
    return "try_cast" if lenient else "CAST"


def _from_text(sql: str, to: AsaType, lenient: bool) -> str:
    match to:
        case AsaType.FLOAT:
            return _finite(f"{_cast(lenient)}({_checked(sql, _FLOAT, 'no float: ')} AS DOUBLE)", lenient)
        case AsaType.BIT:
            return f"{_cast(lenient)}({_checked(sql, _BIT, 'no bit: ')} AS BOOLEAN)"
        case AsaType.DATETIME:
            return _instant(sql, lenient)
        case AsaType.RECORD:
            return _json(sql, "json_object_keys", to, lenient)
        case AsaType.ARRAY:
            return _json(sql, "json_array_length", to, lenient)
    return f"{_cast(lenient)}({sql} AS {_SPARK[to]})"


def _checked(sql: str, pattern: str, complaint: str) -> str:
    """Return the text, after a complaint if it does not match: Spark cannot cast it then, and its error shows both."""
    wrong = rf"^(?!{pattern}\z)"
    return f"regexp_replace({sql}, {quoted_text(wrong)}, {quoted_text(complaint)})"


def _finite(number: str, lenient: bool) -> str:
    excess = "NULL" if lenient else failure("CAST: the number does not fit a float")
    return once(number, "number", lambda it: f"CASE WHEN abs({it}) > {_LARGEST_FLOAT} THEN {excess} ELSE {it} END")


def _json(sql: str, proof: str, to: AsaType, lenient: bool) -> str:
    """Return the text itself, if the Spark function `proof` gives a value for it: it is JSON of this type."""
    wrong = "NULL" if lenient else failure(f"CAST: the text is not a JSON {to}")
    return once(
        sql, "json", lambda it: f"CASE WHEN {proof}({it}) IS NOT NULL THEN {it} WHEN {it} IS NOT NULL THEN {wrong} END"
    )


def _instant(sql: str, lenient: bool) -> str:
    """Return the ticks of an ISO text: its microseconds as Spark reads them, and the seventh decimal."""

    def ticks(text: str) -> str:
        completed = _checked(text, _ISO, "no ISO time: ")
        for short, long in _COMPLETIONS:
            completed = f"regexp_replace({completed}, {quoted_text(short)}, {quoted_text(long)})"
        full = f"CASE WHEN {text} RLIKE {quoted_text(_COMPLETE)} THEN {text} ELSE {completed} END"
        digit = f"CAST(concat('0', regexp_extract({text}, {quoted_text('[.][0-9]{6}([0-9])')}, 1)) AS BIGINT)"
        seventh = f"CASE WHEN length({text}) > 26 THEN {digit} ELSE 0L END"
        return f"unix_micros({_cast(lenient)}({full} AS TIMESTAMP)) * 10L + {UNIX_EPOCH}L + {seventh}"

    outside = "NULL" if lenient else failure("CAST: the time lies outside the years 1 to 9999")
    return once(
        once(sql, "text", ticks),
        "ticks",
        lambda it: f"CASE WHEN {it} < 0L OR {it} > {LARGEST}L THEN {outside} ELSE {it} END",
    )


def _to_text(sql: str, source: AsaType) -> str:
    match source:
        case AsaType.DATETIME:
            return once(sql, "ticks", _iso)
        case AsaType.FLOAT:
            return once(sql, "number", _plain)
        case AsaType.RECORD | AsaType.ARRAY:
            return sql
    return f"CAST({sql} AS STRING)"


def _iso(ticks: str) -> str:
    date = f"CAST(date_from_unix_date(CAST({ticks} div {_DAY}L - {_DAYS_TO_1970}L AS INT)) AS STRING)"
    clock = [(TICKS_PER_SECOND * 3600, 24), (TICKS_PER_SECOND * 60, 60), (TICKS_PER_SECOND, 60)]
    hour, minute, second = (f"lpad(CAST({ticks} div {unit}L % {count}L AS STRING), 2, '0')" for unit, count in clock)
    decimals = f"lpad(CAST({ticks} % {TICKS_PER_SECOND}L AS STRING), 7, '0')"
    return f"concat({date}, 'T', {hour}, ':', {minute}, ':', {second}, '.', {decimals}, 'Z')"


def _plain(number: str) -> str:
    """Return a float as .NET writes it: 21.5, 21, 0.00001; with an exponent from 1E+15 on and below 0.00001."""
    java = f"CAST({number} AS STRING)"
    plain = f"regexp_replace(CAST(CAST({java} AS DECIMAL(38, 22)) AS STRING), {quoted_text('[.]?0+$')}, '')"
    short = f"regexp_replace({java}, '[.]0E', 'E')"
    signed = f"regexp_replace({short}, 'E([0-9])', {quoted_text('E+$1')})"
    exponent = f"regexp_replace({signed}, {quoted_text('([+-])([0-9])$')}, {quoted_text('$10$2')})"
    far = f"abs({number}) >= 1E15D OR (abs({number}) < 1E-5D AND {number} <> 0D)"
    return f"CASE WHEN {far} THEN {exponent} ELSE {plain} END"
