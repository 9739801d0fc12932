"""A slice of any size: its parts give the same files, however little memory there is."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.execute.division import SMALLEST_BUCKET, buckets_of_slice, pieces
from recapture.execute.memory import available_memory, bytes_per_event, memory_warnings, share_of_worker
from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import Workers, workers
from recapture.execute.shared_keys import shared_keys
from recapture.run.plan import plan_run
from recapture.time_model.slices import Slice
from recapture.time_model.ticks import TICKS_PER_SECOND
from tests.worlds import TEN, World, at, steady

DECLARED = "CREATE TABLE telemetry (deviceId nvarchar(max), eventTime datetime, temperature float);\n"
READ = "INTO aggregates FROM telemetry TIMESTAMP BY eventTime"
FIVE_MINUTES = "GROUP BY deviceId, Tumbling(minute, 5)"
MATCHED = (
    "MATCH_RECOGNIZE (LIMIT DURATION(minute, 8) {} MEASURES First(Low.deviceId) AS deviceId, "
    "Max(High.temperature) AS t, Classifier() AS names AFTER MATCH SKIP TO NEXT ROW PATTERN (Low+ High+) "
    "DEFINE Low AS Low.temperature < 100, High AS High.temperature > Max(Low.temperature)) AS m"
)
KINDS = {
    "tumbling": f"SELECT deviceId, AVG(temperature) AS m {READ} {FIVE_MINUTES}",
    "of all devices": f"SELECT System.Timestamp() AS e, AVG(temperature) AS m {READ} GROUP BY Hopping(minute, 10, 5)",
    "sliding": f"SELECT deviceId, AVG(temperature) AS m {READ} GROUP BY deviceId, Sliding(minute, 7)",
    "session": f"SELECT deviceId, COUNT(*) AS n {READ} "
    "GROUP BY deviceId, SessionWindow(minute, 4, 9) OVER (PARTITION BY deviceId)",
    "session of all devices": f"SELECT COUNT(*) AS n {READ} GROUP BY SessionWindow(minute, 2, 9)",
    "snapshot": f"SELECT deviceId, COUNT(*) AS n {READ} GROUP BY deviceId, System.Timestamp()",
    "JOIN": "SELECT a.deviceId, a.temperature, b.temperature AS t INTO aggregates FROM telemetry a TIMESTAMP BY "
    "eventTime JOIN telemetry b TIMESTAMP BY eventTime "
    "ON a.deviceId = b.deviceId AND DATEDIFF(minute, a, b) BETWEEN 1 AND 6",
    "LEFT JOIN without a key": "SELECT a.deviceId, b.temperature AS t INTO aggregates FROM telemetry a TIMESTAMP BY "
    "eventTime LEFT JOIN telemetry b TIMESTAMP BY eventTime ON DATEDIFF(minute, a, b) BETWEEN 1 AND 6",
    "LAG": f"SELECT deviceId, LAG(temperature) OVER (PARTITION BY deviceId LIMIT DURATION(minute, 8)) AS p {READ}",
    "LAG of all devices": f"SELECT deviceId, LAG(deviceId) OVER (LIMIT DURATION(minute, 8)) AS p {READ}",
    "ISFIRST": f"SELECT deviceId, ISFIRST(minute, 7) OVER (PARTITION BY deviceId) AS f {READ}",
    "SUM OVER": f"SELECT deviceId, SUM(temperature) OVER (PARTITION BY deviceId LIMIT DURATION(minute, 8)) AS s {READ}",
    "pattern": f"SELECT * {READ} {MATCHED.format('PARTITION BY deviceId')}",
    "pattern of all devices": f"SELECT * {READ} {MATCHED.format('')}",
    "TopOne": f"SELECT TopOne() OVER (ORDER BY temperature DESC) AS t {READ} {FIVE_MINUTES}",
    "Collect": f"SELECT Collect() AS c {READ} {FIVE_MINUTES}",
    "STDEV": f"SELECT deviceId, STDEV(temperature) AS s {READ} GROUP BY deviceId, Sliding(minute, 7)",
    "SELECT *": f"SELECT * {READ}",
    "two steps": "WITH s AS (SELECT deviceId, AVG(temperature) AS m FROM telemetry TIMESTAMP BY eventTime "
    "GROUP BY deviceId, Tumbling(minute, 1)) "
    "SELECT deviceId, MAX(m) AS m, COUNT(*) AS n INTO aggregates FROM s GROUP BY deviceId, Hopping(minute, 10, 5)",
}
"""Queries by the name of their kind."""


@pytest.fixture(scope="module")
def processes() -> Iterator[Workers]:
    with workers(2) as started:
        yield started


@pytest.mark.parametrize("kind", KINDS)
def test_a_tiny_memory_gives_the_same_files(processes: Workers, kind: str, tmp_path: Path) -> None:
    world = steady(tmp_path, hours=2, partitions=2)
    run = plan_run(world.define(DECLARED + KINDS[kind]), TEN, at(120))
    files = []
    for share in (1 << 30, 40 * bytes_per_event(run.pipeline.query)):
        scratch = tmp_path / f"scratch-{share}"
        scratch.mkdir()
        files.append(compute(processes, run, scratch, share=share).staged)
        divided = sorted(path.name for path in scratch.glob("run-*"))
        assert not divided, "runs are removed when they are merged"
    whole, parts = files
    assert sum(file.rows for file in whole) > 0
    assert parts == whole


@given(st.lists(st.integers(-50, 100), max_size=60), st.integers(0, 60), st.integers(1, 40), st.integers(1, 100))
def test_pieces_follow_each_other_and_hold_few_events(seconds: list[int], look_back: int, most: int, end: int) -> None:
    times = np.sort(np.array([time for time in seconds if time <= end], np.int64))
    found = [*pieces(Slice(0, end), times, look_back, most)]
    assert found[0].start == 0
    assert found[-1].end == end
    assert all(one.end == other.start for one, other in itertools.pairwise(found))
    assert all(piece.start < piece.end for piece in found)
    for piece in found:
        latest = times[times <= piece.end].max(initial=piece.start)  # any number of events may have this time
        own = times[(times > piece.start) & (times < latest)]
        held = times[(times > piece.start - look_back) & (times < latest)]
        assert len(held) <= most or len(own) < max(1, most // 4)


def test_a_slice_has_as_many_buckets_as_its_memory_demands() -> None:
    assert buckets_of_slice(1000, most=1000, workers=4, slices=1) == 1
    assert buckets_of_slice(1001, most=1000, workers=4, slices=1) == 2


def test_idle_workers_get_a_bucket_if_there_are_enough_events() -> None:
    events = 3 * SMALLEST_BUCKET
    assert buckets_of_slice(events, most=events, workers=2, slices=1) == 2
    assert buckets_of_slice(events, most=events, workers=8, slices=1) == 3
    assert buckets_of_slice(events, most=events, workers=8, slices=8) == 1


def test_workers_share_the_memory_of_the_machine() -> None:
    assert 0 < share_of_worker(4) < share_of_worker(1) < available_memory()


@pytest.mark.parametrize(
    ("kind", "least"),
    [("SELECT *", 330), ("LAG", 190), ("TopOne", 229), ("sliding", 773 - 3)],
)
def test_the_memory_of_an_event_is_that_of_the_kind(kind: str, least: int, tmp_path: Path) -> None:
    query = World(tmp_path).define(DECLARED + KINDS[kind]).query
    assert bytes_per_event(query) >= least


def test_kinds_without_a_shared_key_are_among_those_that_are_tested(tmp_path: Path) -> None:
    without = {
        kind for kind, text in KINDS.items() if shared_keys(World(tmp_path).define(DECLARED + text).query) is None
    }
    assert without == {
        "of all devices",
        "session of all devices",
        "LEFT JOIN without a key",
        "LAG of all devices",
        "pattern of all devices",
    }


def test_a_slice_that_cannot_be_divided_is_named_before_it_is_computed(tmp_path: Path) -> None:
    slice_ = Slice(0, 3600 * TICKS_PER_SECOND)
    events = {slice_: 10**10, Slice(slice_.end, 2 * slice_.end): 10}
    query = World(tmp_path).define(DECLARED + KINDS["LAG of all devices"]).query
    [warning] = memory_warnings(query, events, workers=2)
    assert warning.startswith("1 slice may not fit into memory: slice 0001-01-01T00:00:00Z with about 10,000,000,000")
    assert not [*memory_warnings(query, {slice_: 1000}, workers=2)]


def test_a_slice_with_shared_keys_can_always_be_divided(tmp_path: Path) -> None:
    query = World(tmp_path).define(DECLARED + KINDS["LAG"]).query
    assert not [*memory_warnings(query, {Slice(0, 3600 * TICKS_PER_SECOND): 10**10}, workers=2)]
