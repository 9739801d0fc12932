"""The string functions. A position counts from 1; a character is a Unicode code point; letter case and blanks count.

What Microsoft's reference does not say follows T-SQL. Letters change case as in Unicode, whatever the language.
"""

from collections.abc import Callable

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.functions.arity import MANY, takes
from recapture.query.functions.call import Call
from recapture.query.generate import patterns
from recapture.query.generate.casts import cast
from recapture.query.generate.let import failure, once
from recapture.query.generate.values import Value, quoted_text

_LONGEST = 2**31 - 1
_WHITE = (
    "\t\n\x0b\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""White space that TRIM removes: ASA's list. T-SQL removes blanks only."""


def upper(call: Call) -> Value:
    """UPPER(text)."""
    return _text(f"upper({_only_text(call)})")


def lower(call: Call) -> Value:
    """LOWER(text)."""
    return _text(f"lower({_only_text(call)})")


def reverse(call: Call) -> Value:
    """REVERSE(text)."""
    return _text(f"reverse({_only_text(call)})")


def trim(call: Call) -> Value:
    """TRIM(text): without white space, of every kind, at both ends."""
    return _text(f"trim(BOTH {quoted_text(_WHITE)} FROM {_only_text(call)})")


def trim_left(call: Call) -> Value:
    """LTRIM(text): without white space, of every kind, at the start."""
    return _text(f"trim(LEADING {quoted_text(_WHITE)} FROM {_only_text(call)})")


def trim_right(call: Call) -> Value:
    """RTRIM(text): without white space, of every kind, at the end."""
    return _text(f"trim(TRAILING {quoted_text(_WHITE)} FROM {_only_text(call)})")


def length(call: Call) -> Value:
    """LEN(text), a bigint: its characters, without the blanks at its end."""
    return Value(f"CAST(length(rtrim({_only_text(call)})) AS BIGINT)", AsaType.BIGINT)


def unicode(call: Call) -> Value:
    """UNICODE(text), a bigint: the code point of the first character; NULL for an empty text."""
    return Value(
        once(_only_text(call), "text", lambda it: f"(CASE WHEN {it} <> '' THEN CAST(ascii({it}) AS BIGINT) END)"),
        AsaType.BIGINT,
    )


def nchar(call: Call) -> Value:
    """NCHAR(number): the character of a code point; NULL outside 0 to 1114111."""
    takes(call, 1)

    def character(it: str) -> str:
        return f"(CASE WHEN {it} >= 0L AND {it} <= 1114111L THEN decode(unhex(lpad(hex({it}), 8, '0')), 'UTF-32') END)"

    return _text(once(call.of(0, AsaType.BIGINT).sql, "number", character))


def space(call: Call) -> Value:
    """SPACE(count); NULL for a negative count."""
    takes(call, 1)
    return _repeated("' '", call.of(0, AsaType.BIGINT))


def replicate(call: Call) -> Value:
    """REPLICATE(text, count); NULL for a negative count."""
    takes(call, 2)
    return _repeated(call.of(0, AsaType.TEXT).sql, call.of(1, AsaType.BIGINT))


def concat(call: Call) -> Value:
    """CONCAT(x, y, …): a NULL is an empty text; values of other types are cast to text."""
    takes(call, 2, MANY)
    return _text(f"concat_ws('', {_joined(call, 0)})")


def concat_ws(call: Call) -> Value:
    """CONCAT_WS(separator, x, y, …): a NULL is left out, with its separator; a separator of NULL is an empty text."""
    takes(call, 3, MANY)
    separator = call.of(0, AsaType.TEXT)
    between = separator.sql if separator.text is not None else f"coalesce({separator.sql}, '')"
    return _text(f"concat_ws({between}, {_joined(call, 1)})")


def replace(call: Call) -> Value:
    """REPLACE(text, found, replacement): every occurrence; an empty `found` changes nothing."""
    takes(call, 3)
    return _text(f"replace({', '.join(_texts(call, 3))})")


def translate(call: Call) -> Value:
    """TRANSLATE(text, characters, others): each character by its other; lists of unlike length stop the run."""
    takes(call, 3)
    text, characters, others = _texts(call, 3)
    refused = failure("TRANSLATE: the two lists of characters are not equally long")
    unlike = f"length({characters}) <> length({others})"
    return _text(f"(CASE WHEN {unlike} THEN {refused} ELSE translate({text}, {characters}, {others}) END)")


def left(call: Call) -> Value:
    """LEFT(text, length); a negative length stops the run."""
    takes(call, 2)
    text, count = call.of(0, AsaType.TEXT).sql, call.of(1, AsaType.BIGINT)
    return _text(_counted(call, count, lambda it: f"left({text}, {_int(it)})"))


def right(call: Call) -> Value:
    """RIGHT(text, length); a negative length stops the run."""
    takes(call, 2)
    text, count = call.of(0, AsaType.TEXT).sql, call.of(1, AsaType.BIGINT)
    return _text(_counted(call, count, lambda it: f"right({text}, {_int(it)})"))


def substring(call: Call) -> Value:
    """SUBSTRING(text, start, length): what of the places start to start + length - 1 the text has.

    A start below 1 so costs length. A start beyond the end gives an empty text; a negative length stops the run.
    """
    takes(call, 3)
    text = call.of(0, AsaType.TEXT).sql
    start, count = call.of(1, AsaType.BIGINT), call.of(2, AsaType.BIGINT)
    if start.text is not None and int(start.text) >= 1:
        return _text(_counted(call, count, lambda it: f"substring({text}, {_int(start.sql)}, {_int(it)})"))

    def part(it: str, first: str) -> str:
        fewer = f"least(greatest({first}, -{_LONGEST}L), 1L) - 1L"
        some = f"CAST(greatest(0L, least({it}, {_LONGEST}L) + {fewer}) AS INT)"
        return f"CASE WHEN {first} IS NOT NULL THEN substring({text}, {_int(f'greatest({first}, 1L)')}, {some}) END"

    return _text(once(start.sql, "start", lambda first: _counted(call, count, lambda it: part(it, first))))


def stuff(call: Call) -> Value:
    """STUFF(text, start, length, insertion): `length` characters from `start` give way to the insertion.

    A start below 1 is 1, a start beyond the end gives an empty text (ASA's rules, not T-SQL's); an insertion of NULL
    is an empty text; a negative length stops the run.
    """
    takes(call, 4)
    text, insertion = call.of(0, AsaType.TEXT).sql, f"coalesce({call.of(3, AsaType.TEXT).sql}, '')"
    start, count = call.of(1, AsaType.BIGINT).sql, call.of(2, AsaType.BIGINT)

    def stuffed(it: str) -> str:
        place = f"{_int(f'greatest({start}, 1L)')} FOR {_int(it)}"
        return (
            f"CASE WHEN {start} > length({text}) THEN '' "
            f"WHEN {start} IS NOT NULL THEN overlay({text} PLACING {insertion} FROM {place}) END"
        )

    return _text(_counted(call, count, stuffed))


def charindex(call: Call) -> Value:
    """CHARINDEX(found, text[, start]), a bigint: where the first occurrence from `start` on begins; 0 for none.

    An empty `found` is nowhere, as in T-SQL; a start below 1 is the beginning.
    """
    takes(call, 2, 3)
    sought, text = call.of(0, AsaType.TEXT), call.of(1, AsaType.TEXT).sql
    start = call.of(2, AsaType.BIGINT) if call.count == 3 else Value("1L", AsaType.BIGINT, "1")

    def place(it: str) -> str:
        located = f"CAST(locate({it}, {text}, {_int(f'greatest({start.sql}, 1L)')}) AS BIGINT)"
        if sought.text:
            return located if start.text else f"(CASE WHEN {start.sql} IS NOT NULL THEN {located} END)"
        known = " AND ".join(f"{sql} IS NOT NULL" for sql in (text, start.sql) if sql != "1L")
        return f"(CASE WHEN {it} = '' AND {known} THEN 0L WHEN {start.sql} IS NOT NULL THEN {located} END)"

    return Value(once(sought.sql, "sought", place), AsaType.BIGINT)


def patindex(call: Call) -> Value:
    """PATINDEX(pattern, text), a bigint: where the first match of LIKE's wildcards begins; 0 for none."""
    takes(call, 2)
    pattern, text = call.literal(0), call.of(1, AsaType.TEXT).sql
    try:
        return Value(patterns.position(text, pattern), AsaType.BIGINT)
    except DefinitionError as error:
        raise call.refuse(0, str(error)) from None


def _only_text(call: Call) -> str:
    takes(call, 1)
    return call.of(0, AsaType.TEXT).sql


def _texts(call: Call, count: int) -> list[str]:
    return [call.of(place, AsaType.TEXT).sql for place in range(count)]


def _text(sql: str) -> Value:
    return Value(sql, AsaType.TEXT)


def _joined(call: Call, start: int) -> str:
    scalars = (AsaType.TEXT, AsaType.BIGINT, AsaType.FLOAT, AsaType.DATETIME, AsaType.BIT)
    return ", ".join(cast(call.of(place, *scalars), AsaType.TEXT, lenient=False) for place in range(start, call.count))


def _int(sql: str) -> str:
    """Return a count that is not NULL, as a Spark INT."""
    return f"CAST(least({sql}, {_LONGEST}L) AS INT)"


def _repeated(text: str, count: Value) -> Value:
    return _text(once(count.sql, "count", lambda it: f"(CASE WHEN {it} >= 0L THEN repeat({text}, {_int(it)}) END)"))


def _counted(call: Call, count: Value, use: Callable[[str], str]) -> str:
    """Return what `use` makes of a count that is not NULL; a negative count stops the run."""
    if count.text is not None:
        return use(count.sql)
    refused = failure(f"{call.name}: the length is negative")
    return once(
        count.sql, "count", lambda it: f"(CASE WHEN {it} < 0L THEN {refused} WHEN {it} >= 0L THEN {use(it)} END)"
    )
