"""LIKE and PATINDEX: T-SQL's wildcards, case by case and against a naive matcher."""

from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.errors import DefinitionError, RunError
from recapture.model import AsaType
from recapture.query.analyse.patterns import like, like_computed, position_regex
from recapture.query.plan.expressions import NULL, Expr, call, cast_as, column, string
from recapture.query.plan.operations import Op
from tests.draws import examples
from tests.query.functions.calls import columns, computed


def matches(cases: list[tuple[str, str, str | None]]) -> list[bool]:
    return list(computed([like(string(text), pattern, escape) for text, pattern, escape in cases]))


def test_wildcards_match_as_in_t_sql() -> None:
    cases: list[tuple[str, str, str | None, bool]] = [
        ("abc", "a%", None, True),
        ("abc", "A%", None, False),
        ("abc", "a_c", None, True),
        ("a😀c", "a_c", None, True),
        ("abc", "ab", None, False),
        ("abc ", "abc", None, False),
        ("a\nb", "a%b", None, True),
        ("a\nb", "a_b", None, True),
        ("", "", None, True),
        ("", "%", None, True),
        ("5% off", "5[%]%", None, True),
        ("50 off", "5[%]%", None, False),
        ("a_b", "a[_]b", None, True),
        ("a[b", "a[[]b", None, True),
        ("a]b", "a]b", None, True),
        ("carson", "[C-Pc-p]arson", None, True),
        ("larsen", "[^m]arsen", None, True),
        ("marsen", "[^m]arsen", None, False),
        ("a-b", "a[-x]b", None, True),
        ("a-b", "a[x-]b", None, True),
        ("a^b", "a[x^]b", None, True),
        ("a.b", "a[.&&\\w]b", None, True),
        ("axb", "a[.]b", None, False),
        ("x\n", "[x]", None, False),
        ("a\\b", "a\\b", None, True),
        ("a\\%", "a\\_", None, True),
        ("50%", "50!%", "!", True),
        ("50x", "50!%", "!", False),
        ("a!b", "a!!b", "!", True),
        ("axb", "a!xb", "!", True),
        ("a]b", "a[!]x]b", "!", True),
        ("a-b", "a[a!-z]b", "!", True),
        ("abb", "a[a!-z]b", "!", False),
        ("a\\b_", "a\\\\b\\_", "\\", True),
        ("$1 ${x}", "$1 ${_}", None, True),
    ]
    actual = matches([(text, pattern, escape) for text, pattern, escape, _ in cases])
    assert dict(zip(cases, actual, strict=True)) == {case: case[-1] for case in cases}


def test_null_is_neither_like_nor_unlike() -> None:
    nothing = cast_as(NULL, AsaType.STRING)
    row = computed([like(nothing, "a%"), like(nothing, "[a]%"), call(Op.NOT, like(nothing, "a"))])
    assert list(row) == [None, None, None]


@pytest.mark.parametrize(
    ("pattern", "escape", "message"),
    [
        ("a[bc", None, r"`\[` opens a set that is never closed: to match the character itself, write \[\[\]"),
        ("a[]b", None, r"\[\] is a set without a character"),
        ("a[^]b", None, r"\[\^\] is a set without a character"),
        ("[z-a]", None, r"z-a in \[z-a\] runs backwards: write a-z"),
        ("ab!", "!", "the pattern ends with its ESCAPE character !"),
    ],
)
def test_a_pattern_that_can_match_nothing_is_refused(pattern: str, escape: str | None, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        like(column("text"), pattern, escape)


def test_a_computed_pattern_matches_as_one_in_quotes() -> None:
    cases = [
        ("abc", "a%"),
        ("abc", "ab"),
        ("a_c", "a_c"),
        ("a\\b", "a\\b"),
        ("a\\%", "a\\_"),
        ("a\nb", "a%b"),
        ("", "%"),
    ]
    text, pattern = column("text"), column("pattern")
    table = pa.table(dict(zip(("text", "pattern"), map(list, zip(*cases, strict=True)), strict=True)))
    [actual] = columns([like_computed(text, pattern)], table)
    assert actual.to_pylist() == matches([(text, pattern, None) for text, pattern in cases])


def test_a_computed_pattern_with_a_set_stops_the_run() -> None:
    with pytest.raises(RunError, match="LIKE: a computed pattern has a `\\[`"):
        computed([like_computed(string("abc"), string("[a]bc"))])


@dataclass(frozen=True)
class Piece:
    """One step of a pattern: how it is written, and which characters it matches; None for any text."""

    written: str
    takes: frozenset[str] | None


ALPHABET = "ab-]^.[%_\\\n😀"
ANY = Piece("%", None)
ONE = Piece("_", frozenset(ALPHABET))
PLAIN = st.sampled_from("ab-]^.\\\n😀").map(lambda sign: Piece(sign, frozenset(sign)))
QUOTED = st.sampled_from("[%_").map(lambda sign: Piece(f"[{sign}]", frozenset(sign)))
MEMBERS = st.lists(st.sampled_from("ab.[%_\\\n😀"), min_size=1, max_size=3).map("".join)
SETS = MEMBERS.map(lambda members: Piece(f"[{members}]", frozenset(members)))
COMPLEMENTS = MEMBERS.map(lambda members: Piece(f"[^{members}]", frozenset(ALPHABET) - frozenset(members)))
PATTERNS = st.lists(st.one_of(st.just(ANY), st.just(ONE), PLAIN, QUOTED, SETS, COMPLEMENTS), max_size=5)
TEXTS = st.lists(st.text(ALPHABET, max_size=6), min_size=1, max_size=30)


def fits(pieces: list[Piece], text: str) -> bool:
    if not pieces:
        return not text
    first, *rest = pieces
    if first.takes is None:
        return any(fits(rest, text[start:]) for start in range(len(text) + 1))
    return text[:1] in first.takes and text != "" and fits(rest, text[1:])


def place(pieces: list[Piece], text: str) -> int:
    """Return PATINDEX by trial: with a leading %, the first start at which the rest fits; % alone fits at once."""
    if pieces[:1] != [ANY] or len(pieces) == 1:
        return int(fits(pieces, text))
    rest = pieces[1:]
    return next((start + 1 for start in range(len(text) + 1) if fits(rest, text[start:])), 0)


@given(st.lists(PATTERNS, min_size=10, max_size=20), TEXTS)
@settings(max_examples=examples(6))
def test_patterns_agree_with_a_naive_matcher(patterns: list[list[Piece]], texts: list[str]) -> None:
    written = ["".join(piece.written for piece in pieces) for pieces in patterns]
    text = column("text")
    without_sets = [(pieces, pattern) for pieces, pattern in zip(patterns, written, strict=True) if "[" not in pattern]
    expressions = [
        *(like(text, pattern) for pattern in written),
        *(Expr(Op.FIRST_MATCH, [text], [position_regex(pattern)]) for pattern in written),
        *(like_computed(text, string(pattern)) for _, pattern in without_sets),
    ]
    actual = zip(*(values.to_pylist() for values in columns(expressions, pa.table({"text": texts}))), strict=True)
    for value, row in zip(texts, actual, strict=True):
        expected = [
            *(fits(pieces, value) for pieces in patterns),
            *(place(pieces, value) for pieces in patterns),
            *(fits(pieces, value) for pieces, _ in without_sets),
        ]
        assert list(row) == expected, (value, written)
