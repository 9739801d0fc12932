"""The output of the ASA runtime for a taxi stream, and times with seven decimals."""

import json
from datetime import UTC, datetime

import pytest

from recapture.time_model.ticks import TICKS_PER_SECOND, from_datetime
from tests.oracle_windows import Event
from tests.paths import VECTORS
from tests.query.fast_path import Slice, compiled, published

GOLDEN = VECTORS / "golden_asa_taxi" / "run1.json"

MINUTE_ZERO = from_datetime(datetime(2026, 3, 1, 10, tzinfo=UTC))
TABLE = "CREATE TABLE telemetry (t datetime);\n"


def test_the_taxi_stream_has_the_rows_of_the_asa_runtime() -> None:
    """Events come every minute; every hop of five seconds has a row, even if its count is the same: 260 rows."""
    golden = json.loads(GOLDEN.read_text())
    text = (
        "SELECT System.Timestamp() AS e, area, COUNT(*) AS n INTO out FROM telemetry TIMESTAMP BY pickupTime "
        "GROUP BY area, HoppingWindow(second, 60, 5)"
    )
    events = [Event(ticks(time), {"area": area}) for time, area in golden["events"]]
    start = from_datetime(datetime(2019, 10, 7, tzinfo=UTC))
    [actual] = published(compiled(text), [Slice(start, start + 3600 * TICKS_PER_SECOND, events)])
    assert {(row["e"], row["area"]): row["n"] for row in actual} == {
        (ticks(end), area): n for end, area, n in golden["expected"]
    }
    assert len(actual) == len(golden["expected"]) == 260


def test_the_rides_from_carnegie_hill_have_rows_while_a_window_holds_them() -> None:
    """Rides at 00:03:54, 00:04:48 and 00:06:48, a window of a minute every five seconds.

    The first two rides share one window, which ends at 00:04:50. From 00:05:50 to 00:06:45 there is no row.
    """
    text = f"{TABLE}SELECT System.Timestamp() AS e, COUNT(*) AS n INTO out FROM telemetry TIMESTAMP BY t "
    text += "GROUP BY HoppingWindow(second, 60, 5)"
    midnight = ticks("2019-10-07T00:00:00Z")
    rides = [Event(midnight + second * TICKS_PER_SECOND, {}) for second in (234, 288, 408)]
    [actual] = published(compiled(text), [Slice(midnight, midnight + 3600 * TICKS_PER_SECOND, rides)])
    counts = {(row["e"] - midnight) // TICKS_PER_SECOND: row["n"] for row in actual}
    alone = [*range(235, 290, 5), *range(295, 350, 5), *range(410, 470, 5)]
    assert counts == {290: 2} | dict.fromkeys(alone, 1)


def ticks(time: str) -> int:
    return from_datetime(datetime.fromisoformat(time))


@pytest.mark.parametrize("year", [1, 1969, 2026])
def test_a_datetime_is_published_without_the_last_of_its_seven_decimals(year: int) -> None:
    rounded = from_datetime(datetime(year, 12, 31, 23, 59, 59, 123456, UTC))
    text = (
        "CREATE TABLE telemetry (t datetime, bought datetime);\n"
        "SELECT MAX(bought) AS latest INTO out FROM telemetry TIMESTAMP BY t GROUP BY TumblingWindow(minute, 1)"
    )
    events = [Event(MINUTE_ZERO + 1, {"bought": rounded + 9})]
    [[row]] = published(compiled(text), [Slice(MINUTE_ZERO, MINUTE_ZERO + 60 * TICKS_PER_SECOND, events)])
    assert row["latest"] == rounded
