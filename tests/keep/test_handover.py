"""`recapture handover`: where a live job continues, and what does not let it."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from recapture.definition.sections import Schedule
from recapture.execute.processes.workers import Workers
from recapture.keep.due import Difference, SliceFacts, State
from recapture.keep.handover import Problem, problems
from recapture.time_model import ticks
from tests.commands import Command
from tests.keep.live_job import outcomes_of_job
from tests.oracle import Event, Policy, windows
from tests.oracle_windows import Hopping
from tests.worlds import HOUR, TELEMETRY, TEN, World, at, backfill, body, published

ENQUEUED = TELEMETRY | {"arrival_time": "EventEnqueuedUtcTime", "search_hours": 6}
FIVE_MINUTES = ticks.from_seconds(300)
ELEVEN, NOON, ONE = TEN + HOUR, TEN + 2 * HOUR, TEN + 3 * HOUR


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Four hours from ten on, with an event of each of two partitions every five minutes, some of them late."""
    world = World(tmp_path)
    for number in range(48):
        for partition in "01":
            world.put(partition, at(5 * number + 5.1), [body("a", time_of(number))], number, opened=at(5 * number))
    world.define(inputs=[ENQUEUED])
    return world


def time_of(number: int) -> datetime:
    """Return the application time of the event with this number, which is enqueued at 5 * number minutes after ten."""
    return at(5 * number) + timedelta(minutes=(0, -4, 3, -9)[number % 4])


def test_a_job_that_starts_where_it_says_continues_the_table(
    processes: Workers, world: World, command: Command
) -> None:
    backfill(processes, world.define(inputs=[ENQUEUED]), TEN, NOON)
    result = command.json("handover", world.file)
    assert (result["ready"], result["to"]) == (True, "2024-03-01T12:00:00Z")
    assert (result["start_time"], result["not_guaranteed"]) == ("2024-03-01T12:00:01Z", [])
    (read,) = result["inputs"]
    assert read["reads_from"] == "2024-03-01T11:50:00Z"
    live = live_rows(ticks.from_datetime(datetime.fromisoformat(result["start_time"])), ticks.from_datetime(ONE))
    history = {(row["windowEnd"], row["events"]) for row in published(world.table)}
    backfill(processes, world.define(inputs=[ENQUEUED]), NOON, ONE)
    assert history & live == set()
    assert history | live == {(row["windowEnd"], row["events"]) for row in published(world.table)}


def live_rows(start_time: int, until: int) -> set[tuple[datetime, int]]:
    """Return window end and number of events of the rows that the live job emits up to `until`, inclusive."""
    instants = [(ticks.from_datetime(at(5 * number)), ticks.from_datetime(time_of(number))) for number in range(48)]
    events = [
        Event(partition, arrival, number, time, over=("a",))
        for partition in "01"
        for number, (arrival, time) in enumerate(instants)
    ]
    outcomes = outcomes_of_job(events, Policy(0, 2 * FIVE_MINUTES, FIVE_MINUTES), FIVE_MINUTES, start_time)
    contents = windows(outcomes, Hopping(FIVE_MINUTES, FIVE_MINUTES), (), start_time - 1, until)
    return {(ticks.to_datetime(content.end), len(content.members)) for content in contents}


def test_each_partition_has_the_last_event_that_arrived_in_the_published_slices(
    processes: Workers, world: World, command: Command
) -> None:
    backfill(processes, world.define(inputs=[ENQUEUED]), TEN, NOON)
    (read,) = command.json("handover", world.file)["inputs"]
    assert [partition["partition"] for partition in read["partitions"]] == ["0", "1"]
    first = read["partitions"][0]
    assert (first["sequence_number"], first["offset"], first["missing"]) == (24, "2400", [])
    assert (first["enqueued_time"], first["slice_start"]) == ("2024-03-01T12:00:00Z", "2024-03-01T11:00:00Z")
    text = command.text("handover", world.file)
    assert "custom start time of the live job: 2024-03-01T12:00:01Z" in text
    assert "no problem was found in the slices from 2024-03-01T10:00:00Z on" in text


def test_slices_that_do_not_hold_what_the_archive_gives_are_named_and_the_exit_code_is_1(
    processes: Workers, world: World, command: Command
) -> None:
    for start in (TEN, NOON):
        backfill(processes, world.define(inputs=[ENQUEUED]), start, start + HOUR)
    world.put("0", at(300), [body("a", at(3))] * 2, 1, opened=at(5))
    result = command.json("handover", world.file, code=1)
    assert result["to"] == "2024-03-01T13:00:00Z"
    named = [(problem["from"][11:16], problem["reasons"][0]) for problem in result["problems"]]
    assert named == [("10:00", "stale: 1 blob modified"), ("11:00", "missing")]
    assert "problem: 2024-03-01T11:00:00Z to 2024-03-01T12:00:00Z: missing" in command.text(
        "handover", world.file, code=1
    )


def test_the_events_of_a_slice_between_that_is_not_published_are_named_as_missing(
    processes: Workers, world: World, command: Command
) -> None:
    for start in (TEN, NOON):
        backfill(processes, world.define(inputs=[ENQUEUED]), start, start + HOUR)
    (read,) = command.json("handover", world.file, code=1)["inputs"]
    assert [(one["sequence_number"], one["missing"]) for one in read["partitions"]] == [
        (36, [{"first": 13, "last": 24}])
    ] * 2


def test_a_position_whose_blob_is_gone_has_a_number_and_says_why_it_has_no_offset(
    processes: Workers, world: World, command: Command
) -> None:
    backfill(processes, world.define(inputs=[ENQUEUED]), TEN, NOON)
    for blob in world.capture.glob("contoso/telemetry/0/2024/03/01/12/00/*"):
        blob.unlink()
    (read,) = command.json("handover", world.file, code=1)["inputs"]
    first, second = read["partitions"]
    assert (first["sequence_number"], first["offset"], second["offset"]) == (24, None, "2400")
    assert "was deleted since it was planned" in first["problem"]


def test_without_a_publication_there_is_nothing_to_hand_over(world: World, command: Command) -> None:
    assert "nothing of telemetry is published" in command.error("handover", world.file, code=1)


def test_it_writes_nothing(processes: Workers, world: World, command: Command) -> None:
    backfill(processes, world.define(inputs=[ENQUEUED]), TEN, NOON)
    before = {path: path.stat().st_mtime_ns for path in world.home.rglob("*")}
    command.json("handover", world.file)
    assert {path: path.stat().st_mtime_ns for path in world.home.rglob("*")} == before


def test_slices_with_the_same_reasons_are_one_problem() -> None:
    complete = SliceFacts(run="a")
    state = State(
        now=100,
        since=0,
        end=80,
        until=80,
        length=10,
        schedule=Schedule(),
        slices={
            0: complete,
            10: SliceFacts(run="a", difference=Difference(added=1)),
            20: SliceFacts(run="a", difference=Difference(added=1)),
            30: complete,
            40: SliceFacts(run="a", waits_for=("partition 0",)),
            50: SliceFacts(run="a", is_unfinished=True),
        },
    )
    waits = "waits for 0001-01-01T00:30:00Z, or later if a blob changes again"
    assert list(problems(state, 60, {30})) == [
        Problem(10, 30, ("stale: 1 blob added", waits)),
        Problem(30, 40, ("unknown: the manifest of its run cannot be read",)),
        Problem(40, 50, ("incomplete: partition 0",)),
        Problem(50, 60, ("unfinished: a table does not hold what is published",)),
    ]
    assert list(problems(state, 10)) == []
