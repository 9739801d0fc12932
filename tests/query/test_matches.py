"""MATCH_RECOGNIZE: the matches of a pattern are those that the oracle finds by trying everything."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.run.undocumented import undocumented
from tests.draws import slow
from tests.oracle_matches import Condition, Part, Rows, matches
from tests.oracle_windows import Event
from tests.query.fast_path import Slice, compiled, published
from tests.query.streams import FIRST_WEEK, WEEK, adjacent, at_once, described, or_null, seconds

LENGTH = seconds(20)
DECLARED = "CREATE TABLE telemetry (t datetime, id bigint, k nvarchar(max), n bigint, x float);\n"

_STEPS = st.sampled_from((0, 0, 1, seconds(1), seconds(1), seconds(2), seconds(5), LENGTH - 1, LENGTH))
_PAYLOADS = at_once(
    k=("a", "a", "b", None),
    n=or_null(range(-2, 4)),
    x=or_null([halves / 2 for halves in range(-6, 7)]),
)


def one_or_more(*parts: str | Part) -> Part:
    return Part(parts, least=1, most=99)


def any_times(*parts: str | Part) -> Part:
    return Part(parts, least=0, most=99)


def maybe(*parts: str | Part) -> Part:
    return Part(parts, least=0)


def either(*parts: str | Part) -> Part:
    return Part(parts, is_choice=True)


def is_positive(event: Event, rows: Rows) -> bool:
    return event.payload["n"] is not None and event.payload["n"] > 0


def is_small(event: Event, rows: Rows) -> bool:
    return event.payload["n"] is not None and event.payload["n"] < 2


def is_any(event: Event, rows: Rows) -> bool:
    return True


def is_above(event: Event, rows: Rows) -> bool:
    """B.n > Max(A.n), and NULL is not."""
    most = rows.greatest("A", "n")
    return event.payload["n"] is not None and most is not None and event.payload["n"] > most


def rises(event: Event, rows: Rows) -> bool:
    """Last(B.n) > First(B.n) OR Min(B.n) >= 0, with this event."""
    least, (first, last) = rows.least("B", "n"), (rows.first("B", "n"), rows.last("B", "n"))
    return (least is not None and least >= 0) or (first is not None and last is not None and last > first)


POSITIVE_A, SMALL_B, ANY_C = "A AS A.n > 0", "B AS B.n < 2", "C AS 1 = 1"
PLAIN: dict[str, Condition] = {"A": is_positive, "B": is_small, "C": is_any}
WRITTEN = {"A": POSITIVE_A, "B": SMALL_B, "C": ANY_C}

CASES: dict[str, tuple[Part, str, dict[str, Condition]]] = {
    "A B": (Part(("A", "B")), "", PLAIN),
    "A+ B+": (Part((one_or_more("A"), one_or_more("B"))), "", PLAIN),
    "A* B? C": (Part((any_times("A"), maybe("B"), "C")), "", PLAIN),
    "A (B | C)": (Part(("A", either("B", "C"))), "", PLAIN),
    "(B | A B | C C)+": (one_or_more(either("B", Part(("A", "B")), Part(("C", "C")))), "", PLAIN),
    "((A? B?)* C){2}": (Part((Part((any_times(maybe("A"), maybe("B")), "C")),), least=2, most=2), "", PLAIN),
    "A{2,} B{0,1}": (Part((Part(("A",), least=2, most=99), maybe("B"))), "", PLAIN),
    "(A | B){1,3} A": (Part((Part((either("A", "B"),), least=1, most=3), "A")), "", PLAIN),
    "A+ B+ C?": (
        Part((one_or_more("A"), one_or_more("B"), maybe("C"))),
        "B AS B.n > Max(A.n)",
        {**PLAIN, "B": is_above},
    ),
    "(B | C)* A": (
        Part((any_times(either("B", "C")), "A")),
        "B AS Last(B.n) > First(B.n) OR Min(B.n) >= 0",
        {**PLAIN, "B": rises},
    ),
}


@st.composite
def chopped(draw: st.DrawFn, week: int) -> list[Slice]:
    """Draw a stream in a week of its own, with equal times and gaps of the limit, and its adjacent slices."""
    zero = seconds((FIRST_WEEK + week) * WEEK + draw(st.integers(0, 10)))
    times = itertools.accumulate(draw(st.lists(_STEPS, min_size=4, max_size=12)), initial=zero)
    events = [Event(time, {"id": id, **draw(_PAYLOADS)}, draw(st.sampled_from("01"))) for id, time in enumerate(times)]
    widths = draw(st.lists(st.sampled_from((2, 7, 20)), min_size=1, max_size=3))
    inner = itertools.accumulate(map(seconds, widths), initial=zero)
    edges = [zero - seconds(1), *(edge for edge in inner if edge < events[-1].time), events[-1].time]
    return [Slice(start, end, events) for start, end in itertools.pairwise(sorted(set(edges)))]


def query(pattern: str, changed: str, keys: str) -> str:
    """Return a query that publishes what every aggregate takes of a match."""
    names = [name for name in "ABC" if name in pattern]
    definitions = [changed if changed.startswith(name) else WRITTEN[name] for name in names]
    measures = [
        f"{function}({name}.{field}) AS {function}{name}"
        for name in names
        for function, field in (("First", "id"), ("Last", "x"), ("Min", "n"), ("Max", "x"))
    ]
    return (
        f"{DECLARED}SELECT System.Timestamp() AS e, m.* INTO out FROM telemetry TIMESTAMP BY t MATCH_RECOGNIZE (\n"
        f"LIMIT DURATION(second, 20) {keys} MEASURES {', '.join(measures)}, Classifier() AS classes\n"
        f"AFTER MATCH SKIP TO NEXT ROW PATTERN ({pattern}) DEFINE {', '.join(definitions)}) AS m"
    )


def expected(rows: Rows, pattern: str) -> list[Any]:
    names = [name for name in "ABC" if name in pattern]
    taken = [
        (rows.first(name, "id"), rows.last(name, "x"), rows.least(name, "n"), rows.greatest(name, "x"))
        for name in names
    ]
    return [rows.assigned[-1][1].time // 10 * 10, *itertools.chain(*taken), rows.classes]


def in_order(rows: Sequence[Any]) -> list[Any]:
    return sorted(rows, key=repr)


@pytest.mark.parametrize("pattern", CASES)
@slow(1)
@given(slices=adjacent(map(chopped, range(4))))
def test_slices_have_the_matches_of_the_whole_stream(pattern: str, slices: list[Slice]) -> None:
    part, changed, conditions = CASES[pattern]
    keys = "" if changed.startswith("B AS Last") else "PARTITION BY k"
    actual = published(compiled(query(pattern, changed, keys)), slices)
    for slice_, rows in zip(slices, actual, strict=True):
        found = matches(slice_.events, part, conditions, LENGTH, ("k",) if keys else ())
        ending = [match for match in found if slice_.start < match.assigned[-1][1].time <= slice_.end]
        expected_rows = [expected(match, pattern) for match in ending]
        assert in_order([list(row.values()) for row in rows]) == in_order(expected_rows), described(slice_)


@pytest.mark.parametrize(("pattern", "warns"), [("A B", False), ("A+ B", False), ("A B+", True), ("A B?", True)])
def test_a_plan_warns_if_a_complete_pattern_may_go_on(pattern: str, warns: bool) -> None:
    warnings = [*undocumented(compiled(query(pattern, "", "")))]
    assert ["the pattern of MATCH_RECOGNIZE can match again" in warning for warning in warnings] == [True] * warns
