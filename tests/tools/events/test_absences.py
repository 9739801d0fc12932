"""What a query looked for and did not find is said with its window of time and its key."""

from pathlib import Path

import pytest

from tests.commands import Command
from tests.worlds import World, at, body

OVER = "OVER (PARTITION BY deviceId LIMIT DURATION(minute, 10) WHEN temperature > 2)"
TIME = "SELECT System.Timestamp() AS t"
INPUT = "telemetry TIMESTAMP BY eventTime"
AT_ELEVEN = "of telemetry after 2024-03-01T10:01:00Z until 2024-03-01T10:11:00Z with deviceId b"


@pytest.mark.parametrize(
    ("query", "row", "text"),
    [
        (
            f"{TIME}, deviceId, LAG(temperature) {OVER} AS p INTO aggregates FROM {INPUT}",
            "t=2024-03-01T10:11Z,deviceId=b",
            f"LAG found no row {AT_ELEVEN}, before this one, for which WHEN is true",
        ),
        (
            f"{TIME}, deviceId, LAG(temperature, 2) {OVER} AS p INTO aggregates FROM {INPUT}",
            "t=2024-03-01T10:11Z,deviceId=b",
            f"LAG found fewer than 2 rows {AT_ELEVEN}, before this one, for which WHEN is true",
        ),
        (
            f"{TIME}, deviceId, ISFIRST(minute, 10) OVER (PARTITION BY deviceId) AS f INTO aggregates FROM {INPUT}",
            "t=2024-03-01T10:11Z,deviceId=b",
            "ISFIRST found no row of telemetry after 2024-03-01T10:10:00Z until 2024-03-01T10:11:00Z with deviceId b, "
            "before this one",
        ),
        (
            f"{TIME}, a.deviceId, b.temperature AS other INTO aggregates FROM {INPUT.replace(' ', ' a ', 1)} "
            f"LEFT JOIN {INPUT.replace(' ', ' b ', 1)} "
            "ON a.deviceId = b.deviceId AND DATEDIFF(second, a, b) BETWEEN 1 AND 100",
            "t=2024-03-01T10:13:40Z,deviceId=a",
            "LEFT JOIN found no row of telemetry from 2024-03-01T10:12:01Z until 2024-03-01T10:13:40Z with deviceId a",
        ),
    ],
    ids=["lag", "lag of 2", "isfirst", "left join"],
)
def test_what_was_not_found_is_said(tmp_path: Path, query: str, row: str, text: str, command: Command) -> None:
    world = World(tmp_path)
    events = [body("a", at(8), 1.0), body("a", at(11), 5.0), body("b", at(11), 9.0), body("a", at(12), 6.0)]
    world.put("0", at(14), events)
    world.put("0", at(90))
    world.define(query)
    explained = command.json("explain", world.file, "--row", row)
    assert [absence["text"] for absence in explained["absences"]] == [text]


def test_a_row_that_found_its_events_misses_nothing(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)
    world.put("0", at(14), [body("a", at(8), 4.0), body("a", at(11), 5.0)])
    world.put("0", at(90))
    world.define(f"{TIME}, LAG(temperature) {OVER} AS p INTO aggregates FROM {INPUT}")
    explained = command.json("explain", world.file, "--row", "t=2024-03-01T10:11Z")
    assert (explained["row"]["p"], explained["absences"]) == (4.0, [])
