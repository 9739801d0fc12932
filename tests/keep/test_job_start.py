"""A live job that starts where `handover` says continues the published slices without hole or overlap."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.archive.definitions import ArrivalTime, InputDefinition
from recapture.formats.event_hubs import CaptureNames
from recapture.keep.job_start import first_read, not_guaranteed, start_text, start_time
from recapture.time_model import ticks, windows
from recapture.time_model.policies import Policies
from recapture.time_model.slices import Slice, arrivals_of
from tests.keep.live_job import FIVE_MINUTES, Window, rows, rows_of_job
from tests.oracle import Event, Policy, process
from tests.oracle_windows import Content, Hopping, Sliding, Snapshot
from tests.time_model.streams import HOUR, NOON, policies, seconds

SECOND = ticks.TICKS_PER_SECOND
MINUTE = 60 * SECOND
FINITE = seconds(0, 5, 60, 300, 3600)
WINDOWS: st.SearchStrategy[Window] = st.one_of(
    st.builds(
        lambda size, hops, offset: Hopping(size, size // hops, offset),
        seconds(60, 300, 900),
        st.sampled_from((1, 2, 5)),
        seconds(0, 0, 7, -30),
    ),
    st.builds(Sliding, seconds(1, 60, 300)),
    st.just(Snapshot()),
)
TELEMETRY = InputDefinition(
    alias="telemetry",
    names=CaptureNames("contoso", "telemetry"),
    policies=Policies(0, 10 * MINUTE, FIVE_MINUTES, adjust=True),
    look_back=5 * MINUTE,
    interval_seconds=300,
    reading={},
    arrival_time=ArrivalTime.EVENT_ENQUEUED,
)


def engine_window(window: Window) -> windows.Window:
    match window:
        case Hopping():
            return windows.HoppingWindow(window.size, window.hop, window.offset)
        case Sliding():
            return windows.SlidingWindow(window.size)
        case Snapshot():
            return windows.SnapshotWindow()


def rows_of_slice(events: list[Event], policy: Policy, window: Window, slice_: Slice) -> list[Content]:
    """Return the rows of a slice, computed from what is read for it alone."""
    look_back = engine_window(window).look_back
    arrivals = arrivals_of(slice_, Policies(policy.out_of_order, policy.late, policy.early, True), look_back)
    read = [event for event in events if arrivals.first_judged <= event.arrival and arrivals.contains(event.arrival)]
    return rows(process(read, policy), window, look_back, slice_.start, slice_.end)


def events_near_noon(random: Random) -> list[Event]:
    """Return events around noon, where the slices end. Times are often on a border of a window, give or take a tick."""
    events = []
    for number in range(random.choice((3, 30))):
        arrival = NOON + random.randint(-900, 600) * SECOND
        border = NOON + random.randint(-10, 10) * MINUTE
        time = random.choice((arrival + random.randint(-600, 310) * SECOND, border)) + random.choice((0, 0, -1, 1))
        events.append(Event(random.choice("01"), arrival, number, time))
    return events


@given(seed=st.integers(0, 1 << 32), window=WINDOWS, policy=policies(late=FINITE, early=st.just(FIVE_MINUTES)))
def test_slices_and_a_job_that_follows_them_give_the_rows_of_one_uninterrupted_job(
    seed: int, window: Window, policy: Policy
) -> None:
    events = events_near_noon(Random(seed))
    first, end, last = NOON - HOUR // 2, NOON, NOON + HOUR // 2
    slices = (Slice(first, NOON - HOUR // 4), Slice(NOON - HOUR // 4, end))
    published = [row for slice_ in slices for row in rows_of_slice(events, policy, window, slice_)]
    live = rows_of_job(events, policy, window, start_time([engine_window(window)], end), last)
    uninterrupted = rows(process(events, policy), window, engine_window(window).look_back, first, last)
    assert published + live == uninterrupted


def test_a_job_that_starts_at_the_end_itself_repeats_the_window_that_ends_there() -> None:
    policy = Policy(0, 10 * MINUTE, FIVE_MINUTES)
    events = [Event("0", NOON - 10 * SECOND, 1, NOON - 20 * SECOND), Event("0", NOON + SECOND, 2, NOON + SECOND)]
    window = Hopping(MINUTE, MINUTE)
    published = rows_of_slice(events, policy, window, Slice(NOON - HOUR, NOON))
    assert [row.end for row in published] == [NOON]
    assert [row.end for row in rows_of_job(events, policy, window, NOON, NOON + HOUR)] == [NOON, NOON + MINUTE]
    start = start_time([engine_window(window)], NOON)
    assert [row.end for row in rows_of_job(events, policy, window, start, NOON + HOUR)] == [NOON + MINUTE]


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (windows.HoppingWindow(5 * MINUTE, MINUTE), "2026-01-01T12:00:01Z"),
        (windows.HoppingWindow(5 * MINUTE, MINUTE, offset=SECOND // 2), "2026-01-01T12:00:00.0000001Z"),
        (windows.HoppingWindow(SECOND, SECOND // 2), "2026-01-01T12:00:00.0000001Z"),
        (windows.SlidingWindow(5 * MINUTE), "2026-01-01T12:00:00.0000001Z"),
        (windows.SnapshotWindow(), "2026-01-01T12:00:00.0000001Z"),
        (windows.JoinedSide(MINUTE), "2026-01-01T12:00:00.0000001Z"),
    ],
)
def test_a_start_time_has_fractions_of_a_second_only_if_rows_may(
    window: windows.Window | windows.JoinedSide, text: str
) -> None:
    whole = windows.HoppingWindow(MINUTE, MINUTE)
    noon = ticks.from_datetime(ticks.parse_utc("2026-01-01T12:00:00Z"))
    assert start_text(start_time([whole, window], noon)) == text


def test_a_job_reads_what_its_windows_and_its_early_window_need() -> None:
    assert first_read(TELEMETRY, NOON) == NOON - 10 * MINUTE
    other = replace(TELEMETRY, policies=Policies(0, MINUTE, HOUR, adjust=True))
    assert first_read(other, NOON) == NOON - 10 * MINUTE, "a job has no other early window"
    assert first_read(replace(TELEMETRY, policies=None), NOON) == NOON - 5 * MINUTE


def test_nothing_is_withheld_from_the_guarantee_of_an_ordinary_job() -> None:
    assert list(not_guaranteed([windows.HoppingWindow(MINUTE, MINUTE)], [TELEMETRY])) == []


@pytest.mark.parametrize(
    ("window", "definition", "reason"),
    [
        (windows.SessionWindow(MINUTE, HOUR), TELEMETRY, "the query has session windows"),
        (
            windows.HoppingWindow(MINUTE, MINUTE),
            replace(TELEMETRY, arrival_time=ArrivalTime.BLOB_LAST_MODIFIED),
            "events arrive at their blob's LastModified",
        ),
        (
            windows.HoppingWindow(MINUTE, MINUTE),
            replace(TELEMETRY, policies=Policies(0, None, FIVE_MINUTES, adjust=True)),
            "events have no late limit",
        ),
        (
            windows.HoppingWindow(MINUTE, MINUTE),
            replace(TELEMETRY, policies=Policies(0, MINUTE, None, adjust=True)),
            "early events are treated differently",
        ),
        (
            windows.HoppingWindow(MINUTE, MINUTE),
            replace(TELEMETRY, policies=Policies(0, MINUTE, FIVE_MINUTES, adjust=True, adjust_early=True)),
            "early events are treated differently",
        ),
    ],
)
def test_what_is_not_guaranteed_is_named(window: windows.Window, definition: InputDefinition, reason: str) -> None:
    (said,) = not_guaranteed([window], [definition])
    assert said.startswith(reason)
