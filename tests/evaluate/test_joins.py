"""JOIN and look-ups without Spark: the rows are those of nested loops."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.evaluate import join_loops, joins
from recapture.evaluate.joins import joined
from recapture.query.plan.joins import JoinedTable
from recapture.time_model.ticks import TICKS_PER_SECOND
from tests.evaluate.relations import BOUNDS, DECLARED, START, at, relations, table
from tests.join_conditions import always, other_id, same_key
from tests.oracle_joins import Bound, Row, join, rows_of
from tests.oracle_windows import Event
from tests.three_inputs import THREE_INPUTS

INPUT = "telemetry {} TIMESTAMP BY t"
WHOLE = START
"""Extra look-back that reaches all events."""


def seconds(number: float) -> int:
    return round(number * TICKS_PER_SECOND)


def join_of(text: str, **inputs: Any) -> JoinedTable:
    _, [found] = relations(DECLARED + text, **inputs)
    return found


def rows(found: JoinedTable, tables: Mapping[str, pa.Table] | pa.Table, extra: int = WHOLE) -> pa.Table:
    """Return the rows of JOINs; each side reads the table of its view, or all read the same one."""
    read = (lambda _: tables) if isinstance(tables, pa.Table) else tables.__getitem__
    return joined(found, read, BOUNDS, extra)


ONS: dict[str, tuple[int, int, Callable[[Row, Event], bool]]] = {
    "a.k = b.k AND DATEDIFF(second, a, b) BETWEEN 0 AND 5": (0, seconds(5), same_key),
    "DATEDIFF(ss, a, b) BETWEEN -3 AND 4 AND (a.id < b.id OR a.x > b.x)": (-seconds(3), seconds(4), other_id),
    "DATEDIFF(second, a, b) > 0 AND DATEDIFF(second, a, b) < 5": (1, seconds(5) - 1, always),
    "3 >= DATEDIFF(second, b, a) AND 1 <= DATEDIFF(second, b, a)": (-seconds(3), -seconds(1), always),
    "DATEDIFF(ms, a, b) = 0 AND a.k = b.k": (0, 0, same_key),
}
"""ON of a join of the input with itself, each with its limits and what else it means."""

EVENTS = st.lists(
    st.tuples(
        st.sampled_from((0, 0, 0.0000001, 1, 1, 2, 3, 5)),
        st.sampled_from(("a", "a", "b", None)),
        st.one_of(st.none(), st.integers(-3, 3).map(float)),
        st.sampled_from("01"),
    ),
    max_size=25,
)


def stream(steps: list[tuple[float, str | None, float | None, str]]) -> list[Event]:
    events, now = [], 1.0
    for id, (step, k, x, partition) in enumerate(steps):
        now += step
        events.append(at(now, id=id, k=k, x=x, partition=partition))
    return events


def ids(found: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    """Return the time and the ids of each row, sorted."""
    columns = [found[name].to_pylist() for name in ("_system_timestamp", *names)]
    return sorted(zip(*columns, strict=True), key=repr)


def oracle_ids(expected: list[Row]) -> list[tuple[Any, ...]]:
    within = [row for row in expected if row.time <= BOUNDS.end]
    return sorted(((row.time, *(event and event.payload["id"] for event in row.events)) for row in within), key=repr)


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN"])
@pytest.mark.parametrize("on", ONS)
@given(EVENTS)
def test_a_join_has_the_rows_of_nested_loops(
    kind: str, on: str, steps: list[tuple[float, str | None, float | None, str]]
) -> None:
    low, high, condition = ONS[on]
    events = stream(steps)
    text = f"SELECT a.id AS a, b.id AS b INTO out FROM {INPUT.format('a')} {kind} {INPUT.format('b')} ON {on}"
    actual = rows(join_of(text), table(events))
    expected = join(rows_of(events), events, [Bound(0, low, high)], condition, kind == "LEFT JOIN")
    assert ids(actual, "0.id", "1.id") == oracle_ids(expected)


@pytest.mark.parametrize(
    ("kind", "on", "unmatched"),
    [
        ("JOIN", "b.n <> 0 AND a.n = 4 / b.n", set()),
        ("JOIN", "4 / a.n = b.n AND a.n > 0", set()),
        ("LEFT JOIN", "a.n = 4 / b.n AND b.n <> 0", {(0, None), (None, None)}),
    ],
)
def test_a_condition_on_one_side_guards_the_key_of_that_side(
    kind: str, on: str, unmatched: set[tuple[int | None, None]]
) -> None:
    events = [at(second, n=n) for second, n in enumerate((4, 0, None, 1), start=1)]
    on += " AND DATEDIFF(second, a, b) BETWEEN -9 AND 9"
    actual = rows(
        join_of(f"SELECT a.id INTO out FROM {INPUT.format('a')} {kind} {INPUT.format('b')} ON {on}"), table(events)
    )
    assert set(zip(actual["0.n"].to_pylist(), actual["1.n"].to_pylist(), strict=True)) == {(4, 1), (1, 4)} | unmatched


@pytest.mark.parametrize(("second", "second_bounds", "third", "third_bounds"), THREE_INPUTS)
@given(EVENTS)
def test_several_joins_have_the_rows_of_nested_loops(
    second: str,
    second_bounds: list[Bound],
    third: str,
    third_bounds: list[Bound],
    steps: list[tuple[float, str | None, float | None, str]],
) -> None:
    events = stream(steps)
    written = f"{second} {third}".format(b=INPUT.format("b"), c=INPUT.format("c"))
    found = join_of(f"SELECT a.id AS a, b.id AS b, c.id AS c INTO out FROM {INPUT.format('a')} {written}")
    pairs = join(rows_of(events), events, second_bounds, same_key, second.startswith("LEFT"))
    expected = join(pairs, events, third_bounds, same_key, third.startswith("LEFT"))
    assert ids(rows(found, table(events)), "0.id", "1.id", "2.id") == oracle_ids(expected)


def test_a_condition_is_computed_for_a_bounded_number_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    on = "a.n < b.n AND DATEDIFF(second, a, b) BETWEEN 0 AND 60"
    found = join_of(
        f"SELECT a.n AS a, b.n AS b INTO out FROM {INPUT.format('a')} LEFT JOIN {INPUT.format('b')} ON {on}"
    )
    events = table(at(number, n=number * 7 % 10) for number in range(10))
    at_once = rows(found, events)
    sizes: list[int] = []
    pairs = join_loops.pairs

    def observed(*arguments: Any) -> Any:
        found = pairs(*arguments)
        sizes.append(len(found[0]))
        return found

    monkeypatch.setattr(join_loops, "pairs", observed)
    monkeypatch.setattr(joins, "MOST_PAIRS", 4)
    assert rows(found, events) == at_once
    assert max(sizes) == 4
    assert sum(sizes) == 55


def test_keys_are_equal_as_in_spark() -> None:
    """NULL is equal to nothing, NaN to NaN, and -0.0 to 0.0; a bigint is compared with a float as a float."""
    text = "SELECT a.id AS a, b.id AS b INTO out FROM {} JOIN {} ON a.x = b.x AND DATEDIFF(second, a, b) = 0"
    found = join_of(text.format(INPUT.format("a"), INPUT.format("b")))
    values = [0.0, -0.0, math.nan, -math.nan, None]
    actual = ids(rows(found, table(at(1, id=id, x=x) for id, x in enumerate(values))), "0.id", "1.id")
    assert [pair for _, *pair in actual] == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 2], [2, 3], [3, 2], [3, 3]]
    found = join_of(text.replace("b.x", "b.n").format(INPUT.format("a"), INPUT.format("b")))
    assert len(rows(found, table([at(1, x=2.0), at(1, n=2), at(1, n=None)]))) == 1


def test_a_joined_row_has_the_later_arrival_and_no_partition() -> None:
    on = "a.n = b.id AND DATEDIFF(second, a, b) BETWEEN -9 AND 9"
    text = f"SELECT a.id AS a, b.id AS b INTO out FROM {INPUT.format('a')} LEFT JOIN {INPUT.format('b')} ON {on}"
    events = [at(1, id=1, n=2, partition="5"), at(2, id=2, partition="5")]
    found = rows(join_of(text), table(events, arrivals=[30, 20]))
    assert found.to_pylist() == [
        {"_partition": "", "_system_timestamp": events[1].time, "_arrival": 30, "0.n": 2, "0.id": 1, "1.id": 2},
        {"_partition": "", "_system_timestamp": at(11).time, "_arrival": 20, "0.n": None, "0.id": 2, "1.id": None},
    ]


def reference(*versions: tuple[int, int, list[tuple[str | None, int]]]) -> pa.Table:
    """Return reference data: the ids and numbers of each version, and the seconds between which it is in force."""
    parts = [(START + seconds(start), START + seconds(end), *row) for start, end, found in versions for row in found]
    names, columns = ("_valid_from", "_valid_until", "id", "n"), zip(*parts, strict=True)
    return pa.table(dict(zip(names, columns, strict=True)))


def looked_up(kind: str, on: str, events: list[Event], devices: pa.Table) -> list[tuple[Any, Any]]:
    """Return the event and the row of reference data of each row, by their numbers, in order."""
    create = "CREATE TABLE devices (id nvarchar(max), n bigint);\n"
    text = f"SELECT a.id AS a, d.n AS d INTO out FROM {INPUT.format('a')} {kind} devices d ON {on}"
    found = join_of(create + text, references=("devices",))
    tables = {found.sides[0].table: table(events), found.sides[1].table: devices}
    actual = rows(found, tables)
    return list(zip(actual["0.id"].to_pylist(), actual["1.n"].to_pylist(), strict=True))


VERSIONS = reference((0, 2, [("a", 0), ("a", 1), (None, 2)]), (2, 4, [("a", 3), ("b", 4)]), (4, 90, [("b", 5)]))


def test_the_version_in_force_at_the_time_of_the_event_counts() -> None:
    events = [at(time, id=id, k="a") for id, time in enumerate((-1, 1.9999999, 2, 3.9999999, 4))]
    assert looked_up("JOIN", "a.k = d.id", events, VERSIONS) == [(1, 1), (1, 0), (2, 3), (3, 3)]


def test_a_look_up_keeps_the_order_and_the_partition_of_events() -> None:
    """Of several rows of reference data, the last one comes first, as in Spark's hash join."""
    events = [at(1, id=id, k=k) for id, k in enumerate(("b", "a", None, "a"))]
    assert looked_up("LEFT JOIN", "a.k = d.id", events, VERSIONS) == [
        (0, None), (1, 1), (1, 0), (2, None), (3, 1), (3, 0)
    ]  # fmt: skip
    assert looked_up("LEFT JOIN", "a.k >= d.id AND d.n < 1", events, VERSIONS) == [
        (0, 0), (1, 0), (2, None), (3, 0)
    ]  # fmt: skip
    assert looked_up("JOIN", "a.k >= d.id", events[:2], VERSIONS) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_versions_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        looked_up("JOIN", "a.k = d.id", [], reference((0, 3, [("a", 0)]), (2, 4, [("a", 1)])))


def test_analytic_functions_see_the_events_before_a_look_up() -> None:
    create = "CREATE TABLE devices (id nvarchar(max), n bigint);\n"
    lag = "LAG(a.id) OVER (LIMIT DURATION(second, 9))"
    text = f"SELECT a.id AS a, {lag} AS l INTO out FROM {INPUT.format('a')} JOIN devices d ON a.k = d.id"
    found = join_of(create + text, references=("devices",))
    events = table(at(number, id=number, k=k) for number, k in enumerate(("a", "x", "a"), 1))
    actual = rows(found, {found.sides[0].table: events, found.sides[1].table: VERSIONS})
    assert list(zip(actual["0.id"].to_pylist(), actual["0.@f0"].to_pylist(), strict=True)) == [
        (1, None), (1, None), (3, 2)
    ]  # fmt: skip
