"""The profile of a slice: its histograms count every event, and its sample shows every verdict and the extremes."""

from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.ordering import chunks, profile
from recapture.ordering.counters import Counters
from recapture.ordering.profile import DISORDER_BOUNDS, LATENESS_BOUNDS
from recapture.process.compilation import frozen
from recapture.time_model.policies import Policies
from recapture.time_model.ticks import from_datetime, from_seconds
from recapture.tools.sample import world, write_world
from tests.ordering.tasks import BY_ARRIVAL, BY_DEVICE, HOUR, MINUTE, PLAIN, POLICIES, TEN, all_tasks, at, only, put

TOLERANT = Policies(from_seconds(60), from_seconds(600), from_seconds(300), adjust=True)


def profiled(counters: Counters) -> dict[str, Any]:
    [row] = counters.profile.table("telemetry", "0").to_pylist()
    return dict(row)


def by_bin(bounds: tuple[int, ...], counts: list[int]) -> dict[int | None, int]:
    """Return the bins that are not empty, by upper bound in seconds; None for the last bin."""
    return {bound: count for bound, count in zip([*bounds, None], counts, strict=True) if count}


def test_a_bin_of_lateness_contains_its_upper_bound(tmp_path: Path) -> None:
    arrival = TEN + 30 * MINUTE
    seconds = [-400, -300, 0, 0.1, 1, 600, 600.5, 10**6]
    put(tmp_path, arrival, enumerate(at(arrival - timedelta(seconds=late)) for late in seconds))
    _, counters = only(tmp_path)
    lateness = by_bin(LATENESS_BOUNDS, profiled(counters)["lateness"])
    assert lateness == {-300: 2, 0: 1, 1: 2, 600: 1, 900: 1, None: 1}


def test_disorder_is_how_far_an_event_is_behind_the_largest_time_so_far(tmp_path: Path) -> None:
    arrival = TEN + 30 * MINUTE
    behind = [0, 30, 60, 61, -10, 10]
    put(tmp_path, arrival, enumerate(at(arrival - timedelta(seconds=100 + seconds)) for seconds in behind))
    _, counters = only(tmp_path, policies=TOLERANT)
    assert by_bin(DISORDER_BOUNDS, profiled(counters)["disorder"]) == {0: 2, 30: 2, 60: 1, 120: 1}


def test_an_event_without_a_time_is_in_the_sample_and_in_no_histogram(tmp_path: Path) -> None:
    put(tmp_path, TEN + MINUTE, enumerate([b'{"eventTime": "soon"}', b"no JSON", at(TEN)]))
    _, counters = only(tmp_path)
    row = profiled(counters)
    assert [
        (event["verdict"], event["time"]) for event in sorted(row["sample"], key=lambda e: e["sequence_number"])
    ] == [("invalid_timestamp", None), ("malformed", None), ("on_time", from_datetime(TEN))]
    assert (sum(row["lateness"]), sum(row["disorder"])) == (1, 1)


def test_a_small_slice_is_in_its_sample_whole_with_times_and_the_largest_time_so_far(tmp_path: Path) -> None:
    arrival = TEN + 30 * MINUTE
    name = put(tmp_path, arrival, enumerate([at(arrival), at(arrival - 5 * MINUTE), at(arrival - 11 * MINUTE)], 7))
    _, counters = only(tmp_path, policies=TOLERANT)
    ten = from_datetime(TEN)
    events = sorted(profiled(counters)["sample"], key=lambda event: event["sequence_number"])
    assert [
        (e["sequence_number"], e["verdict"], *((e[name] - ten) // from_seconds(60) for name in ("time", "arrival")))
        for e in events
    ] == [(7, "on_time", 30, 30), (8, "out_of_order_adjusted", 25, 30), (9, "out_of_order_adjusted", 19, 30)]
    assert {(e["system_timestamp"] - ten) // from_seconds(60) for e in events} == {30, 29}
    assert {(e["largest_time"] - ten) // from_seconds(60) for e in events} == {30}
    assert {(e["blob"], e["place"], e["key"]) for e in events} == {(name, None, None)}


@pytest.mark.parametrize(("devices", "events"), [(1, 1), (1, 5), (10, 17), (10, 1000)])
def test_a_profile_does_not_depend_on_the_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, devices: int, events: int
) -> None:
    write_world(world(TEN - HOUR, 3, partitions=1, devices=devices), tmp_path)

    def profiles() -> list[dict[str, Any]]:
        tasks = all_tasks(tmp_path, BY_DEVICE, POLICIES, 1 << 40, 0, 2)
        return [profiled(counters) for _, counters in tasks.values()]

    at_once = profiles()
    monkeypatch.setattr(chunks, "CHUNK_EVENTS", events)
    assert profiles() == at_once


def test_of_equal_events_of_one_message_the_first_are_in_the_sample(tmp_path: Path) -> None:
    times = [TEN + timedelta(seconds=second) for second in range(100)]
    put(tmp_path, TEN + 2 * MINUTE, [(1, b"[" + b",".join(map(at, times)) + b"]")])
    _, counters = only(tmp_path)
    sampled = [event["time"] for event in profiled(counters)["sample"]]
    most_ahead = times[-profile.EXTREMES :]
    assert sampled == [from_datetime(time) for time in times[: profile.ON_TIME_EVENTS] + most_ahead]


def test_the_sample_is_bounded_and_has_every_verdict_and_the_extremes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = {key: profiled(counters) for key, (_, counters) in whole(folder, monkeypatch, 10**6).items()}
    for key, (_, counters) in whole(folder, monkeypatch, 3).items():
        every, sample = everything[key]["sample"], profiled(counters)["sample"]
        assert sum(everything[key]["lateness"]) == sum(event["time"] is not None for event in every) > len(sample)
        assert {event["verdict"] for event in sample} == {event["verdict"] for event in every}
        timed = [event["arrival"] - event["time"] for event in every if event["time"] is not None]
        sampled = [event["arrival"] - event["time"] for event in sample if event["time"] is not None]
        assert (min(sampled), max(sampled)) == (min(timed), max(timed))
        leads = sorted((lead(event) for event in every if event["system_timestamp"] is not None), reverse=True)
        shown = sorted((lead(event) for event in sample if event["body"] is not None), reverse=True)
        assert shown == leads[: profile.EXTREMES]
        assert max(event["system_timestamp"] or 0 for event in sample) == max(
            event["system_timestamp"] or 0 for event in every
        )


def whole(folder: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> dict[Any, tuple[Any, Counters]]:
    """Return the tasks of an hour whose samples have up to `size` events of each verdict."""
    monkeypatch.setattr(profile, "ON_TIME_EVENTS", size)
    monkeypatch.setattr(profile, "OTHER_EVENTS", size)
    return dict(all_tasks(folder, PLAIN, POLICIES, 1 << 40, 0, 1))


def lead(event: dict[str, Any]) -> int:
    return int(event["system_timestamp"] - event["arrival"])


def test_without_timestamp_by_a_profile_is_empty(tmp_path: Path) -> None:
    put(tmp_path, TEN + MINUTE, [(1, at(TEN))])
    _, counters = only(tmp_path, BY_ARRIVAL, None)
    row = profiled(counters)
    assert counters.events == 1
    assert (sum(row["lateness"]), sum(row["disorder"]), row["sample"]) == (0, 0, [])


def test_the_over_key_of_an_event_is_text(folder: Path) -> None:
    [(_, counters), *_] = all_tasks(folder, BY_DEVICE, POLICIES, 1 << 40, 0, 1).values()
    keys = {event["key"] for event in profiled(counters)["sample"] if event["verdict"] == "on_time"}
    assert all(key.startswith("device-") for key in keys)
    assert len(keys) > 3


@given(st.lists(st.tuples(st.integers(-3, 12), st.booleans()), max_size=30))
def test_a_bin_has_the_durations_above_the_bound_before_it(events: list[tuple[int, bool]]) -> None:
    bounds, counts = [0, 2, 9], np.zeros(4, np.int64)
    durations, applies = np.array([event[0] for event in events], np.int64), np.array([e[1] for e in events], bool)
    profile.count_bins(frozen(durations), frozen(applies), frozen(np.array(bounds)), counts)
    counted = [sum(low < duration <= high for duration, applies in events if applies) for low, high in BINS]
    assert counts.tolist() == counted


BINS = [(-9, 0), (0, 2), (2, 9), (9, 99)]


def test_bounds_of_bins_ascend() -> None:
    assert all(low < high for bounds in (LATENESS_BOUNDS, DISORDER_BOUNDS) for low, high in pairwise(bounds))
    assert HOUR.total_seconds() in LATENESS_BOUNDS
