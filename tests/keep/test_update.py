"""What updates do after faults, and beside each other, in a storage and tables in memory."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recapture.archive.definitions import ArrivalTime, ReferenceDefinition, RunDefinition
from recapture.definition.sections import Schedule
from recapture.errors import AuditError, DefinitionError, RunError
from recapture.formats.reference_data import ReferencePath
from recapture.keep.claims import hold
from recapture.keep.due import DueRange
from recapture.keep.requests import cancelled, with_request
from recapture.keep.state import reading_of
from recapture.keep.update import Skipped
from recapture.run.slice_state import State
from recapture.run_files.changes import read_changes
from recapture.run_files.work import WORK, Request, RequestState
from recapture.time_model import ticks
from tests.keep.memory import Clock, KilledError
from tests.keep.simulated import INTERVAL, LENGTH, PARTITIONS, ROWS, TELEMETRY, Deployment

MIDNIGHT = datetime(2024, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
ENQUEUED = replace(TELEMETRY, arrival_time=ArrivalTime.EVENT_ENQUEUED)
"""An input whose blobs are read by the times in their names, also when they are replaced later."""


def hour(number: int) -> int:
    """Return the start of an hour, in ticks."""
    return ticks.from_datetime(MIDNIGHT + number * HOUR)


class World(Deployment):
    """A pipeline whose table is kept from midnight on. Capture writes every blob when its interval ends."""

    def __init__(self, hours: float, *references: ReferenceDefinition, **schedule: object) -> None:
        definition = RunDefinition(
            name="telemetry", engine="1", canonical_query="query", inputs=[ENQUEUED], references=references
        )
        kept = Schedule.model_validate({"since": MIDNIGHT, "quiet_minutes": 0, "outdated": "keep"} | schedule)
        super().__init__(definition, kept, Clock(MIDNIGHT), refuses_loss=False)
        self.pass_hours(hours)

    def pass_hours(self, hours: float) -> None:
        end = self.clock.now + hours * HOUR
        while self.clock.now + INTERVAL <= end:
            opened = self.clock.now
            self.clock.now += INTERVAL
            for partition in range(PARTITIONS):
                self.archive.write(name(opened, partition), b"event")

    def spoil(self, number: int, content: bytes) -> None:
        """Replace the first blob of an hour."""
        self.archive.write(name(MIDNIGHT + number * HOUR, 0), content)

    def hours(self) -> list[int]:
        """Return the hours that are published."""
        return sorted((start - hour(0)) // LENGTH for start in self.published())

    def request(self, first: int, end: int, id: str = "1") -> None:
        request = Request(id, "ann", hour(first), hour(end), self.clock.ticks, self.clock.ticks)
        WORK.change(self.run_files, lambda work: with_request(work, request))

    def requests_by_id(self) -> dict[str, Request]:
        return {request.id: request for request in WORK.read(self.run_files).requests}


def name(opened: datetime, partition: int) -> str:
    return f"contoso/telemetry/{partition}/{opened:%Y/%m/%d/%H/%M/%S}.avro"


@pytest.fixture
def world() -> Iterator[World]:
    """Return a day of which nothing is published."""
    world = World(24.75)
    with world.in_use():
        yield world


def runs_of(world: World, number: int) -> int:
    """Return how often an hour was computed."""
    return sum(hour(number) in computation.slices for computation in world.computations)


def test_a_slice_that_cannot_be_computed_ends_alone_and_all_others_are_published(world: World) -> None:
    world.spoil(7, b"damaged")
    for _ in range(6):
        world.update()
    assert world.hours() == [number for number in range(24) if number != 7]
    assert runs_of(world, 7) == 6
    assert max(runs_of(world, number) for number in range(24) if number != 7) <= 6


def test_a_slice_that_failed_is_shown_as_such_until_it_is_published(world: World) -> None:
    world.spoil(7, b"damaged")
    for _ in range(6):
        world.update()
    failed, text = world.read().standing, ticks.to_text(hour(7))
    assert (failed.state(text), list(failed.failures)) == (State.FAILED, [text])
    world.spoil(7, b"event")
    world.update()
    published = world.read().standing
    assert (published.state(text), published.failures) == (State.PUBLISHED, {})


def test_a_slice_that_failed_alone_is_tried_again_after_pauses_that_grow_to_a_day(world: World) -> None:
    world.spoil(7, b"damaged")
    for _ in range(6):
        world.update()
    tries = []
    while world.clock.now < MIDNIGHT + 5 * 24 * HOUR:
        world.clock.advance(15)
        before = runs_of(world, 7)
        world.update()
        if runs_of(world, 7) > before:
            tries.append((world.clock.now - MIDNIGHT - 24.75 * HOUR) / HOUR)
    assert tries == [0.25, 0.5, 1, 2, 4, 8, 16, 32, 56, 80]


def test_a_slice_that_failed_is_computed_as_soon_as_its_blob_is_restored(world: World) -> None:
    world.spoil(23, b"damaged")
    for _ in range(6):
        world.update()
    assert 23 not in world.hours()
    world.spoil(23, b"event")
    world.update()
    assert world.hours() == [*range(24)]
    assert WORK.read(world.run_files).failures == ()


def test_newer_hours_are_published_while_an_older_one_fails(world: World) -> None:
    world.schedule = world.schedule.model_copy(update={"at_most_slices": 1})
    world.spoil(23, b"damaged")
    world.update()
    for _ in range(3):
        world.pass_hours(1)
        world.update()
    assert world.hours() == [24, 25, 26]


def test_what_failed_for_ever_does_not_use_up_the_budget() -> None:
    world = World(6.75, at_most_slices=1)
    with world.in_use():
        for number in (3, 4, 5):
            world.spoil(number, b"damaged")
        for _ in range(6):
            world.update()
        assert world.hours() == [0, 1, 2]


def test_a_file_that_another_program_removed_is_not_put_back_although_its_slice_is_published(world: World) -> None:
    world.update()
    world.update()
    rows = world.store.logs[world.tables.others[ROWS].url]
    rows.append({start: file for start, file in rows[-1].items() if start != ticks.to_text(hour(3))})
    due, _ = world.update()
    assert due.unfinished == ()
    world.pass_hours(1)
    world.update()
    assert hour(3) not in world.shown()


def test_a_publication_that_was_killed_between_two_tables_is_finished_also_after_other_commits(world: World) -> None:
    world.update()
    world.update()
    world.pass_hours(1)

    def kill() -> None:
        raise KilledError

    for number in range(100):
        world.requests.at(number, kill)
        with pytest.raises(KilledError):
            world.backfill(hour(24), hour(25))
        if 24 in world.hours():
            break
    assert hour(24) not in world.shown()
    world.backfill(hour(5), hour(6))
    due, _ = world.update()
    assert due.unfinished == (hour(24),)
    assert hour(24) in world.shown()


def test_a_stopped_slice_beyond_the_look_back_is_computed_when_its_blobs_were_corrected(world: World) -> None:
    world.spoil(2, b"poison")
    for _ in range(7):
        world.update()
    world.pass_hours(24)
    for _ in range(3):
        world.update()
    assert 2 not in world.hours()
    world.spoil(2, b"event")
    for _ in range(2):
        world.update()
    assert 2 in world.hours()


def test_a_blob_that_changed_while_a_run_waited_for_its_approval_makes_the_slice_stale(world: World) -> None:
    world.spoil(2, b"poison")
    for _ in range(7):
        world.update()
    world.pass_hours(24)
    world.update()
    world.spoil(2, b"event")
    world.approve(world.stopped[-1])
    due, _ = world.update()
    assert [[slice_.reasons for slice_ in range_.slices] for range_ in due.ranges] == [[("stale: 1 blob modified",)]]


def test_a_stale_slice_that_was_quiet_and_that_a_budget_left_is_due_for_the_next_update_too() -> None:
    world, stale = World(24.75, quiet_minutes=30, at_most_slices=1), {hour(2), hour(8)}
    with world.in_use():
        world.backfill(hour(0), hour(24))
        world.update()
        for number in (2, 8):
            world.spoil(number, b"poison")
            with pytest.raises(AuditError):
                world.backfill(hour(number), hour(number + 1))
            world.spoil(number, b"event")
        world.pass_hours(1)
        for stopped in world.stopped:
            world.approve(stopped)
        due = [world.update()[0] for _ in range(2)]
    assert [tick.waiting for tick in due] == [(), ()]
    assert due[0].ranges[0].start == hour(24)
    assert {slice_.start for slice_ in due[0].left} == stale
    assert {slice_.start for range_ in due[1].ranges for slice_ in (*range_.slices, *due[1].left)} == stale


def test_a_stale_slice_is_not_forgotten_although_its_run_was_published_again_since_it_was_first_found_stale() -> None:
    world = World(24.75, quiet_minutes=30)
    with world.in_use():
        world.backfill(hour(0), hour(24))
        world.update()
        for number in (2, 8):
            run = world.backfill(hour(number), hour(number + 1))
            world.archive.delete(name(MIDNIGHT + number * HOUR, 0))
        world.update()
        world.backfill(hour(8), hour(9))
        world.archive.restore(name(MIDNIGHT + 8 * HOUR, 0))
        world.clock.advance(1)
        assert world.backfill(hour(8), hour(9)) == run
        world.archive.delete(name(MIDNIGHT + 8 * HOUR, 0))
        waiting = [{slice_.start for slice_ in world.update()[0].waiting} for _ in range(3)]
    assert waiting == 3 * [{hour(2), hour(8)}]


def test_an_update_does_not_compute_what_another_one_computes_or_published_meanwhile(world: World) -> None:
    outcomes: list[object] = []
    compute = world.compute

    def compute_beside_another(range_: DueRange) -> str:
        if not outcomes:
            outcomes.append(None)
            _, outcomes[0] = world.update()
        return compute(range_)

    world.compute = compute_beside_another
    _, first = world.update()
    assert outcomes == [[]]
    assert len(world.computations) == len(first) == 1


def test_an_update_computes_the_slices_of_its_range_that_no_other_run_computes(world: World) -> None:
    world.backfill(hour(20), hour(21))
    compute = world.compute

    def held_meanwhile(range_: DueRange) -> str:
        WORK.change(world.run_files, lambda work: hold(work, "by hand", hour(10), hour(12), world.clock.ticks))
        return compute(range_)

    world.compute = held_meanwhile
    _, outcomes = world.update()
    skipped = [(outcome.range.start, outcome.range.end) for outcome in outcomes if isinstance(outcome, Skipped)]
    assert skipped == [(hour(10), hour(12))]
    assert world.hours() == [*range(10), *range(12, 24)]


def test_a_range_is_judged_again_before_its_run(world: World) -> None:
    world.backfill(hour(20), hour(21))
    compute = world.compute

    def backfilled_meanwhile(range_: DueRange) -> str:
        world.backfill(hour(10), hour(12))
        world.compute = compute
        return compute(range_)

    world.compute = backfilled_meanwhile
    _, outcomes = world.update()
    parts = [(outcome.range.start, outcome.range.end) for outcome in outcomes if isinstance(outcome, Skipped)]
    assert parts == [(hour(10), hour(12))]
    assert world.hours() == [*range(24)]
    assert max(runs_of(world, number) for number in range(24)) == 1


def test_what_a_killed_update_was_computing_is_computed_after_ten_minutes(world: World) -> None:
    compute = world.compute

    def kill(range_: DueRange) -> str:
        raise KilledError

    world.compute = kill
    with pytest.raises(KilledError):
        world.update()
    world.compute = compute
    due, _ = world.update()
    assert not due.ranges
    assert due.waiting[0].waits_for == ("another run, which has been computing it since 2024-03-02T00:45:00Z",)
    world.clock.advance(10)
    world.update()
    assert world.hours() == [*range(24)]


def test_a_mistake_in_the_definition_ends_the_update_after_what_it_published(world: World) -> None:
    world.backfill(hour(20), hour(21))
    compute = world.compute

    def mistake(range_: DueRange) -> str:
        raise DefinitionError("the suite has a mistake")

    def compute_once(range_: DueRange) -> str:
        world.compute = mistake
        return compute(range_)

    world.compute = compute_once
    _, outcomes = world.update()
    assert [type(outcome) for outcome in outcomes] == [str, DefinitionError]
    world.compute = compute
    world.update()
    assert world.hours() == [*range(24)]


def test_a_published_run_is_reported_although_the_storage_refuses_to_write_down_what_became_of_it(
    world: World,
) -> None:
    compute = world.compute

    def refuse() -> None:
        raise RunError("the storage refuses")

    def compute_then_refuse(range_: DueRange) -> str:
        run = compute(range_)
        world.requests.at(0, refuse)
        return run

    world.compute = compute_then_refuse
    _, outcomes = world.update()
    assert [type(outcome) for outcome in outcomes] == [str, RunError]


def test_slices_that_read_another_container_are_outdated_and_not_stale(world: World) -> None:
    world.update()
    world.place = "another container"
    for blob in [*world.archive.list()]:
        world.archive.write(blob.name, b"event")
    due, _ = world.update()
    assert [slice_.reasons for slice_ in due.waiting] == [("outdated: other containers",)] * 24
    assert due.ranges == ()


ROOMS = ReferenceDefinition(alias="rooms", names=ReferencePath("rooms/{date}.json", "YYYY-MM-DD"), reading={})


@pytest.mark.parametrize("day", [1, 2])
def test_reference_data_that_changed_makes_all_slices_that_need_it_stale(day: int) -> None:
    world = World(0, ROOMS)
    with world.in_use():
        for number in (1, 2):
            world.archive.write(f"rooms/2024-03-0{number}.json", b"rooms")
        world.pass_hours(48.75)
        for _ in range(2):
            world.update()
        assert world.hours() == [*range(48)]
        world.pass_hours(24)
        world.update()
        world.archive.write(f"rooms/2024-03-0{day}.json", b"other rooms")
        due = world.look()
        stale = {slice_.start for range_ in due.ranges for slice_ in range_.slices if "missing" not in slice_.reasons}
        hours = {(start - hour(0)) // LENGTH for start in (*stale, *(slice_.start for slice_ in due.left))}
        assert hours == ({*range(24)} if day == 1 else {*range(23, 72)})
        reasons = {slice_.reasons for range_ in due.ranges for slice_ in range_.slices}
        assert reasons == {("stale: reference data rooms changed",)}


def test_an_update_whose_storage_refuses_a_request_finds_the_same_or_fails(world: World) -> None:
    world.update()
    world.entries = {path: entry for path, entry in world.entries.items()}
    world.spoil(23, b"odd")
    expected = world.look()

    def refuse() -> None:
        raise RunError("the storage refuses")

    refused = 0
    for number in range(60):
        world.requests.at(number, refuse)
        try:
            assert world.look() == expected
        except RunError:
            refused += 1
    world.requests.never()
    assert refused > 5


def test_a_first_run_that_fails_does_not_let_its_slice_be_forgotten() -> None:
    world = World(24.75, since=None)
    with world.in_use():
        world.spoil(23, b"damaged")
        world.update()
        world.pass_hours(2)
        world.update()
        assert world.hours() == [24, 25]
        world.spoil(23, b"event")
        world.update()
        assert world.hours() == [23, 24, 25]


def test_a_request_computes_slices_that_are_up_to_date_once(world: World) -> None:
    world.update()
    world.request(4, 6)
    for _ in range(3):
        world.update()
    assert [runs_of(world, number) for number in (3, 4, 5, 6)] == [1, 2, 2, 1]
    request = world.requests_by_id()["1"]
    assert (request.state, sorted(request.published)) == (
        RequestState.PUBLISHED,
        ["2024-03-01T04:00:00Z", "2024-03-01T05:00:00Z"],
    )


def test_a_request_that_is_cancelled_while_the_update_computes_something_else_is_not_computed(world: World) -> None:
    world.update()
    world.request(4, 5)
    world.request(9, 10, "2")
    compute = world.compute

    def cancel(range_: DueRange) -> str:
        WORK.change(world.run_files, lambda work: cancelled(work, "1", "bob", world.clock.ticks))
        return compute(range_)

    world.compute = cancel
    world.update()
    assert [runs_of(world, number) for number in (4, 9)] == [1, 2]
    assert world.requests_by_id()["1"].state == RequestState.CANCELLED
    assert world.requests_by_id()["2"].state == RequestState.PUBLISHED


def test_a_request_that_has_started_is_not_cancelled(world: World) -> None:
    world.schedule = replace_schedule(world, at_most_slices=1)
    for _ in range(24):
        world.update()
    world.request(4, 6)
    world.update()
    WORK.change(world.run_files, lambda work: cancelled(work, "1", "bob", world.clock.ticks))
    assert world.requests_by_id()["1"].state == RequestState.STARTED
    world.update()
    assert world.requests_by_id()["1"].state == RequestState.PUBLISHED


def test_a_request_says_which_slice_failed_and_why(world: World) -> None:
    world.update()
    world.spoil(4, b"damaged")
    world.request(3, 6)
    for _ in range(4):
        world.update()
    request = world.requests_by_id()["1"]
    assert request.state == RequestState.FAILED
    assert sorted(request.published) == ["2024-03-01T03:00:00Z", "2024-03-01T05:00:00Z"]
    assert list(request.failed) == ["2024-03-01T04:00:00Z"]
    assert request.failed["2024-03-01T04:00:00Z"].endswith("is damaged")


def test_a_failure_that_is_over_costs_later_updates_nothing(world: World) -> None:
    for _ in range(2):
        world.update()
    idle = requests_of_update(world)
    world.request(7, 8)
    compute = world.compute

    def fail(range_: DueRange) -> str:
        raise RunError("a blob changed since it was planned")

    world.compute = fail
    world.update()
    world.compute = compute
    assert len(WORK.read(world.run_files).failures) == 1
    assert requests_of_update(world) == idle


def test_a_failure_of_a_slice_that_is_not_kept_costs_later_updates_nothing(world: World) -> None:
    world.schedule = replace_schedule(world, since=MIDNIGHT + 8 * HOUR)
    for _ in range(2):
        world.update()
    idle = requests_of_update(world)
    world.spoil(7, b"damaged")
    world.request(7, 8)
    world.update()
    assert len(WORK.read(world.run_files).failures) == 1
    assert requests_of_update(world) == idle


def requests_of_update(world: World) -> int:
    """Run an update that has nothing to do, and return the number of its requests."""
    before = world.requests.count
    due, _ = world.update()
    assert not due.ranges
    return world.requests.count - before


def test_a_stopped_run_of_several_slices_ends_the_pause_after_a_failure(world: World) -> None:
    compute = world.compute

    def fail_at_seven(range_: DueRange) -> str:
        if range_.start <= hour(7) < range_.end:
            raise RunError("the storage refuses")
        return compute(range_)

    world.compute = fail_at_seven
    for _ in range(6):
        world.update()
    world.compute = compute
    world.update()
    assert 7 not in world.hours()
    world.spoil(6, b"poison")
    with pytest.raises(AuditError):
        world.backfill(hour(6), hour(8))
    world.update()
    assert 7 in world.hours()


def test_a_slice_that_its_audit_stopped_alone_waits_for_a_person_although_a_later_run_failed(world: World) -> None:
    world.spoil(7, b"poison")
    for _ in range(6):
        world.update()
    world.request(7, 8)
    compute = world.compute

    def fail(range_: DueRange) -> str:
        raise RunError("the storage refuses")

    world.compute = fail
    world.update()
    world.compute = compute
    world.clock.advance(16)
    assert holds(world, 7) == ["a person, because the audit stopped run"]


def test_of_two_runs_that_are_stopped_in_the_same_second_the_shorter_one_counts(world: World) -> None:
    world.spoil(7, b"poison")
    for first, end in ((7, 8), (6, 9)):
        with pytest.raises(AuditError):
            world.backfill(hour(first), hour(end))
    assert holds(world, 7) == ["a person, because the audit stopped run"]


def test_a_slice_waits_for_a_person_when_its_blobs_are_again_those_of_the_run_that_its_audit_stopped(
    world: World,
) -> None:
    world.spoil(7, b"poison")
    for _ in range(6):
        world.update()
    added = name(MIDNIGHT + 7 * HOUR + timedelta(minutes=7), 0)
    world.archive.write(added, b"damaged")
    world.request(7, 8)
    world.update()
    assert len(WORK.read(world.run_files).failures) == 1
    world.archive.delete(added)
    world.clock.advance(16)
    assert holds(world, 7) == ["a person, because the audit stopped run"]


def test_an_approved_run_of_a_provisional_slice_is_computed_once_when_the_slice_is_complete() -> None:
    world = World(8, until=MIDNIGHT + 8 * HOUR, provisional=True)
    with world.in_use():
        world.spoil(7, b"poison")
        for _ in range(4):
            world.update()
        world.approve(world.stopped[-1])
        assert is_provisional(world, 7)
        world.clock.advance(60 * 4)
        number = len(world.computations)
        for _ in range(3):
            world.update()
        again = [run for run in world.computations[number:] if hour(7) in run.slices]
        assert [run.run for run in again] == [world.stopped[-1].run]
        assert holds(world, 7) == ["a person, because the audit stopped run"]
        world.approve(world.stopped[-1])
        assert (is_provisional(world, 7), holds(world, 7)) == (False, [])


def test_a_requested_slice_is_published_again_if_its_run_was_approved_with_the_same_result(world: World) -> None:
    world.spoil(7, b"poison")
    with pytest.raises(AuditError):
        world.backfill(hour(7), hour(8))
    world.approve(world.stopped[-1])
    world.request(7, 8)
    world.update()
    assert world.requests_by_id()["1"].published == {ticks.to_text(hour(7)): world.stopped[-1].run}


def is_provisional(world: World, number: int) -> bool:
    current = world.entry(hour(number)).current
    assert current is not None
    return current.provisional


def holds(world: World, number: int) -> list[str]:
    """Return what an hour waits for, without the names of runs."""
    waits_for = {slice_.start: slice_.waits_for for slice_ in world.look().waiting}
    return [hold.rpartition(" ")[0] for hold in waits_for.get(hour(number), ())]


def replace_schedule(world: World, **keys: object) -> Schedule:
    return world.schedule.model_copy(update=keys)


def test_an_update_in_the_past_does_not_shorten_the_record(world: World) -> None:
    world.update()
    before = read_changes(world.run_files)
    sources = world.sources()
    reading_of(sources, MIDNIGHT + 12 * HOUR).record(sources)
    after = read_changes(world.run_files)
    assert (after.updated, after.checked, after.start, after.end) == (
        before.updated,
        before.checked,
        before.start,
        before.end,
    )
    assert replace(after, turn=None, finished=None) == replace(before, turn=None, finished=None)
