"""Events that arrive at their enqueued times (docs/time-model.md, section 1.2)."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.errors import RunError
from recapture.model import Metadata, MetadataColumn
from recapture.ordering import chunks
from recapture.ordering.counters import Counters
from recapture.ordering.task import split
from recapture.time_model.policies import Policies
from recapture.time_model.slices import Slice
from recapture.time_model.ticks import from_datetime, from_seconds
from tests.draws import examples
from tests.oracle import VERDICTS, Event, Outcome, Policy, judge_event, slice_metrics
from tests.ordering.tasks import (
    BY_ARRIVAL,
    ENQUEUED,
    HOUR,
    MINUTE,
    PLAIN,
    POLICIES,
    TEN,
    all_tasks,
    only,
    ordered,
    plain,
    planned,
    put_events,
    reaches,
    sent,
    system_times,
    verdicts,
)


def test_the_sequence_number_decides_the_order_whatever_the_enqueued_time(tmp_path: Path) -> None:
    """It decides within a blob and from blob to blob (docs/time-model.md, section 1.1)."""
    events = [sent(2, TEN + 8 * MINUTE), sent(1, TEN + 9 * MINUTE)]
    put_events(tmp_path, TEN + 11 * MINUTE, events, opened=TEN + 5 * MINUTE)
    put_events(tmp_path, TEN + 10 * MINUTE, [sent(3, TEN + 7 * MINUTE)], opened=TEN + 9 * MINUTE)
    rows, counted = only(tmp_path, arrival_time=ENQUEUED)
    assert system_times(rows) == [540, 540, 540]
    assert verdicts(counted) == {"on_time": 1, "out_of_order_adjusted": 2}
    rows, counted = only(tmp_path)
    assert system_times(rows) == [420, 540, 540], "by LastModified the other blob comes first"


def test_each_event_is_judged_by_its_own_arrival(tmp_path: Path) -> None:
    late = replace(POLICIES, late_tolerance=from_seconds(60))
    first, second = TEN + 5 * MINUTE, TEN + 9 * MINUTE
    put_events(tmp_path, TEN + 10 * MINUTE, [sent(1, first, TEN), sent(2, second, second - MINUTE)])
    rows, counted = only(tmp_path, policies=late, arrival_time=ENQUEUED)
    assert system_times(rows) == [4 * 60, 8 * 60]
    assert verdicts(counted) == {"late_adjusted": 1, "on_time": 1}
    rows, counted = only(tmp_path, policies=late)
    assert verdicts(counted) == {"late_adjusted": 2}


def test_an_event_is_counted_in_the_slice_of_its_own_arrival_and_a_blob_in_that_of_its_window(tmp_path: Path) -> None:
    border = TEN + HOUR
    events = [sent(1, border - MINUTE), sent(2, border + MINUTE), sent(3, border), sent(4, border + 2 * MINUTE)]
    put_events(tmp_path, border + 4 * MINUTE, events, opened=border - 2 * MINUTE)
    plan = planned(tmp_path, PLAIN, hours=2, arrival_time=ENQUEUED)
    (task,) = split(plan.slices, plan.blobs, 1 << 30)
    rows, counters = ordered(tmp_path, PLAIN, POLICIES, task)
    assert [(counted.events, counted.blobs) for counted in counters.values()] == [(2, 1), (2, 0)]
    assert [table.num_rows for table in rows.values()] == [1, 3]


def test_without_timestamp_by_the_enqueued_time_is_the_time(tmp_path: Path) -> None:
    put_events(tmp_path, TEN + 10 * MINUTE, [sent(1, TEN + 7 * MINUTE), sent(2, TEN + 6 * MINUTE)])
    rows, counted = only(tmp_path, BY_ARRIVAL, policies=None, arrival_time=ENQUEUED)
    assert system_times(rows) == [420, 360], "and no policy applies"
    assert verdicts(counted) == {"on_time": 2}


def test_by_enqueued_time_an_event_was_processed_when_it_was_enqueued(tmp_path: Path) -> None:
    columns = (MetadataColumn(Metadata.EVENT_PROCESSED), MetadataColumn(Metadata.EVENT_ENQUEUED))
    put_events(tmp_path, TEN + 10 * MINUTE, [sent(1, TEN + 7 * MINUTE)])
    rows, _ = only(tmp_path, replace(PLAIN, metadata=columns), arrival_time=ENQUEUED)
    assert [rows[column.name].to_pylist() for column in columns] == [[from_datetime(TEN + 7 * MINUTE)]] * 2


def test_by_enqueued_time_verdicts_need_the_late_tolerance_and_the_early_window_before_a_slice(tmp_path: Path) -> None:
    """One event, 80 minutes before the slice, is as early as is allowed; one in the slice is as late as is allowed."""
    policies = replace(POLICIES, late_tolerance=from_seconds(3600), early_window=from_seconds(1200))
    pushed = TEN - 80 * MINUTE + timedelta(seconds=2)
    put_events(tmp_path, pushed + 5 * MINUTE, [sent(1, pushed, pushed + 20 * MINUTE)], opened=pushed)
    for minutes in range(-70, 0, 10):
        put_events(tmp_path, TEN + (minutes + 10) * MINUTE, [], opened=TEN + minutes * MINUTE)
    arrival = TEN + timedelta(seconds=1)
    put_events(tmp_path, TEN + 5 * MINUTE, [sent(2, arrival, arrival - HOUR)], opened=TEN)
    _, counted = only(tmp_path, policies=policies, arrival_time=ENQUEUED)
    assert verdicts(counted) == {"out_of_order_adjusted": 1}


def test_an_event_enqueued_before_a_slice_is_in_it_if_the_watermark_moves_it_there(tmp_path: Path) -> None:
    """No event between two blobs that are read is left out because of its own time."""
    policies = replace(POLICIES, late_tolerance=None)
    put_events(tmp_path, TEN + MINUTE, [sent(1, TEN - MINUTE, TEN + 4 * MINUTE)], opened=TEN - 2 * MINUTE)
    put_events(tmp_path, TEN + 2 * MINUTE, [sent(2, TEN - 4 * MINUTE)], opened=TEN + MINUTE)
    rows, counted = only(tmp_path, policies=policies, arrival_time=ENQUEUED)
    assert system_times(rows) == [240, 240]
    assert counted.events == 0, "they are counted in the slice before"


@pytest.mark.parametrize("minutes", [-6, 16])
def test_a_blob_whose_events_were_enqueued_at_another_time_than_its_name_says_stops_the_task(
    tmp_path: Path, minutes: int
) -> None:
    name = put_events(tmp_path, TEN + 10 * MINUTE, [sent(1, TEN + minutes * MINUTE)], opened=TEN)
    with pytest.raises(RunError, match=rf"^blob {name} holds events enqueued from 2026.+ set input.arrival_time to "):
        only(tmp_path, arrival_time=ENQUEUED)


WHEN = st.tuples(
    st.integers(0, 12),
    st.integers(-240, 540).map(lambda seconds: timedelta(seconds=seconds)),
    st.one_of(
        st.integers(-1500, 700).map(lambda seconds: timedelta(seconds=seconds)),
        st.sampled_from([timedelta(minutes=5), timedelta(minutes=-10), timedelta(hours=-2), timedelta(hours=2)]),
    ),
)
"""An event's blob, its enqueued time after the start of the blob's window, and its own time after its enqueued time."""


@settings(max_examples=examples(8))
@given(
    events=st.lists(WHEN, min_size=6, max_size=40),
    copied=st.booleans(),
    policies=st.builds(
        Policies,
        out_of_order_tolerance=st.sampled_from([0, 30, 599]).map(from_seconds),
        late_tolerance=st.sampled_from([0, 60, 600, 4000]).map(from_seconds),
        early_window=st.sampled_from([0, 300, 1000]).map(from_seconds),
        adjust=st.booleans(),
        adjust_early=st.booleans(),
    ),
    chunk=st.sampled_from([1, 5, 1 << 20]),
)
def test_with_times_that_run_backwards_a_slice_alone_is_that_of_the_range_and_of_the_oracle(
    events: list[tuple[int, timedelta, timedelta]], copied: bool, policies: Policies, chunk: int
) -> None:
    """The archive has thirteen windows of ten minutes around the hour from ten; the clocks differ by minutes."""
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK_EVENTS", chunk)
        folder = Path(home)
        stream: list[Event] = []
        for window in range(13):
            opened = TEN - 30 * MINUTE + 10 * window * MINUTE
            mine = []
            for _, after, ahead in (event for event in events if event[0] == window):
                number = len(stream)
                mine.append(sent(number, opened + after, opened + after + ahead))
                arrival, time = from_datetime(opened + after), from_datetime(opened + after + ahead)
                stream.append(Event("0", arrival, number, time))
            put_events(folder, TEN + 50 * HOUR if copied else opened + 10 * MINUTE, mine, opened=opened)
        whole = all_tasks(folder, PLAIN, policies, 1 << 40, -1, 4, ENQUEUED)
        expected = in_sequence(stream, policies)
        alone: dict[tuple[str, Slice], tuple[pa.Table, Counters]] = {}
        for hour in (0, -1, 2, 1):
            alone |= all_tasks(folder, PLAIN, policies, 1, hour, 1, ENQUEUED)
        for key, (rows, counted) in alone.items():
            assert rows.equals(whole[key][0])
            assert plain(counted) == plain(whole[key][1])
            slice_ = key[1]
            times = [o.system_timestamp for o in expected if o.system_timestamp is not None]
            assert rows["_system_timestamp"].to_pylist() == [t for t in times if reaches(PLAIN, t, slice_)]
            metrics = slice_metrics(expected, slice_.start, slice_.end).get("0", {})
            assert counted.events == metrics.get("InputEvents", 0) == counted.verdicts.sum()
            if not policies.adjust_early:
                assert verdicts(counted) == {name: metrics[name] for name in VERDICTS if metrics.get(name)}


def in_sequence(events: Sequence[Event], policies: Policies) -> list[Outcome]:
    """Return the oracle's judgements in the order of sequence numbers; early events are adjusted beforehand."""
    policy = Policy(
        policies.out_of_order_tolerance,
        policies.late_tolerance,
        policies.early_window,
        "Adjust" if policies.adjust else "Drop",
    )
    largest: dict[Any, int] = {}
    outcomes = []
    for event in events:
        assert event.time is not None
        assert policies.early_window is not None
        time = min(event.time, event.arrival + policies.early_window) if policies.adjust_early else event.time
        outcomes.append(judge_event(replace(event, time=time), policy, True, largest))
    return outcomes
