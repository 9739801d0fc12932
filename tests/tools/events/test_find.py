"""`recapture find`: which events it finds, with the verdicts of a run, and the files that it writes."""

import io
import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from recapture.time_model.ticks import from_seconds
from recapture.tools.events.find import find
from recapture.tools.sample import SampleEvent, capture_file
from tests import oracle
from tests.blobs import write_blob
from tests.commands import FIRST_HOUR, Command
from tests.draws import slow
from tests.formats.samples import SAMPLES
from tests.run.made_worlds import EARLY, ZERO, Made, made, put
from tests.worlds import HOUR, TELEMETRY, TEN, World, at, blob_name, body

LATER = TEN + 1000 * HOUR


def expected(made: Made) -> dict[tuple[str, int], tuple[str, int | None]]:
    """Return the verdict and the System.Timestamp of each event that arrived in the world's hours, by the oracle.

    Without a late limit, those of an hour are those of reading from the hour's first arrival.
    """
    verdicts = {}
    for hour in range(made.hours):
        start, end = (ZERO + from_seconds(3600 * (hour + n)) for n in (0, 1))
        first = start - from_seconds(made.size) - EARLY if made.policy.late is None and made.timestamp_by else 0
        read = [event for event in made.events if event.arrival >= first]
        for outcome in oracle.process(read, made.policy, made.timestamp_by):
            if start < outcome.event.arrival <= end:
                key = (outcome.event.partition, outcome.event.sequence)
                verdicts[key] = (outcome.verdict, outcome.system_timestamp)
    return verdicts


@slow(12)
@given(made=made())
def test_the_verdicts_of_all_events_of_any_world_are_those_of_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, made: Made
) -> None:
    home = tmp_path_factory.mktemp("made")
    pipeline = put(home, made).define(made.query, **made.job)
    if made.blobs:
        events = [
            event
            for partition in sorted({partition for partition, *_ in made.blobs})
            for event in find(pipeline, [f"PartitionId={partition}"], None, TEN, at(120), LATER).events.to_pylist()
        ]
        found = {
            (event["partition"], event["sequence_number"]): (event["verdict"], event["system_timestamp"])
            for event in events
        }
        assert len(found) == len(events)
        assert found == expected(made)
        without_reason = {event["verdict"] for event in events if event["reason"] is None}
        assert without_reason <= {"on_time", "duplicate"}
    shutil.rmtree(home)


@pytest.fixture(scope="module")
def spellings(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A blob with events whose bodies spell the same values in many ways; their times are missing."""
    world = World(tmp_path_factory.mktemp("spellings"))
    bodies = [
        b'{"deviceId": "a", "n": 5, "site": {"id": "s1"}}',
        b'{"deviceid": "a", "n": 5.0, "Site": {"ID": "s2"}}',
        b'{"deviceId": "\\u0061", "n": 50e-1}',
        b'{"deviceId": "aa", "n": 0.5e1}',
        b'{"deviceId": "b", "n": "5"}',
        b'{"deviceId": "a", "n": ',
        b'{"other": "a", "n": 15, "on": true}',
        b'{"deviceId": null, "n": 9007199254740993}',
    ]
    world.put("0", at(30), bodies)
    world.put("1", at(40), [b'{"deviceId": "a"}'])
    world.put("0", at(90))
    world.define()
    return world


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        (["deviceId=a"], [0, 1, 2, 0]),
        (["DEVICEID=a"], [0, 1, 2, 0]),
        (["deviceId=a", "n=5"], [0, 1, 2]),
        (["n=5"], [0, 1, 2, 3, 4]),
        (["n=5.0"], [0, 1, 2, 3, 4]),
        (["n=5e0"], [0, 1, 2, 3, 4]),
        (["n=9007199254740993"], [7]),
        (["n=9007199254740992"], []),
        (["site.id=s2"], [1]),
        (["on=true"], [6]),
        (["deviceId=a", "partitionid=1"], [0]),
        (["SequenceNumber=6"], [6]),
        (["Offset=600"], [6]),
        (["deviceId=A"], []),
    ],
    ids=str,
)
def test_a_condition_finds_the_events_whose_field_or_metadata_has_the_value(
    spellings: World, where: list[str], numbers: list[int], command: Command
) -> None:
    conditions = [argument for text in where for argument in ("--where", text)]
    found = command.json("find", spellings.file, *FIRST_HOUR, *conditions)
    assert [event["sequence_number"] for event in found["events"]] == numbers


def test_a_value_that_no_event_has_is_not_found(spellings: World, command: Command) -> None:
    out, _ = command.run("find", spellings.file, *FIRST_HOUR, "--where", "deviceId=nobody")
    assert "no such event arrived from 2024-03-01T10:00:00Z to 2024-03-01T11:00:00Z\n" in out


def test_events_that_may_have_the_values_but_cannot_be_read_are_counted(spellings: World, command: Command) -> None:
    out, err = command.run("find", spellings.file, *FIRST_HOUR, "--where", "deviceId=a")
    assert "4 events arrived from 2024-03-01T10:00:00Z to 2024-03-01T11:00:00Z: invalid_timestamp 4" in out
    assert "warning: 1 event may also be what you look for: their bodies hold these values, but cannot be read" in err


@pytest.fixture
def troubled(tmp_path: Path) -> World:
    """An hour with an event of each kind."""
    world = World(tmp_path)
    bodies = [
        body("a", at(10)),
        body("a", at(4)),
        body("a", at(-1)),
        body("a", at(18)),
        body("a", None),
        body("b", at(11)),
    ]
    world.put("0", at(12), bodies)
    again = capture_file([SampleEvent(1, "100", at(7), bodies[1])])
    write_blob(world.capture / blob_name("0", at(15)), again, at(20))
    world.put("0", at(90))
    world.define(eventsOutOfOrderMaxDelayInSeconds=30)
    return world


def test_each_event_is_shown_with_its_place_its_times_and_the_numbers_behind_its_verdict(
    troubled: World, command: Command
) -> None:
    blob = "contoso/telemetry/0/2024/03/01/10/07/00.avro"
    out = command.text("find", troubled.file, *FIRST_HOUR, "--where", "deviceId=a")
    assert out.splitlines()[:4] == [
        f"partition 0, sequence number 0, offset 0, in {blob}",
        "  enqueued 2024-03-01T10:07:00Z, arrived 2024-03-01T10:12:00Z, time 2024-03-01T10:10:00Z",
        "  on_time: System.Timestamp 2024-03-01T10:10:00Z",
        f"  {body('a', at(10)).decode()}",
    ]
    late = "it arrived 13 min after its time, more than the late tolerance of 10 min"
    behind = "more than the out-of-order tolerance of 30 s"
    judged = [line.strip() for line in out.splitlines()[2::4]]
    assert judged[1:6] == [
        f"out_of_order_adjusted: System.Timestamp 2024-03-01T10:09:30Z (its time is 6 min before the largest one so "
        f"far, {behind})",
        f"out_of_order_adjusted: System.Timestamp 2024-03-01T10:09:30Z ({late}; then its adjusted time is 8 min "
        f"before the largest one so far, {behind})",
        "early_dropped (its time is 6 min after its arrival, more than the early window of 5 min)",
        "invalid_timestamp (eventTime is missing or null)",
        "duplicate",
    ]
    assert "6 events arrived from" in out


def test_only_arrivals_of_the_range_are_found_and_it_need_not_be_whole_slices(
    troubled: World, command: Command
) -> None:
    bounds = ("--from", "2024-03-01T10:12Z", "--to", "2024-03-01T10:20Z")
    found = command.json("find", troubled.file, *bounds, "--where", "deviceId=a")
    assert [(event["sequence_number"], event["verdict"]) for event in found["events"]] == [(1, "duplicate")]
    before = ("--from", "2024-03-01T10:11Z", "--to", "2024-03-01T10:12Z")
    assert command.json("find", troubled.file, *before, "--where", "deviceId=a")["count"] == 5


def test_a_partition_from_which_more_may_arrive_is_named(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)
    world.put("0", at(12), [body("a", at(10))])
    world.define()
    bounds = ("--from", "2024-03-01T10:00Z", "--to", "2033-01-01T00:00Z")
    _, err = command.run("find", world.file, *bounds, "--where", "deviceId=a")
    assert "warning: more events may still arrive in this range, from partitions 0" in err


def test_a_file_of_json_lines_or_parquet_has_the_events_that_json_shows(troubled: World, command: Command) -> None:
    find = ("find", troubled.file, *FIRST_HOUR, "--where", "deviceId=a")
    shown = command.json(*find)["events"]
    lines, parquet = troubled.home / "found.jsonl", troubled.home / "found.parquet"
    assert command.json(*find, "--out", lines)["out"] == str(lines)
    assert list(map(json.loads, lines.read_text().splitlines())) == shown
    command.run(*find, "--out", parquet)
    rows = pq.read_table(parquet).to_pylist()
    assert [row["sequence_number"] for row in rows] == [event["sequence_number"] for event in shown]
    assert [row["body"].decode() for row in rows] == [event["body"] for event in shown]
    assert rows[0]["arrival"] == at(12)
    assert rows[0]["time"] == rows[0]["system_timestamp"] == at(10)


def test_a_file_of_capture_avro_has_the_records_as_they_were_written(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)
    properties: dict[str, Any] = {"text": "x", "count": 7, "share": 0.5, "bytes": b"\xff", "none": None}
    events = [
        SampleEvent(n, str(100 * n), at(3) + timedelta(milliseconds=n), body("ab"[n % 2], at(2)), "key", properties)
        for n in range(5)
    ]
    content = capture_file(events, codec="deflate")
    write_blob(world.capture / blob_name("0", at(0)), content, at(5))
    world.define()
    out = world.home / "found.avro"
    command.run("find", world.file, *FIRST_HOUR, "--where", "deviceId=a", "--out", out)
    written = list(fastavro.reader(io.BytesIO(out.read_bytes())))
    assert written == list(fastavro.reader(io.BytesIO(content)))[::2]
    again = out.read_bytes()
    command.run("find", world.file, *FIRST_HOUR, "--where", "deviceId=a", "--out", out)
    assert out.read_bytes() == again


def test_a_message_with_several_events_is_one_record_of_an_avro_file(tmp_path: Path, command: Command) -> None:
    """As several records, they would have one sequence number: a reader would take all but one for duplicates."""
    world = World(tmp_path)
    array = b"[%s, %s, %s]" % (body("a", at(2)), body("b", at(2)), body("a", at(3)))
    lines = b"%s\n%s" % (body("b", at(3)), body("b", at(2)))
    world.put("0", at(5), [array, lines, body("a", at(4)), array])
    world.define()
    out = world.home / "found.avro"
    found = command.json("find", world.file, *FIRST_HOUR, "--where", "deviceId=a", "--out", out)
    assert found["count"] == 5
    records: list[Any] = list(fastavro.reader(io.BytesIO(out.read_bytes())))
    written = [(record["SequenceNumber"], record["Body"]) for record in records]
    assert written == [(0, array), (2, body("a", at(4))), (3, array)]


def test_a_body_that_is_not_utf8_is_in_base64(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)
    world.put("0", at(5), [b'{"deviceId": "\xff"}', None])
    world.define()
    first, second = command.json("find", world.file, *FIRST_HOUR, "--where", "PartitionId=0")["events"]
    assert (first["verdict"], first["body_base64"]) == ("malformed", "eyJkZXZpY2VJZCI6ICL/In0=")
    assert not {"body", "body_base64"} & second.keys()
    assert "no body" in command.text("find", world.file, *FIRST_HOUR, "--where", "PartitionId=0")


def test_a_field_that_the_query_reads_does_not_change_the_verdict(tmp_path: Path, command: Command) -> None:
    """The query cannot read a temperature that is a string, and the condition can."""
    world = World(tmp_path)
    world.put("0", at(5), [b'{"deviceId": "a", "temperature": "warm", "eventTime": "2024-03-01T10:03:00Z"}'])
    world.define()
    (event,) = command.json("find", world.file, *FIRST_HOUR, "--where", "temperature=warm")["events"]
    assert (event["verdict"], event["reason"]) == ("malformed", "temperature is not a float")


def test_several_inputs_are_all_searched_unless_one_is_named(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)
    world.put("0", at(5), [body("a", at(4))])
    world.put("0", at(6), [body("a", at(4))], hub="other")
    query = (
        "SELECT t.deviceId INTO aggregates FROM telemetry t TIMESTAMP BY eventTime "
        "JOIN other o TIMESTAMP BY eventTime ON t.deviceId = o.deviceId AND DATEDIFF(minute, t, o) BETWEEN 0 AND 5"
    )
    world.define(query, inputs=[TELEMETRY, TELEMETRY | {"alias": "other", "event_hub": "other"}])
    find = ("find", world.file, *FIRST_HOUR, "--where", "deviceId=a")
    assert [event["input"] for event in command.json(*find)["events"]] == ["telemetry", "other"]
    assert [event["input"] for event in command.json(*find, "--input", "Other")["events"]] == ["other"]
    assert "did you mean other?" in command.error(*find, "--input", "othr")
    assert "name it with --input" in command.error(*find, "--out", tmp_path / "x.avro")
    command.run(*find, "--input", "other", "--out", tmp_path / "x.avro")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give at least one condition, such as --where deviceId=sensor-7"),
        (("--where", "deviceId"), "--where deviceId is not a condition: write it as deviceId=sensor-7 or site.id=4"),
        (("--where", "=4"), "--where =4 is not a condition"),
        (("--where", "EventEnqueuedUtcTime=4"), "EventEnqueuedUtcTime is a time; choose the range of arrivals with"),
        (("--where", "a=4", "--out", "x.csv"), "end the name of the file with .jsonl, .parquet or .avro"),
        (("--where", "a=4", "--out", "no/such/x.avro"), "there is no folder no/such: choose another file"),
    ],
)
def test_a_mistake_in_the_arguments_says_what_to_write(
    spellings: World, arguments: tuple[str, ...], message: str, command: Command
) -> None:
    assert message in command.error("find", spellings.file, *FIRST_HOUR, *arguments)


def test_a_range_that_is_empty_or_too_long_is_a_mistake(spellings: World, command: Command) -> None:
    bounds = ("--from", "2024-03-01T11:00Z", "--to", "2024-03-01T11:00Z")
    assert "the range is empty" in command.error("find", spellings.file, *bounds, "--where", "a=4")
    future = ("--from", "9999-12-31T22:00Z", "--to", "9999-12-31T23:00Z")
    assert command.json("find", spellings.file, *future, "--where", "a=4")["count"] == 0
    bounds = ("--from", "0001-01-01T00:00Z", "--to", "9999-12-31T23:59Z")
    too_long = "the range has more than 3,660 days: choose a shorter one"
    assert too_long in command.error("find", spellings.file, *bounds, "--where", "a=4")


@pytest.mark.parametrize("kind", SAMPLES)
def test_events_of_every_format_are_found_by_a_field_of_their_body(kind: str, tmp_path: Path, command: Command) -> None:
    world, sample = World(tmp_path), SAMPLES[kind]
    events = [(n, body("ab"[n % 2], at(3))) for n in range(4)]
    write_blob(world.capture / sample.name.format(at(4)), sample.write(events, at(3)), at(9))
    world.define(inputs=[{"alias": "telemetry", "container": "capture", **sample.keys}])
    (first, second) = command.json("find", world.file, *FIRST_HOUR, "--where", "deviceId=b")["events"]
    assert [first["verdict"], second["verdict"]] == ["on_time", "on_time"]
    assert "device" in first["body"]
    place = "sequence_number" if kind in ("Capture", "Service Bus") else "place"
    assert sorted([first[place], second[place]]) == [1, 3]
    assert ("enqueued" in first) == (kind not in ("JSON", "CSV"))
