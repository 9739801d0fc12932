"""REGEXMATCH: a translated pattern means in RE2 what the pattern means in Python, without case."""

import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.query.analyse.ecmascript import match_regex
from recapture.query.plan.expressions import Expr, column
from recapture.query.plan.operations import Op
from recapture.query.plan.regular import PatternError, pattern_of
from tests.draws import examples
from tests.query.functions.calls import columns

PARTS = ["a", "B", "k", "1", "_", " ", "é", "Ω", ".", "\\x41", "\\u00e9", "\\.", "\\n"]
SETS = ["[0-9]", "[a-c]", "[^B-k]", "[à-é]", "[_.-]", "[\\x41-\\x43]"]
REPEATS = ["", "", "", "*", "+", "?", "{2}", "{1,3}", "*?"]
TEXTS = [
    "",
    "a",
    "ab",
    "AB",
    "1_",
    "k K",
    "\u212a",
    "é",
    "É",
    "ω",
    "a.c",
    "A\nb",
    "\n",
    "aa11",
    "Bk a1_éΩ",
    "  ",
    "cab",
]
PIECES = st.tuples(st.sampled_from(PARTS + SETS), st.sampled_from(REPEATS)).map("".join)
PATTERNS = st.lists(st.lists(PIECES, min_size=1, max_size=4).map("".join), min_size=1, max_size=2).map("|".join)


@given(st.lists(PATTERNS, min_size=10, max_size=20))
@settings(max_examples=examples(20))
def test_a_pattern_means_in_re2_what_it_means_in_python(patterns: list[str]) -> None:
    regexes = [match_regex(pattern) for pattern in patterns]
    assert all(pattern_of(regex).re2 for regex in regexes)
    calls = [Expr(Op.FIRST_MATCH, [column("text")], [regex]) for regex in regexes]
    for pattern, actual in zip(patterns, columns(calls, pa.table({"text": TEXTS})), strict=True):
        found = [re.search(pattern, text, re.IGNORECASE | re.DOTALL) for text in TEXTS]
        assert actual.to_pylist() == [match.start() + 1 if match else 0 for match in found], pattern


@pytest.mark.parametrize(
    ("pattern", "text", "place"),
    [
        ("\\d\\w\\s", "x 1_\t", 3),
        ("\\D\\W\\S", "1a-é", 2),
        ("[\\d_-]+$", "a1-2_\n", 2),
        ("\\bk\\B", "ok ka", 4),
        ("^(a|B)(?=c)(?!CD)", "bcx", 1),
        ("[^]]", "a", None),
        ("[\\b]", "a", None),
        ("(?<=a)b", "ab", None),
        ("a{2}{3}", "aaaaaa", None),
        ("\\ud800", "a", None),
        ("stra[ß]e", "strasse", None),
    ],
)
def test_a_pattern_matches_at_a_place_or_is_refused(pattern: str, text: str, place: int | None) -> None:
    if place is None:
        with pytest.raises(PatternError, match="REGEXMATCH cannot use this pattern"):
            match_regex(pattern)
        return
    [actual] = columns([Expr(Op.FIRST_MATCH, [column("text")], [match_regex(pattern)])], pa.table({"text": [text]}))
    assert actual.to_pylist() == [place]
