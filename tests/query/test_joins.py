"""JOIN agrees with the oracle, each slice computed from no more than it may read."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given

from recapture.time_model.ticks import TICKS_PER_MICROSECOND
from tests.draws import slow
from tests.join_conditions import always, other_id, same_key
from tests.oracle_joins import Bound, Row, join, rows_of
from tests.oracle_windows import Event, Hopping, Session, Sliding, Window, contents, ending_in
from tests.query.fast_path import Slice, compiled, published
from tests.query.streams import batches, described, seconds
from tests.three_inputs import THREE_INPUTS

CREATE = "CREATE TABLE telemetry (t datetime, k nvarchar(max), id bigint, n bigint, x float);\n"
INPUT = "telemetry {} TIMESTAMP BY t"
IDS = "SELECT System.Timestamp() AS e, a.id AS a, b.id AS b INTO out "


@dataclass(frozen=True)
class Case:
    """ON of a self-join, and what it means."""

    on: str
    low: int
    high: int
    condition: Callable[[Row, Event], bool] = always


CASES = [
    Case("a.k = b.k AND DATEDIFF(second, a, b) BETWEEN 0 AND 5", 0, seconds(5), same_key),
    Case("DATEDIFF(ss, a, b) BETWEEN -3 AND 4 AND (a.id < b.id OR a.x > b.x)", -seconds(3), seconds(4), other_id),
    Case("DATEDIFF(second, a, b) > 0 AND DATEDIFF(second, a, b) < 5", 1, seconds(5) - 1),
    Case("3 >= DATEDIFF(second, b, a) AND 1 <= DATEDIFF(second, b, a)", -seconds(3), -seconds(1)),
    Case("DATEDIFF(ms, a, b) = 0 AND a.k = b.k", 0, 0, same_key),
    Case("DATEDIFF(second, b, a) = 2", -seconds(2), -seconds(2)),
    Case("(a.k = b.k) AND (DATEDIFF(mi, a, b) >= 0 AND DATEDIFF(second, a, b) <= 20)", 0, seconds(20), same_key),
]


def oracle_rows(rows: Iterable[Row], slice_: Slice) -> list[tuple[Any, ...]]:
    """Return the rows that a slice publishes: System.Timestamp, and the id of each side."""
    return in_order(
        (to_microsecond(row.time), *(event and event.payload["id"] for event in row.events))
        for row in rows
        if slice_.start < row.time <= slice_.end
    )


def in_order(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=repr)


def to_microsecond(time: int) -> int:
    return time // TICKS_PER_MICROSECOND * TICKS_PER_MICROSECOND


def computed_rows(rows: Iterable[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return in_order(tuple(row[column] for column in ("e", *columns)) for row in rows)


@pytest.mark.parametrize("kind", ["JOIN", "LEFT OUTER JOIN"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.on)
@slow(1)
@given(slices=batches(size=20))
def test_a_join_of_the_input_with_itself_has_the_rows_of_the_oracle(kind: str, case: Case, slices: list[Slice]) -> None:
    query = compiled(f"{CREATE}{IDS} FROM {INPUT.format('a')} {kind} {INPUT.format('b')} ON {case.on}")
    bounds = [Bound(0, case.low, case.high)]
    for slice_, rows in zip(slices, published(query, slices), strict=True):
        expected = join(rows_of(slice_.events), slice_.events, bounds, case.condition, kind.startswith("LEFT"))
        assert computed_rows(rows, "a", "b") == oracle_rows(expected, slice_), described(slice_)


ALARMS = CREATE.replace("telemetry", "alarms")


def events_by_input(slice_: Slice) -> dict[str, list[Event]]:
    """Return the events of a stream by input; every third one is an alarm."""
    events: dict[str, list[Event]] = {"telemetry": [], "alarms": []}
    for event in slice_.events:
        alias = "telemetry" if event.payload["id"] % 3 else "alarms"
        events[alias].append(Event(event.time, event.payload | {"input": alias}, event.partition))
    return events


@pytest.mark.parametrize("kind", ["JOIN", "LEFT OUTER JOIN"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.on)
@slow(1)
@given(slices=batches(size=20))
def test_a_join_of_two_inputs_has_the_rows_of_the_oracle(kind: str, case: Case, slices: list[Slice]) -> None:
    text = f"{IDS} FROM {INPUT.format('a')} {kind} alarms b TIMESTAMP BY t ON {case.on}"
    query = compiled(f"{CREATE}{ALARMS}{text}", inputs=("telemetry", "alarms"))
    sides = [events_by_input(slice_) for slice_ in slices]
    read = [
        Slice(slice_.start, slice_.end, [*inputs["telemetry"], *inputs["alarms"]])
        for slice_, inputs in zip(slices, sides, strict=True)
    ]
    bounds = [Bound(0, case.low, case.high)]
    for slice_, inputs, rows in zip(slices, sides, published(query, read), strict=True):
        expected = join(rows_of(inputs["telemetry"]), inputs["alarms"], bounds, case.condition, kind.startswith("LEFT"))
        assert computed_rows(rows, "a", "b") == oracle_rows(expected, slice_), described(slice_)


WINDOWS: dict[str, Window] = {
    "five": Hopping(seconds(5), seconds(5)),
    "sliding": Sliding(seconds(4)),
    "session": Session(seconds(3), seconds(8)),
}


STEPS = (
    "WITH five AS (SELECT k, COUNT(*) AS n FROM telemetry TIMESTAMP BY t GROUP BY k, Tumbling(second, 5)),\n"
    "sliding AS (SELECT k, COUNT(*) AS n FROM telemetry TIMESTAMP BY t GROUP BY k, Sliding(second, 4)),\n"
    "session AS (SELECT k, COUNT(*) AS n FROM telemetry TIMESTAMP BY t GROUP BY k, Session(second, 3, 8)),\n"
    "plain AS (SELECT k, id AS n FROM telemetry TIMESTAMP BY t WHERE x > 0)\n"
)


def step(name: str, events: Sequence[Event]) -> list[Event]:
    """Return the rows of a step of STEPS."""
    if name == "plain":
        chosen = [event for event in events if (event.payload["x"] or 0) > 0]
        return [Event(event.time, {"k": event.payload["k"], "n": event.payload["id"]}) for event in chosen]
    window = WINDOWS[name]
    return [Event(row.end, {"k": row.group[0], "n": len(row.members)}) for row in contents(events, window, ("k",))]


@pytest.mark.parametrize(
    ("left", "kind", "right", "difference", "bound"),
    [
        ("plain", "JOIN", "five", "DATEDIFF(second, a, b) BETWEEN 0 AND 5", Bound(0, 0, seconds(5))),
        ("five", "JOIN", "sliding", "DATEDIFF(second, b, a) BETWEEN 0 AND 3", Bound(0, -seconds(3), 0)),
        ("five", "LEFT JOIN", "plain", "DATEDIFF(mcs, a, b) BETWEEN 1 AND 6000000", Bound(0, 10, seconds(6))),
        ("plain", "LEFT JOIN", "session", "DATEDIFF(second, a, b) BETWEEN 0 AND 3", Bound(0, 0, seconds(3))),
        ("five", "LEFT JOIN", "five", "DATEDIFF(ss, a, b) BETWEEN -10 AND -5", Bound(0, -seconds(10), -seconds(5))),
    ],
)
@slow(1)
@given(slices=batches(size=20))
def test_a_join_of_steps_has_the_rows_of_the_oracle(
    left: str,
    kind: str,
    right: str,
    difference: str,
    bound: Bound,
    slices: list[Slice],
) -> None:
    query = compiled(
        f"{CREATE}{STEPS}SELECT System.Timestamp() AS e, a.k AS k, a.n AS a, b.n AS b INTO out"
        f" FROM {left} a {kind} {right} b ON a.k = b.k AND {difference}"
    )
    for slice_, rows in zip(slices, published(query, slices), strict=True):
        steps = step(left, slice_.events), step(right, slice_.events)
        joined = join(rows_of(steps[0]), steps[1], [bound], same_key, kind == "LEFT JOIN")
        expected = [
            (to_microsecond(row.time), a.payload["k"], a.payload["n"], b and b.payload["n"])
            for row in joined
            for a, b in [row.events]
            if a is not None and slice_.start < row.time <= slice_.end
        ]
        if not any(row.get("_unanchored") for row in rows):
            assert computed_rows(rows, "k", "a", "b") == in_order(expected), described(slice_)


THREE = "SELECT System.Timestamp() AS e, a.id AS a, b.id AS b, c.id AS c INTO out "


@pytest.mark.parametrize(("second", "second_bounds", "third", "third_bounds"), THREE_INPUTS)
@slow(1)
@given(slices=batches(size=15))
def test_several_joins_have_the_rows_of_the_oracle(
    second: str,
    second_bounds: list[Bound],
    third: str,
    third_bounds: list[Bound],
    slices: list[Slice],
) -> None:
    joins = f"{second} {third}".format(b=INPUT.format("b"), c=INPUT.format("c"))
    query = compiled(f"{CREATE}{THREE} FROM {INPUT.format('a')} {joins}")
    for slice_, rows in zip(slices, published(query, slices), strict=True):
        pairs = join(rows_of(slice_.events), slice_.events, second_bounds, same_key, second.startswith("LEFT"))
        expected = join(pairs, slice_.events, third_bounds, same_key, third.startswith("LEFT"))
        assert computed_rows(rows, "a", "b", "c") == oracle_rows(expected, slice_), described(slice_)


@pytest.mark.parametrize(
    ("window", "means"),
    [
        ("HoppingWindow(second, 10, 4)", Hopping(seconds(10), seconds(4))),
        ("SlidingWindow(second, 5)", Sliding(seconds(5))),
        ("SessionWindow(second, 3, 8)", Session(seconds(3), seconds(8))),
    ],
)
@slow(1)
@given(slices=batches(size=15))
def test_a_window_over_a_left_join_has_the_rows_of_the_oracle(
    window: str, means: Hopping | Sliding | Session, slices: list[Slice]
) -> None:
    """The sides are read as far back as the window and the bounds together look."""
    query = compiled(
        f"{CREATE}SELECT System.Timestamp() AS e, a.k AS k, COUNT(*) AS n, COUNT(b.id) AS matches, SUM(b.x) AS total"
        f" INTO out FROM {INPUT.format('a')} LEFT JOIN {INPUT.format('b')}"
        f" ON a.k = b.k AND DATEDIFF(second, a, b) BETWEEN 1 AND 6 GROUP BY a.k, {window}"
    )
    bounds = [Bound(0, seconds(1), seconds(6))]
    for slice_, rows in zip(slices, published(query, slices), strict=True):
        joined = join(rows_of(slice_.events), slice_.events, bounds, same_key, outer=True)
        events = [
            Event(row.time, {"k": a.payload["k"], "b": b and b.payload["id"], "x": b and b.payload["x"]})
            for row in joined
            for a, b in [row.events]
            if a is not None
        ]
        expected = []
        for row in ending_in(contents(events, means, ("k",)), slice_.start, slice_.end):
            present = [event.payload["x"] for event in row.members if event.payload["x"] is not None]
            matches = sum(event.payload["b"] is not None for event in row.members)
            total = sum(present) if present else None
            expected.append((to_microsecond(row.end), row.group[0], len(row.members), matches, total))
        if not any(row.get("_unanchored") for row in rows):
            assert computed_rows(rows, "k", "n", "matches", "total") == in_order(expected), described(slice_)


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
def test_a_slice_has_the_same_joined_rows_alone_and_among_others(kind: str) -> None:
    query = compiled(
        f"{CREATE}{IDS} FROM {INPUT.format('a')} {kind} {INPUT.format('b')} ON DATEDIFF(second, a, b) BETWEEN 1 AND 7"
    )
    zero = seconds(10**10)
    events = [Event(zero + seconds(time), {"id": id}) for id, time in enumerate((1, 2, 2, 5, 9, 10, 22, 23, 30, 37))]
    edges = [zero + seconds(edge) for edge in (0, 10, 15, 30, 60)]
    slices = [Slice(start, end, events) for start, end in itertools.pairwise(edges)]
    alone = [published(query, [slice_])[0] for slice_ in reversed(slices)][::-1]
    among = published(query, slices)
    assert [computed_rows(rows, "a", "b") for rows in alone] == [computed_rows(rows, "a", "b") for rows in among]
    whole = join(rows_of(events), events, [Bound(0, seconds(1), seconds(7))], always, kind == "LEFT JOIN")
    assert sum(map(len, among)) == len(whole)
