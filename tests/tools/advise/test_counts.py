"""The counts of the advice are those of real runs with each setting, and those of the oracle."""

import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recapture.archive.pinning import PinnedBlob, pin_input
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.errors import RunError
from recapture.ordering import chunks
from recapture.storage import Archive, Blob, open_container
from recapture.time_model.policies import Policies
from recapture.time_model.slices import Slice, slices_between
from recapture.time_model.ticks import from_datetime, from_seconds
from recapture.time_model.verdicts import Verdict
from recapture.tools.advise.advice import Advice
from recapture.tools.advise.counting import Counter, EventsToJudge
from recapture.tools.advise.keys import Key
from recapture.tools.advise.tolerances import Setting, Tolerances
from recapture.tools.sample import SampleEvent, capture_file, write_world
from recapture.tools.sample import world as sample_world
from tests import oracle
from tests.blobs import write_blob
from tests.draws import examples
from tests.ordering.test_slices_alone import events_of
from tests.tools.advise.runs import BY_DEVICE, PLAIN, advised, counted_by_runs, event, input_section, with_setting
from tests.worlds import HOUR, TEN, World, blob_name

KINDS = ("event", "event", "event", "event", "not JSON", "no time", "no device")
EVENT = st.tuples(
    st.sampled_from(KINDS), st.sampled_from("abc"), st.sampled_from([-4000, -700, -400, -90, -3, 0, 5, 250, 400, 9000])
)
"""A kind of event, its device, and how many seconds its time is ahead of the time at which it was enqueued."""
BLOB = st.tuples(
    st.sampled_from(["new", "new", "new", "copied", "damaged"]),
    st.sampled_from("00001"),
    st.sampled_from([0, 3, 5, 5, 5, 30, 70]),
    st.lists(EVENT, max_size=6),
)
"""What a blob is, its partition, the minutes from the arrival of the blob before, and its events."""


def settings_of(
    policy: str, late: int, out_of_order: int, early: int | None, early_policy: str, arrival_time: str
) -> dict[str, Any]:
    """Return the settings of a job as a pipeline file has them."""
    return {
        "eventsOutOfOrderPolicy": policy,
        "eventsLateArrivalMaxDelayInSeconds": late,
        "eventsOutOfOrderMaxDelayInSeconds": out_of_order,
        "early_arrival_seconds": early,
        "early_policy": early_policy,
        "inputs": input_section(arrival_time=arrival_time, on_damaged_blob="quarantine"),
    }


JOB = st.builds(
    settings_of,
    policy=st.sampled_from(["Adjust", "Drop"]),
    late=st.sampled_from([0, 130, 600, 4500, -1]),
    out_of_order=st.sampled_from([0, 4, 130]),
    early=st.sampled_from([300, 300, 300, 60, None]),
    early_policy=st.sampled_from(["Drop", "Drop", "Adjust"]),
    arrival_time=st.sampled_from(["BlobLastModified", "EventEnqueuedUtcTime"]),
)


def write(folder: Path, blobs: list[tuple[str, str, int, list[tuple[str, str, int]]]]) -> None:
    """Write an archive from eight on."""
    arrival, numbers = TEN - 2 * HOUR, {"0": 100, "1": 100}
    sent: dict[str, list[SampleEvent]] = {}
    for index, (what, partition, minutes, events) in enumerate(blobs):
        arrival += timedelta(minutes=minutes)
        enqueued = arrival - timedelta(minutes=3)
        opened = enqueued - timedelta(minutes=1) + timedelta(seconds=index)
        bodies = [_sample(kind, device, ahead, enqueued) for kind, device, ahead in events]
        records = [SampleEvent(n, "", enqueued, body) for n, body in enumerate(bodies, numbers[partition])]
        if what == "copied" and sent.get(partition):
            records = sent[partition]
            opened = records[0].enqueued - timedelta(seconds=1)
        else:
            numbers[partition] += len(records)
            if records:
                sent[partition] = records
        content = capture_file(records)[: -1 if what == "damaged" else None]
        write_blob(folder / blob_name(partition, opened), content, arrival)
    for partition in "01":
        write_blob(folder / blob_name(partition, TEN + 30 * HOUR), capture_file([]), TEN + 31 * HOUR)


def _sample(kind: str, device: str, ahead: int, enqueued: Any) -> bytes:
    if kind == "not JSON":
        return b"oops"
    time = None if kind == "no time" else enqueued + timedelta(seconds=ahead)
    return event(time, None if kind == "no device" else device)


def of_advice(advice: Advice, key: Key, setting: Setting) -> dict[str, tuple[list[int], dict[str, int]]]:
    """Return the counts of the advice in the form of `counted_by_runs`."""
    (one,) = advice.inputs
    compared = one.counts.source.tolerances
    late, out_of_order = compared.late.index(setting.late), compared.out_of_order.index(setting.out_of_order)
    counts = {}
    for partition, partition_counts in one.counts.partitions.items():
        key_counts = partition_counts.by_key[key]
        others = {
            "late": int(key_counts.late[late]),
            "out_of_order": int(key_counts.out_of_order[late, out_of_order]),
            "early": key_counts.early,
            "duplicates": partition_counts.duplicates,
        }
        counts[partition] = key_counts.verdicts[late, out_of_order].tolist(), others
    return counts


BEFORE_THE_SLICE = [
    ("new", "0", 90, [("event", "a", 9000), ("event", "a", 0)]),
    ("new", "0", 40, [("event", "a", -3000), ("event", "a", -2500), ("event", "a", 0)]),
    ("new", "0", 60, [("event", "a", -4000), ("event", "a", 0)]),
]
"""Events of a slice that are behind those of half an hour before it."""
BEFORE_THE_RANGE = [("new", "0", 55, [("event", "a", 0)]), ("new", "0", 11, [("event", "a", -500)])]
"""An event of the range that is out of order because of one before it, eight minutes before the range."""
NO_LIMIT = settings_of("Adjust", -1, 4, 300, "Drop", "BlobLastModified")
NO_EARLY_WINDOW = settings_of("Adjust", 600, 0, None, "Drop", "EventEnqueuedUtcTime")
USUAL = settings_of("Adjust", 600, 0, 300, "Drop", "BlobLastModified")


@settings(max_examples=examples(5))
@example(blobs=BEFORE_THE_SLICE, job=NO_LIMIT, chunk=1, picks=(0.3, 0.99))
@example(blobs=BEFORE_THE_SLICE, job=NO_EARLY_WINDOW, chunk=5, picks=(0.9, 0.5))
@example(blobs=BEFORE_THE_RANGE, job=USUAL, chunk=1, picks=(0.7, 0.8))
@given(
    blobs=st.lists(BLOB, min_size=8, max_size=24),
    job=JOB,
    chunk=st.sampled_from([1, 5, 1 << 20]),
    picks=st.tuples(st.floats(0, 0.999), st.floats(0, 0.999)),
)
def test_whatever_arrived_the_counts_are_those_of_a_run_with_each_setting(
    blobs: list[tuple[str, str, int, list[tuple[str, str, int]]]],
    job: dict[str, Any],
    chunk: int,
    picks: tuple[float, float],
) -> None:
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK_EVENTS", chunk)
        world = World(Path(home))
        write(world.capture, blobs)
        start, end = TEN - HOUR, TEN + 2 * HOUR
        own = world.define(BY_DEVICE, **job)
        expected = counted_by_runs(own, start, end)
        if not expected:
            with pytest.raises(RunError, match="no event arrived"):
                advised(own, start, end)
            return
        advice = advised(own, start, end)
        (one,) = advice.inputs
        assert of_advice(advice, one.counts.keys.own, one.own) == expected
        compared = one.counts.source.tolerances
        pairs = [Setting(late, out_of_order) for late in compared.late for out_of_order in compared.out_of_order]
        for pick, query, key in zip(picks, (BY_DEVICE, PLAIN), (one.counts.keys.own, Key(())), strict=True):
            setting = pairs[int(pick * len(pairs))]
            pipeline = with_setting(world.define(query, **job), setting)
            assert of_advice(advice, key, setting) == counted_by_runs(pipeline, start, end)


@pytest.mark.parametrize("policy", ["Adjust", "Drop"])
def test_the_counts_are_those_of_the_oracle(tmp_path: Path, policy: Any) -> None:
    """The oracle reads the archive from its beginning, and judges one event after the other."""
    world = World(tmp_path)
    write_world(sample_world(TEN - HOUR, 2, partitions=2, devices=20), world.capture)
    pipeline = world.define(PLAIN, eventsOutOfOrderPolicy=policy, eventsOutOfOrderMaxDelayInSeconds=7)
    advice = advised(pipeline, TEN, TEN + HOUR)
    (one,) = advice.inputs
    by_device = next(key for key in one.counts.keys.candidates if key.names == ["deviceId"])
    blobs = pin_input(run_definition(pipeline).inputs[0], _container(pipeline), _all_slices(), TEN + 9 * HOUR).blobs
    bounds = from_datetime(TEN), from_datetime(TEN + HOUR)
    for key, over in ((Key(()), False), (by_device, True)):
        events = list(events_of(world.capture, blobs, over))
        for setting in (one.own, Setting(0, 0), Setting(180, 120), Setting(300, 60), Setting(1800, 0)):
            assert setting.late is not None
            chosen = oracle.Policy(
                from_seconds(setting.out_of_order), from_seconds(setting.late), from_seconds(300), policy
            )
            expected = oracle.slice_metrics(oracle.process(events, chosen), *bounds)
            for partition, row in expected.items():
                verdicts = one.outcome(key, setting, partition)
                assert {name: verdicts[name] for name in oracle.VERDICTS} == {
                    name: row[name] for name in oracle.VERDICTS
                }
                key_counts = one.counts.partitions[partition].by_key[key]
                late = one.counts.source.tolerances.late.index(setting.late)
                assert (key_counts.late[late], key_counts.early) == (row["LateInputEvents"], row["EarlyInputEvents"])
            assert len(expected) == 2


def test_a_value_that_a_key_cannot_hold_is_malformed_only_with_that_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole number beyond 64 bits is an input error if the query names the field. No candidate has one at first."""
    monkeypatch.setattr(chunks, "CHUNK_EVENTS", 8)
    world = World(tmp_path)
    bodies = [event(TEN + timedelta(minutes=n), str(n % 2), line="ab"[n % 2]) for n in range(8)]
    world.put("0", TEN + timedelta(minutes=9), bodies)
    world.put("0", TEN + timedelta(minutes=14), [event(TEN + timedelta(minutes=8), 10**30, line="b")], 8)
    advice = advised(world.define(PLAIN))
    (one,) = advice.inputs
    assert [str(key) for key in one.counts.keys.all] == ["none", "deviceId", "line"]
    for key in one.counts.keys.all:
        over = PLAIN.replace("eventTime", f"eventTime OVER {key}") if key.columns else PLAIN
        assert of_advice(advice, key, one.own) == counted_by_runs(world.define(over), TEN, TEN + HOUR)
        assert one.outcome(key, one.own)["malformed"] == (str(key) == "deviceId")


def test_events_without_sequence_numbers_and_enqueued_times_are_counted_too(tmp_path: Path) -> None:
    """Those of a format that has only bodies: they arrive with their blobs, and the clock of the blobs is coarse."""
    world = World(tmp_path)
    section = {"alias": "telemetry", "container": "capture", "format": "Json", "path": "{partition}/{date}/{time}"}
    for partition in "01":
        for hour, ahead in ((-1, -30), (0, -30), (0, 45), (1, -4000)):
            start = TEN + hour * HOUR + timedelta(minutes=5 if ahead < 0 else 20)
            path = world.capture / f"{partition}/{start:%Y/%m/%d/%H}/{start:%M}.json"
            events = [event(start + timedelta(seconds=ahead * n), "ab"[n % 2]) for n in range(7)]
            write_blob(path, b"\n".join([*events, b"oops"]), start)
    for query, key in ((BY_DEVICE, None), (PLAIN, Key(()))):
        pipeline = world.define(query, inputs=[section])
        advice = advised(pipeline, TEN - HOUR, TEN + 2 * HOUR)
        (one,) = advice.inputs
        for setting in (one.own, Setting(60, 10), Setting(3600, 120)):
            expected = counted_by_runs(with_setting(pipeline, setting), TEN - HOUR, TEN + 2 * HOUR)
            assert of_advice(advice, key or one.counts.keys.own, setting) == expected
            assert [sum(verdicts) for verdicts, _ in expected.values()] == [32, 32]


def test_an_early_event_whose_time_is_lowered_may_still_be_out_of_order() -> None:
    """Enqueued times may run backwards, so that the earliest acceptable time of one event is after another's."""
    policies = Policies(0, from_seconds(600), from_seconds(300), adjust=True, adjust_early=True)
    slices = [Slice(from_datetime(TEN - HOUR), from_datetime(TEN))]
    arrival = from_datetime(TEN) - np.array([from_seconds(1000), from_seconds(2000)])
    early = arrival + from_seconds(400)
    compared = Tolerances((600,), (0, 999, 1000))
    pinned = PinnedBlob("telemetry", "0", Blob("x", "", 1, TEN))
    counter = Counter(policies, compared, slices, 0, [pinned])
    both = np.ones(2, bool)
    counter.add(EventsToJudge(np.zeros(2, np.int64), arrival, early, both, both, None))
    counts = counter.counts
    assert counts.early == 2
    assert counts.verdicts[0, :, Verdict.EARLY_ADJUSTED].tolist() == [1, 1, 2]
    assert counts.verdicts[0, :, Verdict.OUT_OF_ORDER_ADJUSTED].tolist() == [1, 1, 0]
    assert counts.on_time.tolist() == [[0, 0, 0]]


def _container(pipeline: Pipeline) -> Archive:
    return open_container(pipeline.inputs[0].container)


def _all_slices() -> list[Slice]:
    return list(slices_between(from_datetime(TEN - HOUR), from_datetime(TEN + 2 * HOUR), from_seconds(3600)))
