"""The quarantine next to the table: it is replaced with its slice, and events leave it once they can be used."""

import itertools
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from recapture.errors import DefinitionError, RunError
from recapture.execute.processes.workers import Workers
from recapture.formats.avro import read_framing
from recapture.formats.event_hubs import EVENT_DATA
from recapture.run.rollback import rollback
from recapture.tools.sample import SampleEvent, capture_file
from tests.blobs import rewrite, write_blob
from tests.formats.test_avro import avro, nested
from tests.oracle import VERDICTS
from tests.paths import CAPTURE_FILES
from tests.worlds import TEN, World, at, backfill, blob_name, body, files, published, version

COUNTED = """\
SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events
INTO aggregates FROM telemetry TIMESTAMP BY eventTime GROUP BY deviceId, TumblingWindow(minute, 5)"""
RIGHT = COUNTED.replace("AS events", "AS events, MAX(TRY_CAST(temperature AS float)) AS warmest")
"""Query that needs Spark."""
WRONG = f"CREATE TABLE telemetry (deviceId nvarchar(max), temperature float, eventTime datetime);\n{RIGHT}"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An hour and a half, an event every five minutes; at 10:20 and 11:10 a temperature that is not a number."""
    world = World(tmp_path)
    for number in range(21):
        bad = number in (6, 16)
        sent = body("a", at(-12 + 5 * number), number)
        world.put(
            "0", at(-10 + 5 * number), [sent.replace(b": %d," % number, b': "%d C",' % number) if bad else sent], number
        )
    return world


def quarantined(world: World) -> list[dict[str, Any]]:
    return published(world.home / "table_quarantine", "slice_start, sequence_number")


def lawful(report: dict[str, Any]) -> bool:
    metrics = report["metrics"]
    return bool(metrics["InputEvents"] == metrics["DuplicateEvents"] + sum(metrics[verdict] for verdict in VERDICTS))


def test_the_quarantine_holds_unusable_events_with_their_bytes_and_their_origin(
    processes: Workers, world: World
) -> None:
    report = backfill(processes, world.define(WRONG), TEN, at(120))
    quarantine = world.home / "table_quarantine"
    assert report["quarantine"] == {
        "table": quarantine.as_uri(),
        "version": 1,
        "rows": 2,
        "reasons": [{"verdict": "malformed", "reason": "temperature is not a float but nvarchar(max)", "rows": 2}],
    }
    rows = quarantined(world)
    assert [row.pop("body") for row in rows] == [body("a", at(18), "6 C"), body("a", at(68), "16 C")]  # type: ignore[arg-type]
    assert all(row.pop("etag") for row in rows)
    assert rows == [
        {
            "input": "telemetry",
            "partition": "0",
            "sequence_number": number,
            "place": None,
            "blob": blob_name("0", at(-15 + 5 * number)),
            "verdict": "malformed",
            "reason": "temperature is not a float but nvarchar(max)",
            "slice_start": at(60 * hour),
        }
        for hour, number in enumerate((6, 16))
    ]


def test_fixing_the_definition_brings_the_events_back_and_gives_the_rows_of_a_clean_run(
    spark: SparkSession, processes: Workers, world: World
) -> None:
    backfill(processes, world.define(WRONG), TEN, at(120))
    assert [row["sequence_number"] for row in quarantined(world)] == [6, 16]
    report = backfill(spark, world.define(RIGHT), TEN, at(60))
    assert (report["metrics"]["malformed"], report["metrics"]["on_time"]) == (0, 12)
    assert [row["sequence_number"] for row in quarantined(world)] == [16], "the other hour was not run again"
    backfill(spark, world.define(RIGHT), TEN, at(120))
    assert quarantined(world) == []
    backfill(spark, world.define(RIGHT, table="clean"), TEN, at(120))
    assert published(world.table) == published(world.home / "clean")
    assert files(world.table) == files(world.home / "clean")
    assert version(world.home / "clean_quarantine") is None, "where nothing was quarantined there is no such table"


def test_an_unchanged_rerun_adds_no_version_and_a_rollback_restores_the_quarantine(
    spark: SparkSession, processes: Workers, world: World
) -> None:
    """The rerun is one in Spark, which quarantines the same bytes."""
    first = backfill(processes, world.define(WRONG), TEN, at(120))
    before = quarantined(world)
    backfill(spark, world.define(WRONG), TEN, at(120))
    assert version(world.home / "table_quarantine") == 1
    pipeline = world.define(RIGHT)
    backfill(spark, pipeline, TEN, at(120))
    assert quarantined(world) == []
    assert [output["slices"] for output in rollback(pipeline, TEN, at(60))["outputs"]] == [["2024-03-01T10:00:00Z"]]
    assert quarantined(world) == before[:1]
    rollback(pipeline, at(60), at(120))
    assert quarantined(world) == before
    rollback(pipeline, TEN, at(120), first["run"])
    assert (quarantined(world), published(world.table)) == ([], [])


# Damaged blobs


def sound_blob(number: int) -> bytes:
    event = SampleEvent(number, "", at(-15 + 5 * number), body("a", at(-12 + 5 * number)))
    return capture_file([event])


def foreign() -> bytes:
    fields = [{"name": "EnqueuedTimeUtc", "type": "string"}, {"name": "Body", "type": "bytes"}]
    message = {"type": "record", "name": "Message", "namespace": "Microsoft.Azure.Devices", "fields": fields}
    return avro(message, {"EnqueuedTimeUtc": "2024-03-01T10:17:00.0000000Z", "Body": b"{}"})


def overwritten(sound: bytes) -> bytes:
    """Overwrite the first bytes of the first record."""
    begin = read_framing("", sound, EVENT_DATA).blocks[0].start
    return sound[:begin] + bytes([255]) * 24 + sound[begin + 24 :]


def sources() -> list[bytes]:
    """Return a sample file, and the real ones if they are next to this repository."""
    real = [CAPTURE_FILES / name for name in ("2016-no-extension-05", "p9--2022-12-09--16-50-12.avro")]
    return [sound_blob(6), *(path.read_bytes() for path in real if path.exists())]


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "truncated in its block": (lambda sound: sound[:-30], "it is cut off: its block at byte"),
    "truncated in its header": (
        lambda sound: sound[:100],
        "it is cut off: its header is longer than its 100 bytes",
    ),
    "corrupt marker": (lambda sound: sound[:-1] + bytes([sound[-1] ^ 1]), "does not end in the file's sync marker"),
    "corrupt record": (overwritten, "but does not hold exactly these"),
    "wrong codec": (lambda sound: sound.replace(b"\x08null\x16", b"\x08lzma\x16", 1), "its codec is 'lzma'"),
    "not Avro": (lambda sound: b'{"deviceId": "a"}\n', "it is not an Avro file"),
    "another record": (lambda sound: foreign(), "Message', not the EventData of Capture"),
    "a schema nested too deep": (lambda sound: nested(20_000), "its Avro schema cannot be read"),
    "zero bytes": (lambda sound: b"", "it has no bytes"),
}


def test_each_kind_of_damage_stops_the_run_by_default_and_is_quarantined_if_the_definition_says_so(
    spark: SparkSession, world: World
) -> None:
    """Each kind has a blob. The law holds, and all other events are where they would be."""
    expected = {}
    for place, (sound, (kind, (damage, reason))) in enumerate(itertools.product(sources(), DAMAGE.items())):
        content = damage(sound)
        assert content != sound, kind
        name = blob_name("0", at(20) + timedelta(seconds=1 + place))
        write_blob(world.capture / name, content, at(26) + timedelta(seconds=place))
        expected[name] = (content, reason)
    with pytest.raises(
        RunError, match=rf"^blob {next(iter(expected))} is damaged: .+; restore it .+on_damaged_blob: quarantine$"
    ):
        backfill(spark, world.define(), TEN, at(60))
    assert version(world.table) is None
    report = backfill(spark, world.define(on_damaged_blob="quarantine"), TEN, at(60))
    metrics, count = report["metrics"], len(expected)
    assert lawful(report)
    assert (metrics["DamagedBlobs"], metrics["InputEventsSourcesTotal"], metrics["InputEvents"]) == (
        count,
        12 + count,
        12,
    )
    assert report["quality"]["verdict"] == "passed with warnings"
    assert (
        "blobs that slices read are damaged (whole: true expected): 1 of 1 slice and partition"
        in report["quality"]["text"]
    )
    assert any(warning.startswith(f"{count} blobs are damaged and were quarantined") for warning in report["warnings"])
    rows = {row["blob"]: row for row in quarantined(world) if row["verdict"] == "damaged"}
    assert rows.keys() == expected.keys()
    for name, (content, reason) in expected.items():
        assert rows[name]["body"] == content
        assert reason in rows[name]["reason"]
        assert rows[name]["sequence_number"] is None


def test_a_damaged_blob_that_is_restored_brings_its_events_back(processes: Workers, world: World) -> None:
    path = world.capture / blob_name("0", at(15))
    sound = path.read_bytes()
    rewrite(path, sound[:-1])
    pipeline = world.define(COUNTED, on_damaged_blob="quarantine")
    report = backfill(processes, pipeline, TEN, at(60))
    assert [row["verdict"] for row in quarantined(world)] == ["damaged"]
    assert (report["metrics"]["InputEvents"], report["metrics"]["SequenceGaps"]) == (11, 1)
    assert "1 sequence number never arrived: 6 to 6 of partition 0" in report["warnings"]
    assert report["slices"][0]["gaps"] == {
        "missing": 1,
        "ranges": [{"input": "telemetry", "partition": "0", "first": 6, "last": 6}],
    }
    rewrite(path, sound)
    report = backfill(processes, pipeline, TEN, at(60))
    assert (quarantined(world), report["metrics"]["InputEvents"], report["metrics"]["SequenceGaps"]) == ([], 12, 0)


def test_on_damaged_blob_is_stop_or_quarantine(world: World) -> None:
    assert world.define().inputs[0].on_damaged_blob == "stop"
    with pytest.raises(DefinitionError, match=r"input\.on_damaged_blob: .*'stop' or 'quarantine'"):
        world.define(on_damaged_blob="skip")


# Files with a header and no blocks


def test_avro_files_without_a_block_are_empty_and_one_warning_counts_them(processes: Workers, world: World) -> None:
    paths = [world.put("0", at(41 + place), opened=at(36 + place)) for place in range(2)]
    for path in paths:
        rewrite(path, path.read_bytes()[:-18])
    report = backfill(processes, world.define(), TEN, at(60))
    assert (report["metrics"]["InputEvents"], report["metrics"]["InputEventsSourcesTotal"]) == (12, 14)
    (warning,) = [warning for warning in report["warnings"] if "no blocks" in warning]
    example = blob_name("0", at(36))
    assert warning.startswith(f"2 blobs are Avro files with a header and no blocks, such as {example}: read as empty; ")


# Copies


def test_copied_blobs_change_no_row_and_are_counted(processes: Workers, world: World) -> None:
    pipeline = world.define(COUNTED)
    backfill(processes, pipeline, TEN, at(120))
    before = published(world.table)
    for number in (6, 7, 14):
        opened = at(-15 + 5 * number)
        content = (world.capture / blob_name("0", opened)).read_bytes()
        write_blob(world.capture / blob_name("0", opened + timedelta(seconds=7)), content, at(10 + 5 * number))
    report = backfill(processes, pipeline, TEN, at(120))
    assert published(world.table) == before
    assert [slice_["DuplicateEvents"] for slice_ in report["slices"]] == [2, 1]
    assert (report["metrics"]["InputEvents"], report["metrics"]["SequenceGaps"]) == (21 - 3 + 3, 0)
    assert lawful(report)
    assert report["quality"]["verdict"] == "passed"
    assert (
        "events arrived twice (DuplicateEvents: 0 expected): 2 of 2 slices and partitions" in report["quality"]["text"]
    )
    values = {(row["metric"], row["slice_start"]): row["value"] for row in published(world.home / "table_metrics")}
    assert values["DuplicateEvents", TEN] == 2
