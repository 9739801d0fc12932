"""The string functions. A position counts from 1; a character is a Unicode code point; case and blanks count.

What Microsoft's reference does not say follows T-SQL. Letters change case as in Unicode, whatever the language.
"""

from collections.abc import Callable, Sequence

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.analyse.casts import cast
from recapture.query.analyse.values import Value
from recapture.query.functions.call import MANY, Call, takes
from recapture.query.plan.expressions import Expr, bigint, failure, string
from recapture.query.plan.operations import Op
from recapture.query.plan.regular import PatternError

WHITE_SPACE = (
    "\t\n\x0b\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
"""White space that TRIM removes: ASA's list. T-SQL removes blanks only."""


def space(call: Call) -> Value:
    """SPACE(count); NULL for a negative count."""
    takes(call, 1)
    return _string(Op.REPEAT, [string(" "), call.argument(0, AsaType.BIGINT).node])


def concat(call: Call) -> Value:
    """CONCAT(x, y, …): a NULL is an empty text; values of other types are cast to text."""
    takes(call, 2, MANY)
    return _string(Op.JOIN_STRINGS, [string(""), *_joined(call, 0)])


def concat_ws(call: Call) -> Value:
    """CONCAT_WS(separator, x, y, …): a NULL is left out, with its separator; a separator of NULL is an empty text."""
    takes(call, 3, MANY)
    separator = call.argument(0, AsaType.STRING)
    between = separator.node if separator.text is not None else _or_empty(separator)
    return _string(Op.JOIN_STRINGS, [between, *_joined(call, 1)])


def taking(op: Op) -> Callable[[Call], Value]:
    """Return LEFT(text, length) or RIGHT(text, length); a negative length stops the run."""

    def take(call: Call) -> Value:
        takes(call, 2)
        text, count = call.argument(0, AsaType.STRING).node, call.argument(1, AsaType.BIGINT)
        return _string(op, [text, count.node, *_if_negative(call, count)])

    return take


def substring(call: Call) -> Value:
    """SUBSTRING(text, start, length): what of the places start to start + length - 1 the text has.

    A start below 1 so costs length. A start beyond the end gives an empty text; a negative length stops the run.
    """
    takes(call, 3)
    text = call.argument(0, AsaType.STRING).node
    start, count = call.argument(1, AsaType.BIGINT), call.argument(2, AsaType.BIGINT)
    op = Op.SUBSTRING_FROM if start.text is not None and int(start.text) >= 1 else Op.SUBSTRING
    return _string(op, [text, start.node, count.node, *_if_negative(call, count)])


def stuff(call: Call) -> Value:
    """STUFF(text, start, length, insertion): `length` characters from `start` give way to the insertion.

    A start below 1 is 1, a start beyond the end gives an empty text (ASA's rules, not T-SQL's); an insertion of NULL
    is an empty text; a negative length stops the run.
    """
    takes(call, 4)
    text, insertion = call.argument(0, AsaType.STRING).node, _or_empty(call.argument(3, AsaType.STRING))
    start, count = call.argument(1, AsaType.BIGINT).node, call.argument(2, AsaType.BIGINT)
    return _string(Op.STUFF, [text, start, count.node, insertion, *_if_negative(call, count)])


def charindex(call: Call) -> Value:
    """CHARINDEX(found, text[, start]), a bigint: where the first occurrence from `start` on begins; 0 for none.

    An empty `found` is nowhere, as in T-SQL; a start below 1 is the beginning.
    """
    takes(call, 2, 3)
    sought, text = call.argument(0, AsaType.STRING), call.argument(1, AsaType.STRING).node
    start = call.argument(2, AsaType.BIGINT) if call.count == 3 else Value(bigint(1), AsaType.BIGINT, "1")
    known = (bool(sought.text), bool(start.text))
    return Value(Expr(Op.POSITION, [sought.node, text, start.node], known), AsaType.BIGINT)


def matching(regex_of: Callable[[str], str], pattern_index: int) -> Callable[[Call], Value]:
    """Return PATINDEX(pattern, text) or REGEXMATCH(text, pattern): where the first match begins, from 1; 0 for none.

    `pattern_index` is the place of the pattern among the two arguments.
    """

    def match(call: Call) -> Value:
        takes(call, 2)
        arguments = [call.argument(index, AsaType.STRING) for index in (0, 1)]
        pattern, text = arguments[pattern_index], arguments[1 - pattern_index].node
        if pattern.text is None:
            return Value(Expr(Op.FIRST_MATCH_COMPUTED, [text, pattern.node], [call.name]), AsaType.BIGINT)
        try:
            return Value(Expr(Op.FIRST_MATCH, [text], [regex_of(pattern.text)]), AsaType.BIGINT)
        except (DefinitionError, PatternError) as error:
            raise call.error(pattern_index, str(error)) from None

    return match


def _string(op: Op, arguments: Sequence[Expr]) -> Value:
    return Value(Expr(op, arguments), AsaType.STRING)


def _or_empty(text: Value) -> Expr:
    return Expr(Op.COALESCE, [text.node, string("")])


def _joined(call: Call, start: int) -> list[Expr]:
    scalars = (AsaType.STRING, AsaType.BIGINT, AsaType.FLOAT, AsaType.DATETIME, AsaType.BIT)
    return [cast(call.argument(index, *scalars), AsaType.STRING, lenient=False) for index in range(start, call.count)]


def _if_negative(call: Call, count: Value) -> list[Expr]:
    """Return what stands for a negative count; nothing for a literal, which is not negative."""
    return [] if count.text is not None else [failure(f"{call.name}: the length is negative")]
