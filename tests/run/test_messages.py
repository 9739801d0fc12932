"""However senders write bodies, and however many events they put into one, a run publishes the same rows."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import FIRST_HOUR, Command
from tests.formats.test_messages import as_array, as_avro, as_csv, as_lines
from tests.worlds import TELEMETRY, World, at, published

QUERY = """\
SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events, SUM(CAST(temperature AS float)) AS total
INTO aggregates FROM telemetry TIMESTAMP BY eventTime GROUP BY deviceId, TumblingWindow(minute, 5)"""
SCHEMA = {
    "type": "record",
    "name": "reading",
    "fields": [
        {"name": "deviceId", "type": "string"},
        {"name": "eventTime", "type": "string"},
        {"name": "temperature", "type": "double"},
    ],
}
Records = list[dict[str, Any]]
KINDS: dict[str, tuple[dict[str, str], Callable[[Records], bytes]]] = {
    "array": ({}, as_array),
    "lines": ({}, as_lines),
    "array, gzip": ({"body_compression": "GZip"}, lambda records: gzip.compress(as_array(records))),
    "CSV": ({"body_format": "Csv", "body_delimiter": ";"}, as_csv),
    "Avro": ({"body_format": "Avro"}, lambda records: as_avro(records, "deflate", SCHEMA)),
}
RECORDS = [
    {"deviceId": f"d{number % 2}", "eventTime": at(number).isoformat(), "temperature": number + 0.5}
    for number in range(1, 9)
]


def world_of(home: Path, keys: dict[str, str], messages: list[bytes]) -> World:
    world = World(home)
    world.put("0", at(10), messages)
    world.put("0", at(90))
    world.define(QUERY, inputs=[TELEMETRY | keys])
    return world


@pytest.mark.parametrize("kind", KINDS)
def test_events_of_any_bodies_give_the_same_rows(tmp_path: Path, kind: str, command: Command) -> None:
    keys, write = KINDS[kind]
    alone = world_of(tmp_path / "alone", {}, [json.dumps(record).encode() for record in RECORDS])
    together = world_of(tmp_path / "together", keys, [write(RECORDS[:3]), write(RECORDS[3:4]), write(RECORDS[4:])])
    for world in (alone, together):
        command.run("backfill", world.file, *FIRST_HOUR, "--master", "local[1]")
    rows = published(together.table)
    assert rows
    assert rows == published(alone.table)
    found = command.json("find", together.file, *FIRST_HOUR, "--where", "deviceId=d1")
    assert [event["sequence_number"] for event in found["events"]] == [0, 0, 2, 2]


def test_infer_reads_the_fields_of_the_events_of_messages(tmp_path: Path, command: Command) -> None:
    for kind in ("CSV", "Avro", "array, gzip"):
        keys, write = KINDS[kind]
        world = world_of(tmp_path / kind, keys, [write(RECORDS[:3]), write(RECORDS[3:])])
        text = command.text("infer", world.file, *FIRST_HOUR)
        assert "deviceId nvarchar(max)" in " ".join(text.split()), text
        assert "8 events" in text


def test_each_event_of_a_message_is_explained(tmp_path: Path, command: Command) -> None:
    keys, write = KINDS["array"]
    world = world_of(tmp_path, keys, [write(RECORDS[:3]), write(RECORDS[3:])])
    command.run("backfill", world.file, *FIRST_HOUR, "--master", "local[1]")
    assert len(command.json("explain", world.file, *FIRST_HOUR, "--event", "0/0")["events"]) == 3
