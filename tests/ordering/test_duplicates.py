"""Duplicates and gaps: only the first arrival of an event is used (docs/time-model.md, sections 5.1 and 5.2)."""

from dataclasses import replace
from pathlib import Path

import pytest

from recapture.archive.definitions import ArrivalTime
from recapture.time_model.ticks import from_seconds
from recapture.tools.sample import SampleEvent
from tests.ordering.tasks import (
    ENQUEUED,
    HOUR,
    MINUTE,
    PLAIN,
    POLICIES,
    TEN,
    all_tasks,
    at,
    copied,
    gaps,
    only,
    plain,
    put,
    put_events,
    system_times,
    verdicts,
)


@pytest.mark.parametrize("arrival_time", list(ArrivalTime))
def test_only_the_first_arrival_of_an_event_is_used(tmp_path: Path, arrival_time: ArrivalTime) -> None:
    """A duplicate of an event that is early, late, malformed or untimed is a duplicate, and has no verdict."""
    arrival = TEN + 30 * MINUTE
    bodies = [at(arrival - MINUTE), at(arrival + 20 * MINUTE), at(TEN - HOUR), b"[]", b"{}"]
    events = [SampleEvent(n, "", arrival - 4 * MINUTE, body) for n, body in enumerate(bodies, 7)]
    name = put_events(tmp_path, arrival, events)
    rows, once = only(tmp_path, arrival_time=arrival_time)
    copied(tmp_path, name, arrival + 20 * MINUTE, arrival - 4 * MINUTE)
    again, twice = only(tmp_path, arrival_time=arrival_time)
    assert again.equals(rows)
    assert (twice.events, twice.duplicates, twice.blobs) == (10, 5, 2)
    assert twice.event_bytes == 2 * once.event_bytes
    changed = {"planned_slice", "events", "event_bytes", "blobs", "duplicates"}
    assert {key: value for key, value in plain(twice).items() if key not in changed} == {
        key: value for key, value in plain(once).items() if key not in changed
    }


def test_by_enqueued_time_a_duplicate_is_recognised_however_late_its_blob_was_written(tmp_path: Path) -> None:
    events = [SampleEvent(n, "", TEN + 8 * MINUTE, at(TEN + 8 * MINUTE)) for n in range(3)]
    name = put_events(tmp_path, TEN + 10 * MINUTE, events)
    copied(tmp_path, name, TEN + 90 * HOUR, TEN + 6 * MINUTE)
    rows, counted = only(tmp_path, arrival_time=ENQUEUED)
    assert (rows.num_rows, counted.events, counted.duplicates) == (3, 6, 3)


def test_a_duplicate_does_not_move_the_watermark(tmp_path: Path) -> None:
    """If it were used, it would be late: its time would be adjusted, and move the watermark past the next event."""
    name = put(tmp_path, TEN + 5 * MINUTE, [(1, at(TEN + 4 * MINUTE))])
    copied(tmp_path, name, TEN + 50 * MINUTE, TEN + MINUTE)
    put(tmp_path, TEN + 50 * MINUTE, [(2, at(TEN + 41 * MINUTE))], opened=TEN + 46 * MINUTE)
    rows, counted = only(tmp_path, policies=replace(POLICIES, late_tolerance=from_seconds(540)))
    assert system_times(rows) == [240, 2460]
    assert (verdicts(counted), counted.duplicates) == ({"on_time": 2}, 1)


def test_an_event_twice_in_one_blob_is_used_once(tmp_path: Path) -> None:
    put(tmp_path, TEN + 10 * MINUTE, [(n, at(TEN + 5 * MINUTE)) for n in (3, 1, 2, 3, 1)])
    rows, counted = only(tmp_path)
    assert (rows.num_rows, counted.events, counted.duplicates) == (3, 5, 2)


def test_a_gap_counts_in_the_slice_that_holds_the_arrival_after_it(tmp_path: Path) -> None:
    put(tmp_path, TEN + 55 * MINUTE, [(1, at(TEN)), (4, at(TEN))])
    put(tmp_path, TEN + 65 * MINUTE, [(9, at(TEN + HOUR))])
    slices = all_tasks(tmp_path, PLAIN, POLICIES, 1 << 40, 0, 2)
    assert [gaps(counted) for _, counted in slices.values()] == [[(2, 3)], [(5, 8)]]


@pytest.mark.parametrize(("minutes", "missing"), [(70, []), (71, [(2, 2)])])
def test_an_event_that_arrives_within_what_a_slice_reads_is_not_missing_in_it(
    tmp_path: Path, minutes: int, missing: list[tuple[int, int]]
) -> None:
    put(tmp_path, TEN + 50 * MINUTE, [(1, at(TEN)), (3, at(TEN))])
    event = SampleEvent(2, "", TEN + 50 * MINUTE, at(TEN))
    put_events(tmp_path, TEN + minutes * MINUTE, [event])
    for hours in (1, 2):
        slices = all_tasks(tmp_path, PLAIN, POLICIES, 1 << 40, 0, hours)
        assert gaps(next(iter(slices.values()))[1]) == missing
