"""A slice gives the same alone and in a range, and the same as the oracle (docs/time-model.md, section 3)."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recapture.archive.definitions import ArrivalTime
from recapture.archive.pinning import PinnedBlob
from recapture.formats.avro import decode
from recapture.formats.event_hubs import EVENT_DATA
from recapture.ordering import chunks
from recapture.ordering.counters import Counters
from recapture.query.model import CompiledInput
from recapture.time_model import timestamps
from recapture.time_model.policies import Policies
from recapture.time_model.slices import Slice
from recapture.time_model.ticks import from_datetime, from_seconds
from recapture.tools.sample import SampleEvent
from tests.draws import examples
from tests.oracle import VERDICTS, Event, Policy, process, slice_metrics
from tests.ordering.tasks import (
    BY_DEVICE,
    HOUR,
    MINUTE,
    PLAIN,
    POLICIES,
    TEN,
    all_tasks,
    at,
    plain,
    planned,
    put_events,
    quarantined,
    reaches,
    spoil,
    verdicts,
)

ARCHIVE = st.lists(
    st.tuples(
        st.sampled_from(["goes on", "goes on", "goes on", "skips", "copies", "copies", "overlaps", "anew", "damaged"]),
        st.integers(1, 5),
        st.sampled_from([0, 5, 10, 20, 50, 70]),
        st.sampled_from([-400, -60, 0, 0, 200, 290]),
    ),
    min_size=8,
    max_size=30,
)
"""What happens to a blob, its number of events, the minutes to its arrival, and the seconds its events are ahead."""


def write_archive(folder: Path, archive: Iterable[tuple[str, int, int, int]]) -> list[SampleEvent]:
    """Write an archive from eight on; return the events that the hub sent.

    Every name shows when the events of its blob were enqueued, also the name of a copied blob.
    """
    sent: list[SampleEvent] = []
    number, arrival, spare = 100, TEN - 2 * HOUR, timedelta()
    for what, count, minutes, ahead in archive:
        arrival += minutes * MINUTE
        opened = arrival - 4 * MINUTE
        spare += timedelta(seconds=1)
        events: list[SampleEvent] = []
        if what == "copies" and sent:
            candidates = sent[-count - 3 : -1] or sent[-1:]
            opened = candidates[0].enqueued
            events = [event for event in candidates if event.enqueued <= opened + 3 * MINUTE]
        elif what == "overlaps" and sent and sent[-1].enqueued >= opened - 2 * MINUTE:
            events, opened = sent[-1:], sent[-1].enqueued
        elif what == "skips":
            number += count
        elif what == "anew":
            number, arrival = 0, arrival + 6 * MINUTE
            opened = arrival - 4 * MINUTE
        if what != "copies":
            enqueued = arrival - 3 * MINUTE
            body = at(enqueued + timedelta(seconds=ahead))
            fresh = [SampleEvent(number + n, "", enqueued, body) for n in range(count)]
            sent += fresh
            events = [*events, *fresh]
            number += count
        name = put_events(folder, arrival, events, opened=opened - MINUTE + spare)
        if what == "damaged":
            spoil(folder / name, (folder / name).read_bytes()[:-1])
    return sent


PART_COPIED = [
    ("anew", 2, 70, 0),
    ("copies", 1, 50, 0),
    *[("goes on", 1, minutes, -400) for minutes in (50, 0, 0, 0, 0, 0)],
]
"""The first of two events arrives again within the hour; the next blob arrives within an hour of the duplicate only."""


ANEW_ALIKE = [
    *[("goes on", 1, minutes, -400) for minutes in (0, 20, 0, 0, 0)],
    ("goes on", 2, 5, -400),
    ("goes on", 1, 20, -400),
    *[("anew", 2, minutes, -400) for minutes in (10, 0)],
]
"""Two events with one number and equally far ahead, of a hub that was recreated between them."""


@settings(max_examples=examples(15))
@example(archive=ANEW_ALIKE, chunk=5, arrival_time=ArrivalTime.BLOB_LAST_MODIFIED)
@example(archive=PART_COPIED, chunk=1, arrival_time=ArrivalTime.BLOB_LAST_MODIFIED)
@given(archive=ARCHIVE, chunk=st.sampled_from([1, 5, 1 << 20]), arrival_time=st.sampled_from(list(ArrivalTime)))
def test_whatever_was_copied_or_lost_a_slice_gives_the_same_alone_and_in_a_range(
    archive: list[tuple[str, int, int, int]], chunk: int, arrival_time: ArrivalTime
) -> None:
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK_EVENTS", chunk)
        folder = Path(home)
        write_archive(folder, archive)
        whole = all_tasks(folder, PLAIN, POLICIES, 1 << 40, -2, 8, arrival_time, quarantine_damaged=True)
        alone: dict[tuple[str, Slice], tuple[pa.Table, Counters]] = {}
        for hour in range(-2, 6):
            alone |= all_tasks(folder, PLAIN, POLICIES, 1, hour, 1, arrival_time, quarantine_damaged=True)
        for key, (rows, counted) in alone.items():
            assert rows.equals(whole[key][0])
            assert plain(counted) == plain(whole[key][1])
            assert counted.events == counted.duplicates + counted.verdicts.sum()


@pytest.mark.parametrize("query", [PLAIN, BY_DEVICE], ids=["plain", "over"])
def test_a_slice_gives_the_same_alone_and_in_a_range(folder: Path, query: CompiledInput) -> None:
    together = all_tasks(folder, query, POLICIES, 1 << 40, -1, 3)
    assert len(together) == 6
    alone: dict[tuple[str, Slice], tuple[pa.Table, Counters]] = {}
    for hour in (1, -1, 0):
        alone |= all_tasks(folder, query, POLICIES, 1, hour, 1)
    assert alone.keys() == together.keys()
    for key, (rows, counted) in alone.items():
        assert rows.num_rows > 50, "there is something to compare"
        assert rows.equals(together[key][0])
        assert plain(counted) == plain(together[key][1])


CASES = {
    "adjust": POLICIES,
    "drop": Policies(from_seconds(3), from_seconds(60), from_seconds(300), adjust=False),
    "no late limit": Policies(from_seconds(30), None, from_seconds(300), adjust=True),
}


@pytest.mark.parametrize("over", [False, True], ids=["plain", "over"])
@pytest.mark.parametrize("policies", CASES.values(), ids=CASES)
def test_the_verdicts_and_times_are_the_oracle_s(folder: Path, policies: Policies, over: bool) -> None:
    query = BY_DEVICE if over else PLAIN
    slices = all_tasks(folder, query, policies, 1 << 40, -1, 3)
    read = planned(folder, query, policies, -1, 3).blobs
    if policies.late_tolerance is None:
        slices = all_tasks(folder, query, policies, 1 << 40, 0, 1)
        read = planned(folder, query, policies, 0, 1).blobs
    action: Any = "Adjust" if policies.adjust else "Drop"
    outcomes = process(
        list(events_of(folder, read, over)),
        Policy(policies.out_of_order_tolerance, policies.late_tolerance, policies.early_window, action),
    )
    in_order = sorted(outcomes, key=lambda outcome: (outcome.event.arrival, outcome.event.sequence))
    for (partition, slice_), (rows, counted) in slices.items():
        expected = slice_metrics(outcomes, slice_.start, slice_.end)[partition]
        assert expected["InputEvents"] == counted.events == sum(counted.verdicts)
        assert {name: expected[name] for name in VERDICTS if expected[name]} == verdicts(counted)
        assert (expected["LateInputEvents"], expected["DroppedOrAdjustedEvents"]) == (
            counted.late,
            counted.out_of_order,
        )
        assert len(quarantined(counted)) == expected["malformed"] + expected["invalid_timestamp"]
        first = slice_.start - query.look_back
        times = [
            outcome.system_timestamp
            for outcome in in_order
            if outcome.event.partition == partition
            and outcome.system_timestamp is not None
            and reaches(query, outcome.system_timestamp, slice_)
        ]
        assert first < min(times)
        assert rows["_system_timestamp"].to_pylist() == times


def events_of(folder: Path, blobs: Sequence[PinnedBlob], over: bool) -> Iterable[Event]:
    """Yield the events for the oracle, with bodies read by json.loads."""
    for pinned in blobs:
        rows = decode(pinned.blob.name, (folder / pinned.blob.name).read_bytes(), EVENT_DATA).to_pylist()
        bodies = [_body(row["Body"]) for row in rows]
        times = pa.array([body.get("eventTime") if body else None for body in bodies], pa.string())
        for row, body, ticks, valid in zip(rows, bodies, *timestamps.parse(times), strict=True):
            yield Event(
                pinned.partition,
                pinned.arrival,
                row["SequenceNumber"],
                int(ticks) if valid else None,
                ((body or {}).get("deviceId"),) if over else None,
                body is None,
            )


def _body(content: bytes) -> dict[str, Any] | None:
    """Return the fields of a body; None if it is malformed."""
    try:
        fields: dict[str, Any] = json.loads(content.decode())
    except ValueError:
        return None
    return fields


def test_every_arrival_is_counted_once_in_one_slice(folder: Path) -> None:
    slices = all_tasks(folder, PLAIN, POLICIES, 1 << 20, -1, 3)
    counted: Counter[str] = Counter()
    for (partition, _), (_, counters) in slices.items():
        assert counters.events == counters.verdicts.sum()
        counted[partition] += counters.events
    start, end = from_datetime(TEN - HOUR), from_datetime(TEN + 2 * HOUR)
    arrived: Counter[str] = Counter()
    for pinned in planned(folder, PLAIN, POLICIES, -1, 3).blobs:
        if start < pinned.arrival <= end:
            arrived[pinned.partition] += decode("", (folder / pinned.blob.name).read_bytes(), EVENT_DATA).num_rows
    assert counted == arrived
    assert counted.total() > 5000
