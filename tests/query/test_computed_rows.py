"""What queries compute on a few events; `tests/cases` has the rows of more queries."""

import math
from datetime import UTC, datetime

import pytest

from recapture.errors import RunError
from recapture.time_model.ticks import from_datetime, from_seconds
from tests.oracle_windows import Event
from tests.query import fast_path
from tests.query.fast_path import Slice
from tests.query.small_stream import HOUR, START, Row, at, rows

COUNTS = "SELECT System.Timestamp() AS e, COUNT(*) AS n INTO out FROM telemetry TIMESTAMP BY t GROUP BY"


@pytest.mark.parametrize(
    ("window", "counts"),
    [
        ("Tumbling(minute, 10)", {600: 1, 3600: 1}),
        ("Hopping(minute, 10, 5)", {300: 3, 600: 1, 3600: 1}),
        ("Tumbling(day, 1)", {}),
        ("Hopping(day, 2, 1)", {}),
    ],
)
def test_only_windows_that_end_in_the_slice_are_published(window: str, counts: dict[float, int]) -> None:
    [actual] = rows(f"{COUNTS} {window}", [at(-1), at(0), at(1), at(3600), at(3601)])
    assert {row["e"]: row["n"] for row in actual} == counts


def test_empty_groups_give_no_row() -> None:
    assert rows(f"{COUNTS} Tumbling(second, 10)", []) == [[]]
    keyed = COUNTS.replace("System.Timestamp() AS e", "k")
    actual = rows(f"{keyed} k, Hopping(second, 10, 10)", [at(1, k="a"), at(11, k="b")])
    assert actual == [[{"k": "a", "n": 1}, {"k": "b", "n": 1}]]


def test_seven_day_windows_end_on_monday_midnight() -> None:
    monday = datetime(2026, 3, 2, tzinfo=UTC)
    assert monday.weekday() == 0
    end = from_datetime(monday)
    slice_ = Slice(end - HOUR, end, [Event(START + 1, {})])
    query = fast_path.compiled(f"{COUNTS} Tumbling(day, 7)")
    assert fast_path.published(query, [slice_]) == [[{"e": end, "n": 1}]]


def test_slices_are_computed_apart() -> None:
    query = fast_path.compiled("SELECT COUNT(*) AS n INTO out FROM telemetry GROUP BY Tumbling(hour, 1)")
    events = [Event(START + from_seconds(second), {}) for second in (1, 2, 3601)]
    slices = [Slice(START, START + HOUR, events), Slice(START + HOUR, START + 2 * HOUR, events)]
    assert fast_path.published(query, slices) == [[{"n": 2}], [{"n": 1}]]


@pytest.mark.parametrize(
    ("item", "events", "message"),
    [
        ("SUM(i / j)", [at(1, i=1, j=0)], "DIVIDE_BY_ZERO"),
        ("SUM(i + 0)", [at(1, i=2**63 - 1), at(2, "1", i=1)], "OVERFLOW|the sum of bigints is too large for a bigint"),
        ("SUM(i)", [at(1, i=2**63 - 1), at(2, "1", i=1)], "the sum of bigints is too large for a bigint"),
    ],
)
def test_division_by_zero_and_overflow_fail_rather_than_give_null(item: str, events: list[Row], message: str) -> None:
    table = "CREATE TABLE telemetry (i bigint, j bigint)"
    with pytest.raises(RunError, match=message):
        rows(f"{table} SELECT {item} AS s INTO out FROM telemetry GROUP BY Tumbling(s, 10)", events)


def test_partitions_are_summed_in_the_order_of_their_ids() -> None:
    values = {"0": 1e16, "1": 1.0, "2": -1e16, "3": 1.0}
    text = "SELECT SUM(v) AS s INTO out FROM telemetry GROUP BY Tumbling(s, 10)"
    [[row]] = rows(text, [at(1, partition, v=v) for partition, v in values.items()])
    assert row["s"] == ((1e16 + 1.0) - 1e16) + 1.0
    assert row["s"] != math.fsum(values.values())
