"""T-SQL's wildcards: % any text, _ one character, [a-f] one of these, [^a-f] one of the others.

A pattern in quotes is translated when the query is compiled; one that each row computes cannot have sets.
Letter case and blanks at the end count, and ranges go by code point; Microsoft's page "WHERE (Azure Stream Analytics)"
does not say.
"""

from recapture.errors import DefinitionError
from recapture.query.plan.expressions import Expr, call, failure
from recapture.query.plan.operations import Op

_MANY = "%"
_ONE = "_"


def like(text: Expr, pattern: str, escape: str | None = None) -> Expr:
    """Return the condition `text LIKE pattern [ESCAPE escape]`.

    x LIKE '[ab]%' => matches[(?s)^[ab].*\\z](x)

    Raise DefinitionError if the pattern can never match.
    """
    pieces = _pieces(pattern, escape)
    if any(wild and piece not in (_MANY, _ONE) for piece, wild in pieces):
        return Expr(Op.MATCHES, (text,), (f"(?s)^{_regex(pieces)}{_END}",))
    plain = "".join("\\" + piece if not wild and piece in r"\%_" else piece for piece, wild in pieces)
    return Expr(Op.LIKE, (text,), (plain,))


def like_computed(text: Expr, pattern: Expr) -> Expr:
    """Return the condition `text LIKE pattern` for a pattern that each row computes; a `[` in it stops the run."""
    refused = failure("LIKE: a computed pattern has a `[`: write a set into a pattern in quotes, or use CHARINDEX")
    return call(Op.LIKE_COMPUTED, pattern, text, refused)


def position_regex(pattern: str) -> str:
    """Return the regular expression of `Op.FIRST_MATCH` for a pattern of PATINDEX.

    '%ab' => (?s)^(@.*?)(?:ab\\z)

    Raise DefinitionError if the pattern can never match.
    """
    pieces = _pieces(pattern, None)
    anywhere = bool(pieces) and pieces[0] == (_MANY, True)
    open_end = bool(pieces) and pieces[-1] == (_MANY, True)
    inner = _regex(pieces[anywhere : len(pieces) - (open_end and len(pieces) > anywhere)])
    return first_match_regex(inner + ("" if open_end else _END), anywhere)


_END = r"\z"


def first_match_regex(regex: str, anywhere: bool = True) -> str:
    """Return the regular expression of `Op.FIRST_MATCH` that finds where a regular expression first matches.

    The text is searched after an added `@`, so that the text before the match is never empty.
    """
    return f"(?s)^({'@.*?' if anywhere else '@'})(?:{regex})"


def _pieces(pattern: str, escape: str | None) -> list[tuple[str, bool]]:
    """Return the pieces of a pattern, and whether each is a wildcard; a set is a piece of a regular expression."""
    pieces: list[tuple[str, bool]] = []
    index = 0
    while index < len(pattern):
        sign = pattern[index]
        if sign == escape:
            if index + 1 == len(pattern):
                raise DefinitionError(f"the pattern ends with its ESCAPE character {escape}, so it can never match")
            pieces.append((pattern[index + 1], False))
            index += 2
        elif sign == "[":
            members, index = _set(pattern, index, escape)
            pieces.append((members, True))
        else:
            pieces.append((sign, sign in (_MANY, _ONE)))
            index += 1
    return pieces


def _set(pattern: str, start: int, escape: str | None) -> tuple[str, int]:
    """Return the set that opens at `start`, as a piece of a regular expression, and the position after it."""
    index = start + 1
    denied = pattern[index : index + 1] == "^"
    index += denied
    members: list[tuple[str, bool]] = []
    while index < len(pattern) and pattern[index] != "]":
        escaped = pattern[index] == escape and index + 1 < len(pattern)
        index += escaped
        members.append((pattern[index], escaped))
        index += 1
    if index >= len(pattern):
        raise DefinitionError("`[` opens a set that is never closed: to match the character itself, write [[]")
    written = pattern[start : index + 1]
    if not members:
        raise DefinitionError(f"{written} is a set without a character, so the pattern can never match")
    ranges, number = [], 0
    while number < len(members):
        first = last = members[number][0]
        if number + 2 < len(members) and members[number + 1] == ("-", False):
            last = members[number + 2][0]
            number += 2
        if first > last:
            raise DefinitionError(f"{first}-{last} in {written} runs backwards: write {last}-{first}")
        ranges.append(literal(first) if first == last else f"{literal(first)}-{literal(last)}")
        number += 1
    return f"[{'^' if denied else ''}{''.join(ranges)}]", index + 1


def _regex(pieces: list[tuple[str, bool]]) -> str:
    wild = {_MANY: ".*", _ONE: "."}
    return "".join(wild.get(piece, piece) if is_wild else literal(piece) for piece, is_wild in pieces)


def literal(character: str) -> str:
    """Return a character so that it stands for itself in a regular expression, in a set or outside."""
    return character if character.isalnum() or not character.isascii() else "\\" + character
