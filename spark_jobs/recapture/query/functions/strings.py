"""The string functions. A position counts from 1; a character is a Unicode code point; case and blanks count.

What Microsoft's reference does not say follows T-SQL. Letters change case as in Unicode, whatever the language.
"""

from collections.abc import Callable

from sqlglot import exp

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.functions.call import MANY, Call, takes
from recapture.query.generate import patterns
from recapture.query.generate.casts import cast
from recapture.query.generate.let import failure, once, once_in
from recapture.query.generate.trees import bigint, spark_call, string, template
from recapture.query.generate.values import Value

_LONGEST = 2**31 - 1
_WHITE = (
    "\t\n\x0b\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""White space that TRIM removes: ASA's list. T-SQL removes blanks only."""


def changing(function: str) -> Callable[[Call], Value]:
    """Return the function of ASAQL that is Spark's, with one text: UPPER(text), LOWER(text) or REVERSE(text)."""
    return lambda call: _text(spark_call(function, _only_text(call)))


def trimming(ends: str) -> Callable[[Call], Value]:
    """Return TRIM(text), LTRIM(text) or RTRIM(text): without white space, of every kind, at BOTH or one of the ends."""
    trimmed = f"trim({ends} {{white}} FROM {{text}})"
    return lambda call: _text(template(trimmed, white=string(_WHITE), text=_only_text(call)))


def length(call: Call) -> Value:
    """LEN(text), a bigint: its characters, without the blanks at its end."""
    return Value(template("CAST(length(rtrim({text})) AS BIGINT)", text=_only_text(call)), AsaType.BIGINT)


def unicode(call: Call) -> Value:
    """UNICODE(text), a bigint: the code point of the first character; NULL for an empty text."""
    code = "(CASE WHEN {it} <> '' THEN CAST(ascii({it}) AS BIGINT) END)"
    return Value(once_in(code, "text", _only_text(call)), AsaType.BIGINT)


def nchar(call: Call) -> Value:
    """NCHAR(number): the character of a code point; NULL outside 0 to 1114111."""
    takes(call, 1)
    character = "(CASE WHEN {it} >= 0L AND {it} <= 1114111L THEN decode(unhex(lpad(hex({it}), 8, '0')), 'UTF-32') END)"
    return _text(once_in(character, "number", call.argument(0, AsaType.BIGINT).node))


def space(call: Call) -> Value:
    """SPACE(count); NULL for a negative count."""
    takes(call, 1)
    return _repeated(string(" "), call.argument(0, AsaType.BIGINT))


def replicate(call: Call) -> Value:
    """REPLICATE(text, count); NULL for a negative count."""
    takes(call, 2)
    return _repeated(call.argument(0, AsaType.STRING).node, call.argument(1, AsaType.BIGINT))


def concat(call: Call) -> Value:
    """CONCAT(x, y, …): a NULL is an empty text; values of other types are cast to text."""
    takes(call, 2, MANY)
    return _text(spark_call("concat_ws", string(""), *_joined(call, 0)))


def concat_ws(call: Call) -> Value:
    """CONCAT_WS(separator, x, y, …): a NULL is left out, with its separator; a separator of NULL is an empty text."""
    takes(call, 3, MANY)
    separator = call.argument(0, AsaType.STRING)
    between = separator.node if separator.text is not None else _or_empty(separator)
    return _text(spark_call("concat_ws", between, *_joined(call, 1)))


def replace(call: Call) -> Value:
    """REPLACE(text, found, replacement): every occurrence; an empty `found` changes nothing."""
    takes(call, 3)
    return _text(spark_call("replace", *_texts(call, 3)))


def translate(call: Call) -> Value:
    """TRANSLATE(text, characters, others): each character by its other; lists of unlike length stop the run."""
    takes(call, 3)
    text, characters, others = _texts(call, 3)
    refused = failure("TRANSLATE: the two lists of characters are not equally long")
    unequal = "length({characters}) <> length({others}) THEN {refused}"
    translated = f"(CASE WHEN {unequal} ELSE translate({{text}}, {{characters}}, {{others}}) END)"
    return _text(template(translated, text=text, characters=characters, others=others, refused=refused))


def taking(function: str) -> Callable[[Call], Value]:
    """Return LEFT(text, length) or RIGHT(text, length), which are Spark's; a negative length stops the run."""

    def take(call: Call) -> Value:
        takes(call, 2)
        text, count = call.argument(0, AsaType.STRING).node, call.argument(1, AsaType.BIGINT)
        return _text(_counted(call, count, lambda it: spark_call(function, text, _int(it))))

    return take


def substring(call: Call) -> Value:
    """SUBSTRING(text, start, length): what of the places start to start + length - 1 the text has.

    A start below 1 so costs length. A start beyond the end gives an empty text; a negative length stops the run.
    """
    takes(call, 3)
    text = call.argument(0, AsaType.STRING).node
    start, count = call.argument(1, AsaType.BIGINT), call.argument(2, AsaType.BIGINT)
    if start.text is not None and int(start.text) >= 1:
        return _text(_counted(call, count, lambda it: spark_call("substring", text, _int(start.node), _int(it))))

    def part(it: exp.Expr, first: exp.Expr) -> exp.Expr:
        return template(
            "CASE WHEN {first} IS NOT NULL THEN substring({text}, {position},"
            " CAST(greatest(0L, least({it}, {longest}) + least(greatest({first}, -{longest}), 1L) - 1L) AS INT)) END",
            first=first,
            text=text,
            position=_int(_at_least_1(first)),
            it=it,
            longest=bigint(_LONGEST),
        )

    return _text(once(start.node, "start", lambda first: _counted(call, count, lambda it: part(it, first))))


def stuff(call: Call) -> Value:
    """STUFF(text, start, length, insertion): `length` characters from `start` give way to the insertion.

    A start below 1 is 1, a start beyond the end gives an empty text (ASA's rules, not T-SQL's); an insertion of NULL
    is an empty text; a negative length stops the run.
    """
    takes(call, 4)
    text, insertion = call.argument(0, AsaType.STRING).node, _or_empty(call.argument(3, AsaType.STRING))
    start, count = call.argument(1, AsaType.BIGINT).node, call.argument(2, AsaType.BIGINT)

    def stuffed(it: exp.Expr) -> exp.Expr:
        return template(
            "CASE WHEN {start} > length({text}) THEN '' WHEN {start} IS NOT NULL"
            " THEN overlay({text} PLACING {insertion} FROM {position} FOR {length}) END",
            start=start,
            text=text,
            insertion=insertion,
            position=_int(_at_least_1(start)),
            length=_int(it),
        )

    return _text(_counted(call, count, stuffed))


def charindex(call: Call) -> Value:
    """CHARINDEX(found, text[, start]), a bigint: where the first occurrence from `start` on begins; 0 for none.

    An empty `found` is nowhere, as in T-SQL; a start below 1 is the beginning.
    """
    takes(call, 2, 3)
    sought, text = call.argument(0, AsaType.STRING), call.argument(1, AsaType.STRING).node
    start = call.argument(2, AsaType.BIGINT) if call.count == 3 else Value(bigint(1), AsaType.BIGINT, "1")

    def position(it: exp.Expr) -> exp.Expr:
        first = _int(_at_least_1(start.node))
        located = template("CAST(locate({it}, {text}, {start}) AS BIGINT)", it=it, text=text, start=first)
        if sought.text:
            guarded = template("(CASE WHEN {start} IS NOT NULL THEN {located} END)", start=start.node, located=located)
            return located if start.text else guarded
        known = template("{text} IS NOT NULL", text=text)
        if start.node != bigint(1):
            known = template("{known} AND {start} IS NOT NULL", known=known, start=start.node)
        nowhere = "(CASE WHEN {it} = '' AND {known} THEN 0L WHEN {start} IS NOT NULL THEN {located} END)"
        return template(nowhere, it=it, known=known, start=start.node, located=located)

    return Value(once(sought.node, "sought", position), AsaType.BIGINT)


def patindex(call: Call) -> Value:
    """PATINDEX(pattern, text), a bigint: where the first match of LIKE's wildcards begins; 0 for none."""
    takes(call, 2)
    pattern, text = call.literal(0), call.argument(1, AsaType.STRING).node
    try:
        return Value(patterns.position(text, pattern), AsaType.BIGINT)
    except DefinitionError as error:
        raise call.error(0, str(error)) from None


def _only_text(call: Call) -> exp.Expr:
    takes(call, 1)
    return call.argument(0, AsaType.STRING).node


def _texts(call: Call, count: int) -> list[exp.Expr]:
    return [call.argument(index, AsaType.STRING).node for index in range(count)]


def _text(node: exp.Expr) -> Value:
    return Value(node, AsaType.STRING)


def _or_empty(text: Value) -> exp.Expr:
    return spark_call("coalesce", text.node, string(""))


def _joined(call: Call, start: int) -> list[exp.Expr]:
    scalars = (AsaType.STRING, AsaType.BIGINT, AsaType.FLOAT, AsaType.DATETIME, AsaType.BIT)
    return [cast(call.argument(index, *scalars), AsaType.STRING, lenient=False) for index in range(start, call.count)]


def _int(count: exp.Expr) -> exp.Expr:
    """Return a count that is not NULL, as a Spark INT."""
    return template(f"CAST(least({{count}}, {_LONGEST}L) AS INT)", count=count)


def _at_least_1(start: exp.Expr) -> exp.Expr:
    return spark_call("greatest", start, bigint(1))


def _repeated(text: exp.Expr, count: Value) -> Value:
    def repeated(it: exp.Expr) -> exp.Expr:
        return template("(CASE WHEN {it} >= 0L THEN repeat({text}, {count}) END)", it=it, text=text, count=_int(it))

    return _text(once(count.node, "count", repeated))


def _counted(call: Call, count: Value, use: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return what `use` makes of a count that is not NULL; a negative count stops the run."""
    if count.text is not None:
        return use(count.node)
    refused = failure(f"{call.name}: the length is negative")

    def checked(it: exp.Expr) -> exp.Expr:
        used = "(CASE WHEN {it} < 0L THEN {refused} WHEN {it} >= 0L THEN {used} END)"
        return template(used, it=it, refused=refused, used=use(it))

    return once(count.node, "count", checked)
