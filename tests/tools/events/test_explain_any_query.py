"""`recapture explain --row` of queries with steps, sessions, LAG and reference data, from the archive."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recapture.tools.events import room
from recapture.tools.events.roles import Role, counts_of, first_of_each, rest
from tests.commands import FIRST_HOUR, Command
from tests.worlds import TELEMETRY, World, at

PLACES = {
    "type": "Reference",
    "format": "Json",
    "alias": "places",
    "container": "places",
    "path": "{date}/{time}/places.json",
    "date_format": "YYYY-MM-DD",
    "time_format": "HH-mm",
}
QUERY = """
CREATE TABLE telemetry (deviceId nvarchar(max), temperature float, eventTime datetime);
CREATE TABLE places (deviceId nvarchar(max), place nvarchar(max));
WITH rises AS (
    SELECT deviceId, temperature,
        LAG(temperature) OVER (PARTITION BY deviceId LIMIT DURATION(minute, 10)) AS before
    FROM telemetry TIMESTAMP BY eventTime
), largest AS (
    SELECT System.Timestamp() AS windowEnd, deviceId, MAX(temperature - before) AS rise
    FROM rises GROUP BY deviceId, TumblingWindow(minute, 5)
)
SELECT largest.windowEnd, largest.deviceId, largest.rise, places.place INTO aggregates
FROM largest JOIN places ON largest.deviceId = places.deviceId
"""


def body(device: str, time: datetime, temperature: float) -> bytes:
    return json.dumps({"deviceId": device, "temperature": temperature, "eventTime": time.isoformat()}).encode()


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Events of two devices in two partitions, and two versions of reference data."""
    world = World(tmp_path)
    world.put("0", at(14), [body("a", at(8), 1), body("a", at(11), 5), body("b", at(11), 9), body("a", at(12), 6)])
    world.put("1", at(14.5), [body("a", at(13), 6.5)])
    for partition in "01":
        world.put(partition, at(90))
    versions = {"00-00": ["Oslo"], "10-10": ["Rome", "Ghent"], "10-40": ["Lyon"]}
    for time, places in versions.items():
        folder = tmp_path / "places" / "2024-03-01" / time
        folder.mkdir(parents=True)
        rows = [{"deviceId": "b" if place == "Rome" else "a", "place": place} for place in places]
        (folder / "places.json").write_text("\n".join(map(json.dumps, rows)))
    world.define(QUERY, inputs=[TELEMETRY, PLACES])
    return world


def events_by_role(row: dict[str, Any]) -> dict[str, list[tuple[str, int]]]:
    roles: dict[str, list[tuple[str, int]]] = {}
    for event in row["events"]:
        roles.setdefault(event["role"], []).append((event["partition"], event["sequence_number"]))
    return roles


def test_a_row_is_followed_through_steps_to_events_before_its_window_and_to_a_version(
    world: World, command: Command
) -> None:
    """The rise of 4 is that from the event before the window; the other rises are smaller."""
    row = command.json("explain", world.file, "--row", "windowEnd=2024-03-01T10:15Z,deviceId=a")
    assert row["row"] == {"windowEnd": "2024-03-01T10:15:00Z", "deviceId": "a", "rise": 4.0, "place": "Ghent"}
    assert events_by_role(row) == {"deciding": [("0", 0), ("0", 1)], "considered": [("0", 3), ("1", 0)]}
    assert row["references"] == [
        {
            "reference": "places",
            "blob": "2024-03-01/10-10/places.json",
            "row": 2,
            "valid_from": "2024-03-01T10:10:00Z",
            "valid_until": "2024-03-01T10:40:00Z",
            "columns": {"deviceId": "a", "place": "Ghent"},
        }
    ]
    out = command.text("explain", world.file, "--row", "windowEnd=2024-03-01T10:15Z,deviceId=a").splitlines()
    assert out[0].startswith("row at 2024-03-01T10:15:00Z, not published: windowEnd")
    assert "read, but the events above decide:" in out
    assert out[-4].startswith("reference data places: row 2 of 2024-03-01/10-10/places.json, in force from 2024-03-01T")
    assert out[-2] == "made of 2 events, 2 considered"
    assert out[-1].startswith("read 2 blobs (")


def test_a_row_that_is_not_there_says_which_value_no_row_has(world: World, command: Command) -> None:
    row = command.json("explain", world.file, "--row", "windowEnd=2024-03-01T10:15Z,deviceId=c")
    assert (row["row"], row["events"]) == (None, [])
    assert row["why"] == "slice 2024-03-01T10:00:00Z has no row at 2024-03-01T10:15:00Z with this deviceId"
    row = command.json("explain", world.file, "--row", "windowEnd=2024-03-01T10:15Z,rise=7")
    values = "slice_start=2024-03-01T10:00Z,windowEnd=2024-03-01T10:15Z,rise=7"
    assert command.json("explain", world.file, "--row", values)["why"] == row["why"]
    assert row["why"] == "slice 2024-03-01T10:00:00Z has 2 rows at 2024-03-01T10:15:00Z; none has this rise"


def test_the_page_of_a_row_has_its_events_by_role_and_the_version(
    world: World, tmp_path: Path, command: Command
) -> None:
    page = tmp_path / "page.html"
    command.text("explain", world.file, "--row", "windowEnd=2024-03-01T10:15Z,deviceId=a", "--out", page)
    content = page.read_text()
    for text in ("Events that decide", "Events that were considered", "2024-03-01/10-10/places.json"):
        assert text in content


def test_a_session_names_the_events_that_hold_it_open(world: World, command: Command) -> None:
    query = "SELECT System.Timestamp() AS t, deviceId, COUNT(*) AS events INTO aggregates FROM telemetry "
    world.define(query + "TIMESTAMP BY eventTime GROUP BY deviceId, SessionWindow(minute, 2, 60)")
    row = command.json("explain", world.file, "--row", "t=2024-03-01T10:15Z,deviceId=b")
    assert row["window"] == {"end": "2024-03-01T10:15:00Z"}
    assert events_by_role(row) == {"deciding": [("0", 2)], "timing": [("0", 1), ("0", 3), ("1", 0)]}


def test_events_that_do_not_fit_into_memory_are_refused_with_what_to_do(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One event of this query takes 250 bytes: the row without a key depends on five events, a on four, b on one."""
    monkeypatch.setattr(room, "share_of_worker", lambda workers: 800)
    message = command.error("explain", world.file, "--row", "windowEnd=2024-03-01T10:15Z,rise=4", code=1)
    assert "more than 3 events can matter, but only 3 fit into the 800 bytes of memory for them: " in message
    assert message.endswith("add deviceId= to --row, so that only the events with this deviceId are read into memory")
    assert (
        command.json("explain", world.file, "--row", "windowEnd=2024-03-01T10:15Z,deviceId=b")["row"]["place"] == "Rome"
    )
    message = command.error("explain", world.file, "--row", "windowEnd=2024-03-01T10:15Z,deviceId=a", code=1)
    assert message.endswith("give this machine or container more memory")
    message = command.error("explain", world.file, "--event", "0/0", *FIRST_HOUR, code=1)
    assert message.endswith("give this machine or container more memory")


def test_the_first_events_of_each_role_are_named() -> None:
    roles = np.array([Role.DECIDING, Role.CONSIDERED, Role.DECIDING, Role.NONE, Role.DECIDING], np.int8)
    assert first_of_each(roles, 2).tolist() == [Role.DECIDING, Role.CONSIDERED, Role.DECIDING, Role.NONE, Role.NONE]
    assert counts_of([roles, roles]) == {"deciding": 6, "considered": 2}
    assert (rest(10_000), rest(10_001)) == ("--json has all of them", "--json has up to 10,000 of each input")
