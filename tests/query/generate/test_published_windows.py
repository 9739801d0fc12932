"""Microsoft's own examples of each window, in numbers, and the output of the ASA runtime for a taxi stream.

The figures' times are read off drawings. No event is near enough to a boundary for that to matter.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from recapture.time_model.ticks import TICKS_PER_SECOND, from_datetime
from tests.oracle_windows import Event
from tests.paths import VECTORS
from tests.query.fast_path import Slice, compiled, published

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOLDEN = VECTORS / "golden_asa_taxi" / "run1.json"

MINUTE_ZERO = from_datetime(datetime(2026, 3, 1, 10, tzinfo=UTC))
"""The instant that the figures call 0."""

TABLE = "CREATE TABLE telemetry (t datetime, name nvarchar(max), tweet bigint);\n"

Run = Callable[..., dict[float, Any]]


def labelled(events: Iterable[tuple[float, str]]) -> list[Event]:
    return [Event(MINUTE_ZERO + round(time * TICKS_PER_SECOND), {"name": name}) for time, name in events]


@pytest.fixture
def run(spark: "SparkSession") -> Run:
    """Return the names in each window that ends in (0, 60] seconds, by its end in seconds."""

    def rows(events: Iterable[tuple[float, str]], window: str, having: str = "") -> dict[float, Any]:
        text = (
            f"{TABLE}SELECT System.Timestamp() AS e, Collect(name) AS names INTO out "
            f"FROM telemetry TIMESTAMP BY t GROUP BY {window} {having}"
        )
        minute = Slice(MINUTE_ZERO, MINUTE_ZERO + 60 * TICKS_PER_SECOND, labelled(events))
        [actual] = published(spark, compiled(text), [minute])
        assert len({row["e"] for row in actual}) == len(actual)
        return {(row["e"] - MINUTE_ZERO) / TICKS_PER_SECOND: "".join(row["names"]) for row in actual}

    return rows


STREAM = [
    (2.0, "1"),
    (3.5, "5"),
    (6.2, "4"),
    (7.5, "6"),
    (9.0, "2"),
    (16.5, "8"),
    (18.0, "6"),
    (21.8, "5"),
    (23.2, "3"),
    (25.7, "6"),
    (27.0, "1"),
]
"""The events of the figures of the tumbling and the hopping window."""


def test_a_tumbling_window_reproduces_its_figure(run: Run) -> None:
    assert run(STREAM, "TumblingWindow(second, 10)") == {10: "15462", 20: "86", 30: "5361"}


def test_a_hopping_window_reproduces_its_figure(run: Run) -> None:
    """The windows that end at 5 and 35 are not drawn."""
    assert run(STREAM, "HoppingWindow(second, 10, 5)") == {
        5: "15",
        10: "15462",
        15: "462",
        20: "86",
        25: "8653",
        30: "5361",
        35: "61",
    }


def test_a_tumbling_window_with_an_offset_ends_that_much_later(run: Run) -> None:
    window = "TumblingWindow(Duration(second, 10), Offset(second, 2))"
    assert run(STREAM, window) == {2: "1", 12: "5462", 22: "865", 32: "361"}


def test_a_negative_offset_puts_the_event_on_the_full_ten_seconds_into_the_next_window(run: Run) -> None:
    """The documentation uses it for windows that hold their start and not their end."""
    stream = [(9.9, "a"), (10.0, "b"), (19.9, "c"), (20.0, "d")]
    assert run(stream, "TumblingWindow(second, 10)") == {10: "ab", 20: "cd"}
    shifted = run(stream, "TumblingWindow(Duration(second, 10), Offset(millisecond, -1))")
    assert shifted == {9.999: "a", 19.999: "bc", 29.999: "d"}


def test_a_sliding_window_reproduces_the_example_that_the_documentation_of_2016_spells_out(run: Run) -> None:
    """Five seconds; at 47 the last event leaves and the window is empty, so there is no row."""
    stream = [(34, "A"), (38, "B"), (42, "C")]
    assert run(stream, "SlidingWindow(second, 5)") == {34: "A", 38: "AB", 39: "B", 42: "BC", 43: "C"}


TWEETS = [(10, "1"), (11.7, "5"), (15, "9"), (15, "7"), (26.6, "8")]


def test_a_sliding_window_reproduces_its_figure(run: Run) -> None:
    """It draws only the windows with three tweets or more; at 20 the tweet at 10 is already out."""
    having = "HAVING COUNT(*) >= 3"
    assert run(TWEETS, "SlidingWindow(second, 10)", having) == {15: "1597", 20: "597"}


def test_a_sliding_window_has_more_rows_than_its_figure_draws(run: Run) -> None:
    assert run(TWEETS, "SlidingWindow(second, 10)") == {
        10: "1",
        11.7: "15",
        15: "1597",
        20: "597",
        21.7: "97",
        26.6: "8",
    }


def test_a_session_window_reproduces_its_figure(run: Run) -> None:
    """The second window is closed by the check at 30, the first one that is ten after 12.7; not at 26.5 + 5."""
    stream = [(1.3, "1"), (3.9, "2"), (12.7, "3"), (15.2, "4"), (19.5, "5"), (24.2, "6"), (26.5, "7"), (34.0, "8")]
    assert run(stream, "SessionWindow(second, 5, 10)") == {8.9: "12", 30: "34567", 39: "8"}


def test_sessions_of_each_user_reproduce_the_example_of_the_documentation(spark: "SparkSession") -> None:
    """A session ends two minutes after the last click, or after an hour. Its duration counts from the first click."""
    text = (
        "CREATE TABLE telemetry (time datetime, user_id bigint, url nvarchar(max));\n"
        "SELECT user_id, MIN(time) AS window_start, System.Timestamp() AS window_end, "
        "DATEDIFF(s, MIN(time), System.Timestamp()) AS duration_in_seconds INTO out FROM telemetry TIMESTAMP BY time "
        "GROUP BY user_id, SessionWindow(minute, 2, 60) OVER (PARTITION BY user_id)"
    )
    start = from_datetime(datetime(2017, 1, 26, tzinfo=UTC))
    clicks = [(0, 0), (20, 0), (55, 1)]
    times = [(start + second * TICKS_PER_SECOND, user) for second, user in clicks]
    events = [Event(time, {"time": time, "user_id": user}) for time, user in times]
    hour = Slice(start - TICKS_PER_SECOND, start + 3600 * TICKS_PER_SECOND, events)
    [actual] = published(spark, compiled(text), [hour])
    assert sorted(actual, key=lambda row: row["user_id"]) == [
        {
            "user_id": 0,
            "window_start": start,
            "window_end": start + 140 * TICKS_PER_SECOND,
            "duration_in_seconds": 140,
            "_unanchored": False,
        },
        {
            "user_id": 1,
            "window_start": start + 55 * TICKS_PER_SECOND,
            "window_end": start + 175 * TICKS_PER_SECOND,
            "duration_in_seconds": 120,
            "_unanchored": False,
        },
    ]


def test_a_snapshot_window_reproduces_its_figure(run: Run) -> None:
    stream = [(5, "1"), (5, "2"), (5, "3"), (5, "4"), (10, "5"), (10, "6"), (13, "7"), (20, "8"), (20, "9")]
    assert run(stream, "System.Timestamp()") == {5: "1234", 10: "56", 13: "7", 20: "89"}


Ids = Callable[[str, Sequence[tuple[float, str]]], list[tuple[str | None, float, int]]]


@pytest.fixture
def ids(spark: "SparkSession") -> Ids:
    """Return id, end in seconds and count of the windows that end in (0, 60] seconds."""

    def rows(windows: str, events: Sequence[tuple[float, str]]) -> list[tuple[str | None, float, int]]:
        text = (
            f"{TABLE}SELECT System.Window().Id AS id, System.Timestamp() AS e, COUNT(*) AS n INTO out "
            f"FROM telemetry TIMESTAMP BY t GROUP BY {windows}"
        )
        minute = Slice(MINUTE_ZERO, MINUTE_ZERO + 60 * TICKS_PER_SECOND, labelled(events))
        [actual] = published(spark, compiled(text), [minute])
        return sorted(((row["id"], (row["e"] - MINUTE_ZERO) / TICKS_PER_SECOND, row["n"]) for row in actual), key=repr)

    return rows


def test_several_windows_are_distinguished_by_their_ids(ids: Ids) -> None:
    windows = "Windows(Window('ten', TumblingWindow(second, 10)), Window('thirty', TumblingWindow(second, 30)))"
    assert ids(windows, STREAM) == [("ten", 10, 5), ("ten", 20, 2), ("ten", 30, 4), ("thirty", 30, 11)]


def test_several_windows_without_ids_have_null_as_their_id(ids: Ids) -> None:
    windows = "Windows(TumblingWindow(second, 10), TumblingWindow(second, 30))"
    assert ids(windows, STREAM) == [(None, 10, 5), (None, 20, 2), (None, 30, 11), (None, 30, 4)]


def test_the_taxi_stream_has_the_rows_of_the_asa_runtime(spark: "SparkSession") -> None:
    """Events come every minute; every hop of five seconds has a row, even if its count is the same: 260 rows."""
    golden = json.loads(GOLDEN.read_text())
    text = (
        "SELECT System.Timestamp() AS e, area, COUNT(*) AS n INTO out FROM telemetry TIMESTAMP BY pickupTime "
        "GROUP BY area, HoppingWindow(second, 60, 5)"
    )
    events = [Event(ticks(time), {"area": area}) for time, area in golden["events"]]
    start = from_datetime(datetime(2019, 10, 7, tzinfo=UTC))
    [actual] = published(spark, compiled(text), [Slice(start, start + 3600 * TICKS_PER_SECOND, events)])
    assert {(row["e"], row["area"]): row["n"] for row in actual} == {
        (ticks(end), area): n for end, area, n in golden["expected"]
    }
    assert len(actual) == len(golden["expected"]) == 260


def test_the_rides_from_carnegie_hill_have_rows_while_a_window_holds_them(spark: "SparkSession") -> None:
    """Rides at 00:03:54, 00:04:48 and 00:06:48, a window of a minute every five seconds.

    The first two rides share one window, which ends at 00:04:50. From 00:05:50 to 00:06:45 there is no row.
    """
    text = f"{TABLE}SELECT System.Timestamp() AS e, COUNT(*) AS n INTO out FROM telemetry TIMESTAMP BY t "
    text += "GROUP BY HoppingWindow(second, 60, 5)"
    midnight = ticks("2019-10-07T00:00:00Z")
    rides = [Event(midnight + second * TICKS_PER_SECOND, {}) for second in (234, 288, 408)]
    [actual] = published(spark, compiled(text), [Slice(midnight, midnight + 3600 * TICKS_PER_SECOND, rides)])
    counts = {(row["e"] - midnight) // TICKS_PER_SECOND: row["n"] for row in actual}
    alone = [*range(235, 290, 5), *range(295, 350, 5), *range(410, 470, 5)]
    assert counts == {290: 2} | dict.fromkeys(alone, 1)


def ticks(time: str) -> int:
    return from_datetime(datetime.fromisoformat(time))


@pytest.mark.parametrize("year", [1, 1969, 2026])
def test_a_datetime_is_published_without_the_last_of_its_seven_decimals(spark: "SparkSession", year: int) -> None:
    rounded = from_datetime(datetime(year, 12, 31, 23, 59, 59, 123456, UTC))
    text = (
        "CREATE TABLE telemetry (t datetime, bought datetime);\n"
        "SELECT MAX(bought) AS latest INTO out FROM telemetry TIMESTAMP BY t GROUP BY TumblingWindow(minute, 1)"
    )
    events = [Event(MINUTE_ZERO + 1, {"bought": rounded + 9})]
    [[row]] = published(spark, compiled(text), [Slice(MINUTE_ZERO, MINUTE_ZERO + 60 * TICKS_PER_SECOND, events)])
    assert row["latest"] == rounded
