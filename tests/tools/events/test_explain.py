"""`recapture explain`: what became of an event, and which events made a row."""

import shutil
from collections import defaultdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from recapture.definition.pipeline import Pipeline
from recapture.execute.processes.workers import Workers
from recapture.time_model import ticks
from recapture.time_model.ticks import from_seconds
from recapture.tools.events import explain as explanations
from recapture.tools.events.conditions import Selection, condition
from recapture.tools.events.explain import Explainer
from recapture.tools.events.find import range_of
from recapture.tools.events.row import lineage
from tests import oracle, oracle_windows
from tests.commands import FIRST_HOUR, Command
from tests.draws import slow
from tests.run.made_worlds import ZERO, Made, expected_rows, made, put
from tests.worlds import HOUR, TELEMETRY, TEN, World, at, backfill, body, published, staged

LATER = TEN + 1000 * HOUR
Event = tuple[str, int]
"""Partition and sequence number of an event."""


def explained(pipeline: Pipeline, *where: str) -> list[dict[str, Any]]:
    """Return what became of the events of two hours."""
    selection = Selection([condition(text, pipeline.inputs[0].metadata) for text in where])
    range_ = range_of(TEN, TEN + 2 * HOUR)
    return list(Explainer(pipeline, LATER).explain(pipeline.query.inputs, lambda _: selection, range_).events)


def contents(made: Made, outcomes: list[oracle.Outcome]) -> list[tuple[oracle_windows.Content, list[Event]]]:
    """Return the windows of the world's hours with their members, by the oracle."""
    window = oracle_windows.Hopping(from_seconds(made.size), from_seconds(made.hop))
    names = {
        id(outcome.event.payload): (outcome.event.partition, outcome.event.sequence)
        for outcome in outcomes
        if outcome.system_timestamp is not None
    }
    end = ZERO + made.hours * from_seconds(3600)
    return [
        (content, [names[id(member.payload)] for member in content.members])
        for content in oracle.windows(outcomes, window, ("deviceId",), ZERO, end)
    ]


def has_late_limit(made: Made) -> bool:
    """Without a limit, verdicts depend on the slice: `test_find` compares those."""
    return bool(made.events) and (made.policy.late is not None or not made.timestamp_by)


@slow(6)
@given(made=made().filter(has_late_limit))
def test_verdicts_windows_and_members_of_any_world_are_those_of_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, made: Made
) -> None:
    home = tmp_path_factory.mktemp("made")
    pipeline = put(home, made).define(made.query, **made.job)
    outcomes = oracle.process(made.events, made.policy, made.timestamp_by)
    ends: dict[Event, list[int]] = defaultdict(list)
    for content, members in contents(made, outcomes):
        for member in members:
            ends[member].append(content.end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explanations, "MAX_EXPLAINED", 1000)
        found = {
            (event["partition"], event["sequence_number"]): event
            for partition in sorted({partition for partition, *_ in made.blobs})
            for event in explained(pipeline, f"PartitionId={partition}")
        }
    arrived = [outcome for outcome in outcomes if ZERO < outcome.event.arrival <= ZERO + from_seconds(7200)]
    assert len(found) == len(arrived)
    for outcome in arrived:
        name = (outcome.event.partition, outcome.event.sequence)
        event, (output,) = found[name], found[name]["outputs"]
        assert event["verdict"] == outcome.verdict
        shown = [ticks.from_text(window["end"]) for window in output["windows"]]
        assert [end for end in shown if ZERO < end <= ZERO + from_seconds(7200)] == sorted(ends[name])
        assert all(window["row"] for window in output["windows"])
        assert ("why" in output) == (outcome.system_timestamp is None)
        if outcome.out_of_order:
            require_pusher(outcomes, outcome, event["pushed_by"])
    shutil.rmtree(home)


def require_pusher(outcomes: list[oracle.Outcome], outcome: oracle.Outcome, pusher: dict[str, Any]) -> None:
    """Require that the event named as the pusher is the first with the largest time, of those that arrived before."""
    own = outcome.event
    before = [
        other
        for other in outcomes
        if (other.event.partition, other.event.over) == (own.partition, own.over)
        and (other.event.arrival, other.event.sequence) < (own.arrival, own.sequence)
        and (moved(other) is not None)
    ]
    largest = max(moved(other) or 0 for other in before)
    first = next(
        other.event
        for other in sorted(before, key=lambda other: (other.event.arrival, other.event.sequence))
        if moved(other) == largest
    )
    assert (pusher["partition"], pusher["sequence_number"]) == (first.partition, first.sequence)
    assert pusher["offset"] == str(first.sequence * 100)


def moved(outcome: oracle.Outcome) -> int | None:
    """Return the time with which an event may move the watermark; None for one that is dropped or out of order."""
    return None if outcome.out_of_order else outcome.system_timestamp


@slow(4)
@given(made=made().filter(has_late_limit))
def test_the_events_of_any_row_alone_give_the_row_and_without_one_of_them_they_do_not(
    tmp_path_factory: pytest.TempPathFactory, made: Made
) -> None:
    home = tmp_path_factory.mktemp("made")
    pipeline = put(home, made).define(made.query, **made.job)
    explainer = Explainer(pipeline, LATER)
    outcomes = oracle.process(made.events, made.policy, made.timestamp_by)
    rows = {(row["windowEnd"], row["deviceId"]): row for row in expected_rows(made)}
    for content, _ in contents(made, outcomes)[:20]:
        end, (device,) = ticks.to_text(content.end), content.group
        row = rows[ticks.to_datetime(content.end), device]
        made_row = lineage(explainer, f"windowEnd={end},deviceId={'NULL' if device is None else device}", None)
        assert made_row.row is not None
        expected = row | {"windowEnd": end}
        assert made_row.row == {name: value for name, value in expected.items() if name != "slice_start"}
        assert {event["role"] for event in made_row.summary["events"]} == {"deciding"}
        named = {(event["partition"], event["sequence_number"]) for event in made_row.summary["events"]}
        own = [outcome for outcome in outcomes if (outcome.event.partition, outcome.event.sequence) in named]
        assert counts(made, own)[content.end, device] == row["events"]
        for left_out in own:
            rest = [outcome for outcome in own if outcome is not left_out]
            assert counts(made, rest).get((content.end, device), 0) == row["events"] - 1
    shutil.rmtree(home)


def counts(made: Made, outcomes: list[oracle.Outcome]) -> dict[tuple[int, Any], int]:
    """Return the number of events of each row that events alone give, by the oracle."""
    return {(content.end, content.group[0]): len(content.members) for content, _ in contents(made, outcomes)}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two events of a window, one of which WHERE drops, and one that is late."""
    world = World(tmp_path)
    world.put("0", at(12), [body("a", at(11)), body("a", at(11.5), 30.0), body("a", at(1))])
    world.put("0", at(90))
    return world


QUERY = """
SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events INTO aggregates
FROM telemetry TIMESTAMP BY eventTime OVER deviceId WHERE temperature < 25 GROUP BY deviceId, TumblingWindow(minute, 5)
"""


def test_an_event_is_shown_with_its_window_its_row_and_what_pushed_the_watermark(
    world: World, command: Command
) -> None:
    world.define(QUERY)
    out = command.text("explain", world.file, *FIRST_HOUR, "--event", "0/2")
    blob = "contoso/telemetry/0/2024/03/01/10/07/00.avro"
    assert out.splitlines() == [
        f"partition 0, sequence number 2, offset 200, in {blob}",
        "  enqueued 2024-03-01T10:07:00Z, arrived 2024-03-01T10:12:00Z, time 2024-03-01T10:01:00Z",
        "  out_of_order_adjusted: System.Timestamp 2024-03-01T10:11:30Z (it arrived 11 min after its time, more than "
        "the late tolerance of 10 min; then its adjusted time is 9 min 30 s before the largest one so far, more than "
        "the out-of-order tolerance of 0 s)",
        f"  {body('a', at(1)).decode()}",
        "  the event with the largest time so far, 2024-03-01T10:11:30Z, pushed the watermark: partition 0, sequence "
        f"number 1, offset 100, in {blob}",
        "  output aggregates: window (2024-03-01T10:10:00Z, 2024-03-01T10:15:00Z], not published: windowEnd "
        "2024-03-01T10:15:00Z, deviceId a, events 2",
        "read 1 blob (909 bytes)",
    ]


def test_an_event_that_where_drops_is_in_no_row(world: World, command: Command) -> None:
    world.define(QUERY)
    assert "output aggregates: in no row: WHERE drops it" in command.text(
        "explain", world.file, *FIRST_HOUR, "--event", "0/1"
    )


def test_an_event_that_is_dropped_is_in_no_row(world: World, command: Command) -> None:
    world.define(QUERY, eventsOutOfOrderPolicy="Drop")
    (event,) = command.json("explain", world.file, *FIRST_HOUR, "--event", "0/2")["events"]
    assert event["verdict"] == "late_dropped"
    (output,) = event["outputs"]
    assert output == {"output": "aggregates", "windows": [], "why": "it was dropped before it reached the query"}


def test_a_row_that_having_drops_is_not_there(world: World, command: Command) -> None:
    world.define(QUERY + "HAVING COUNT(*) > 2")
    why = "a condition on the group, such as HAVING, drops the row"
    assert f"no row: {why}" in command.text("explain", world.file, *FIRST_HOUR, "--event", "0/2")
    row = command.json("explain", world.file, "--row", "windowEnd=2024-03-01T10:15Z,deviceId=a")
    assert (row["row"], row["why"], len(row["events"])) == (None, why, 2)


def test_a_missing_row_at_the_end_of_a_slice_is_explained_from_that_slice(world: World, command: Command) -> None:
    """A row of the next slice may have the same published time, which is cut to microseconds."""
    world.define(QUERY.replace("minute, 5", "hour, 1") + "HAVING COUNT(*) > 20")
    row = command.json("explain", world.file, "--row", "windowEnd=2024-03-01T11:00Z,deviceId=a")
    assert (row["why"], len(row["events"])) == ("a condition on the group, such as HAVING, drops the row", 2)
    row = command.json("explain", world.file, "--row", "windowEnd=2024-03-01T11:00Z,deviceId=c")
    assert row["why"] == "slice 2024-03-01T10:00:00Z has no row at 2024-03-01T11:00:00Z with this deviceId"


def test_the_rows_of_an_event_are_those_that_would_be_others_without_it(world: World, command: Command) -> None:
    """A sliding window ends where an event enters it, and where it leaves it."""
    world.define(QUERY.replace("TumblingWindow", "SlidingWindow"))
    (event,) = command.json("explain", world.file, *FIRST_HOUR, "--event", "0/0")["events"]
    rows = [(row["row"]["windowEnd"], row["row"]["events"]) for row in event["outputs"][0]["windows"]]
    assert rows == [("2024-03-01T10:11:00Z", 1), ("2024-03-01T10:11:30Z", 2), ("2024-03-01T10:16:00Z", 1)]
    shown = "output aggregates: row of slice 2024-03-01T10:00:00Z, not published: windowEnd 2024-03-01T10:11:00Z"
    assert shown in command.text("explain", world.file, *FIRST_HOUR, "--event", "0/0")
    (event,) = command.json("explain", world.file, *FIRST_HOUR, "--event", "0/1")["events"]
    assert event["outputs"] == [
        {"output": "aggregates", "windows": [], "why": "every row would be the same without it"}
    ]


def test_the_rows_of_several_windows_are_told_apart_by_their_name(world: World, command: Command) -> None:
    windows = "Windows(Window('short', TumblingWindow(minute, 5)), Window('long', TumblingWindow(minute, 15)))"
    query = QUERY.replace("TumblingWindow(minute, 5)", windows)
    world.define(query.replace("COUNT(*)", "System.Window().Id AS w, COUNT(*)"))
    (event,) = command.json("explain", world.file, *FIRST_HOUR, "--event", "0/0")["events"]
    assert [(window["id"], window["row"]["w"]) for window in event["outputs"][0]["windows"]] == [
        ("short", "short"),
        ("long", "long"),
    ]
    row = ("explain", world.file, "--row")
    long = command.json(*row, "windowEnd=2024-03-01T10:15Z,deviceId=a,w=long")
    assert long["window"]["start"] == "2024-03-01T10:00:00Z"
    message = command.error(*row, "windowEnd=2024-03-01T10:15Z,deviceId=a")
    assert message.endswith("--row: 2 rows have these values: add w")


def test_a_published_slice_is_explained_from_its_manifest(processes: Workers, tmp_path: Path, command: Command) -> None:
    """An event that arrived after the slice was published is not in the row that is published."""
    world = World(tmp_path)
    world.put("0", at(12), [body("a", at(11)), body("a", at(13))])
    world.put("0", at(90))
    pipeline = world.define(QUERY)
    run = backfill(processes, pipeline, TEN, at(60))["run"]
    row = ("explain", world.file, "--row", "windowEnd=2024-03-01T10:15Z,deviceId=a")
    shown = command.json(*row)
    assert (shown["slice"]["published_by"], shown["row"]["events"]) == (run, published(world.table)[0]["events"])
    world.put("0", at(12.5), [body("a", at(12.4))], first=2)
    assert command.json(*row) == shown
    assert command.json("explain", world.file, *FIRST_HOUR, "--event", "0/2")["events"] == []
    assert command.json("find", world.file, *FIRST_HOUR, "--where", "SequenceNumber=2")["count"] == 1
    world.define(QUERY, eventsOutOfOrderMaxDelayInSeconds=1)
    again = command.json(*row)
    assert (again["slice"]["published_by"], again["row"]["events"]) == (None, 3)
    (warning,) = again["warnings"]
    note = f"run {run}, which is published, was computed with another definition; this is what a run would give now"
    assert warning == f"slice 2024-03-01T10:00:00Z: {note}"


def test_a_row_of_a_staged_run_is_explained_from_the_manifest_of_that_run(
    processes: Workers, tmp_path: Path, command: Command
) -> None:
    world = World(tmp_path)
    world.put("0", at(12), [body("a", at(11))])
    world.put("0", at(90))
    pipeline = world.define(QUERY)
    backfill(processes, pipeline, TEN, at(60))
    world.put("0", at(13), [body("a", at(12.9))], first=1)
    run = staged(processes, pipeline, TEN, at(60)).manifest.run
    row = ("explain", world.file, "--row", "windowEnd=2024-03-01T10:15Z,deviceId=a")
    assert command.json(*row)["row"]["events"] == 1
    page = tmp_path / "page.html"
    assert "(2024-03-01T10:10:00Z, 2024-03-01T10:15:00Z], in run" in command.text(*row, "--run", run, "--out", page)
    assert "The row of the run was made of 2 events." in page.read_text()
    assert "--run: run 1 has lost its manifest" in command.error(*row, "--run", "1")
    message = command.error(*row[:-1], "windowEnd=2024-03-01T11:15Z,deviceId=a", "--run", run)
    assert message.endswith(f"--run: run {run} has no slice that starts at 2024-03-01T11:00:00Z")
    assert "--out and --run need --row" in command.error(
        "explain", world.file, *FIRST_HOUR, "--event", "0/0", "--run", run
    )


def test_an_event_that_a_later_slice_did_not_read_is_not_in_its_row(
    processes: Workers, tmp_path: Path, command: Command
) -> None:
    """The blob was added between the runs of two slices that share a window."""
    world = World(tmp_path)
    world.put("0", at(50), [body("a", at(49))])
    world.put("0", at(62), [body("a", at(61))], first=2)
    world.put("0", at(190))
    pipeline = world.define(QUERY.replace("TumblingWindow(minute, 5)", "HoppingWindow(minute, 30, 15)"))
    backfill(processes, pipeline, at(60), at(120))
    world.put("0", at(51), [body("a", at(50))], first=1)
    backfill(processes, pipeline, TEN, at(60))
    (event,) = command.json("explain", world.file, *FIRST_HOUR, "--event", "0/1")["events"]
    first, second = event["outputs"][0]["windows"]
    assert (first["end"], first["row"]["events"]) == ("2024-03-01T11:00:00Z", 2)
    assert (second["end"], second["row"]) == ("2024-03-01T11:15:00Z", None)
    assert second["why"] == "what is published for this slice was computed without the event"


def test_at_most_twenty_events_are_explained_and_the_rest_is_counted(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)
    world.put("0", at(12), [body("a", at(10) + timedelta(seconds=n)) for n in range(23)])
    world.define(QUERY)
    out, err = command.run("explain", world.file, *FIRST_HOUR, "--where", "deviceId=a", "--json")
    assert out.count('"sequence_number"') == 20
    assert "3 more events fulfil the conditions: recapture find lists all of them" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give one of --event PARTITION/SEQUENCE, --where KEY=VALUE and --row NAME=VALUE,…"),
        (("--event", "0/1", "--where", "a=1"), "give one of --event"),
        (("--event", "0/1"), "give the range in which the event arrived, with --from and --to"),
        (("--event", "1", *FIRST_HOUR), "--event 1 is not PARTITION/SEQUENCE: write it as 3/4711"),
        (("--row", "windowEnd"), "--row windowEnd does not name a row: write it as windowEnd="),
        (("--row", "deviceId=a"), "--row: add windowEnd, the time of the row"),
        (("--row", "slice_start=2024-03-01T10:30Z,deviceId=a"), "--row: no slice starts at slice_start: slices start"),
        (("--row", "windowend=yesterday,deviceId=a"), "--row: windowEnd=yesterday is not a datetime"),
        (
            ("--row", "windowEnd=9999-12-31T23:59Z,deviceId=a"),
            "the time of the row must be after 1970 and not in the future",
        ),
        (
            ("--row", "windowEnd=0001-01-01T00:00Z,deviceId=a"),
            "the time of the row must be after 1970 and not in the future",
        ),
        (("--row", "device=a"), "aggregates has no column device; did you mean deviceId?"),
        (("--row", "windowEnd=NULL,deviceId=a"), "--row: windowEnd is never NULL: write the time of the row"),
        (("--row", "deviceId=a", *FIRST_HOUR), "--row names the time of the row: leave out --from and --to"),
        (("--row", "deviceId=a", "--output", "aggregate"), "did you mean aggregates?"),
        (
            ("--event", "0/1", "--from", "2020-01-01T00:00Z", "--to", "2024-01-01T00:00Z"),
            "the range has more than 1,000 slices: choose a shorter one",
        ),
    ],
    ids=str,
)
def test_a_mistake_in_the_arguments_says_what_to_write(
    world: World, arguments: tuple[str, ...], message: str, command: Command
) -> None:
    world.define(QUERY)
    assert message in command.error("explain", world.file, *arguments)


def test_a_window_without_events_has_no_row(world: World, command: Command) -> None:
    world.define(QUERY)
    shown = command.json("explain", world.file, "--row", "windowEnd=2024-03-01T10:20Z,deviceId=a")
    why = "slice 2024-03-01T10:00:00Z has no row at 2024-03-01T10:20:00Z with this deviceId"
    assert (shown["row"], shown["why"], shown["events"]) == (None, why, [])


def test_rows_without_their_time_are_found_in_their_slice(world: World, command: Command) -> None:
    world.define(QUERY.replace("SELECT System.Timestamp() AS windowEnd, deviceId,", "SELECT deviceId,"))
    message = command.error("explain", world.file, "--row", "deviceId=a")
    assert "no column of aggregates is the time of its rows, System.Timestamp(): add slice_start=" in message
    (event, other) = command.json("explain", world.file, "--row", "slice_start=2024-03-01T10:00Z,deviceId=a")["events"]
    assert (event["sequence_number"], other["sequence_number"]) == (0, 2)


def test_with_several_inputs_the_input_of_an_event_must_be_named(tmp_path: Path, command: Command) -> None:
    world = World(tmp_path)
    world.put("0", at(5), [body("a", at(4))])
    world.put("0", at(6), [body("a", at(4))], hub="other")
    query = QUERY + QUERY.replace("telemetry", "other").replace("aggregates", "others")
    outputs = [{"alias": "aggregates", "table": "a"}, {"alias": "others", "table": "b"}]
    world.define(query, inputs=[TELEMETRY, TELEMETRY | {"alias": "other", "event_hub": "other"}], outputs=outputs)
    explain = ("explain", world.file, *FIRST_HOUR, "--event", "0/0")
    assert "choose the event's input with --input: telemetry, other" in command.error(*explain)
    (event,) = command.json(*explain, "--input", "other")["events"]
    assert event["outputs"][0]["why"] == "no SELECT of this output reads other"
    assert event["outputs"][1]["windows"][0]["row"]["events"] == 1
    row = ("explain", world.file, "--row", "windowEnd=2024-03-01T10:05Z,deviceId=a")
    assert "choose one with --output: aggregates, others" in command.error(*row)
    assert command.json(*row, "--output", "others")["events"][0]["input"] == "other"
