"""Spark's Python workers compute the rows of a run from opaque rows, which come sorted by part, source and place."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from recapture import __version__
from recapture.errors import PermanentError, RunError
from recapture.execute.processes import compute as local
from recapture.execute.processes.workers import Workers
from recapture.execute.slice_rows import slice_query
from recapture.execute.spark import worker
from recapture.execute.spark.compute import TASK_BYTES, divide
from recapture.execute.spark.parts import MOST_PARTITIONS, PART_BYTES, Division
from recapture.execute.spark.worker import ROWS, TASK, TASKS, Work, compute_and_stage, compute_rows, run_tasks
from recapture.execute.stage import InputTasks, stage_rows
from recapture.execute.worker_errors import one_error
from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from recapture.run.plan import plan_run
from recapture.run_files.computed import StagedSlice
from recapture.run_files.planned import PlannedRun
from recapture.time_model.slices import Slice
from tests.worlds import TEN, World, at, steady

MEANS = (
    "SELECT System.Timestamp() AS windowEnd, deviceId, AVG(temperature) AS mean INTO aggregates "
    "FROM telemetry TIMESTAMP BY eventTime GROUP BY deviceId, HoppingWindow(minute, 20, 10)"
)
EVENTS = (
    "SELECT deviceId, temperature, LAG(temperature) OVER (PARTITION BY deviceId LIMIT DURATION(minute, 5)) AS previous "
    "INTO aggregates FROM telemetry TIMESTAMP BY eventTime"
)
MATCHES = (
    "CREATE TABLE telemetry (deviceId nvarchar(max), eventTime datetime, temperature float);\n"
    "SELECT deviceId, t INTO aggregates FROM telemetry TIMESTAMP BY eventTime MATCH_RECOGNIZE ("
    "LIMIT DURATION(minute, 5) PARTITION BY deviceId MEASURES First(Low.deviceId) AS deviceId, "
    "Last(High.temperature) AS t AFTER MATCH SKIP TO NEXT ROW PATTERN (Low+ High) "
    "DEFINE Low AS Low.temperature < 100, High AS High.temperature > Max(Low.temperature)) AS m"
)
SESSIONS = (
    "SELECT deviceId, COUNT(*) AS n INTO aggregates FROM telemetry TIMESTAMP BY eventTime "
    "GROUP BY deviceId, SessionWindow(minute, 4, 9) OVER (PARTITION BY deviceId)"
)
GROUPS_OF_GROUPS = (
    "WITH s AS (SELECT deviceId, AVG(temperature) AS m FROM telemetry TIMESTAMP BY eventTime GROUP BY deviceId, "
    "Tumbling(minute, 10)) SELECT MAX(m) AS m INTO aggregates FROM s GROUP BY Tumbling(minute, 30)"
)
TWO = f"{MEANS}\n{EVENTS.replace('INTO aggregates', 'INTO events')}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return steady(tmp_path_factory.mktemp("steady"))


def planned(world: World, query: str, table: str) -> PlannedRun:
    names = ["aggregates", *(["events"] if "INTO events" in query else [])]
    outputs = [{"alias": name, "table": f"{table}/{name}"} for name in names]
    return plan_run(world.define(query, outputs=outputs), TEN, at(120))


def in_order(batches: Iterator[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the rows as Spark gives them to one worker, in batches of three."""
    rows = pa.Table.from_batches(batches, ROWS).combine_chunks()
    order = [(name, "ascending") for name in ("part", "source", "place")]
    ordered: list[pa.RecordBatch] = rows.sort_by(order).to_batches(max_chunksize=3)
    return ordered


def staged_in_parts(run: PlannedRun, buckets: int, most: int, inputs: list[InputTasks]) -> Iterator[StagedSlice]:
    """Do what Spark does with these parts, in this process."""
    outputs = [(run.pipeline.compiled(output), output.table) for output in run.pipeline.outputs]
    slices = tuple(planned.slice for planned in run.manifest.slices)
    division = replace(divide(run.pipeline.query, slices, PART_BYTES), buckets=buckets)
    digests = tuple(planned.digest for planned in run.manifest.slices)
    work = Work(slice_query(run.pipeline.query, outputs), division, digests, {}, most)
    tasks = [
        {"number": len(input_tasks.tasks) * place + number, "input": place, "task": TASK.dump_json(task, by_alias=True)}
        for place, input_tasks in enumerate(inputs)
        for number, task in enumerate(input_tasks.tasks)
    ]
    contexts = [input_tasks.context for input_tasks in inputs]
    rows = in_order(run_tasks(contexts, division, [pa.RecordBatch.from_pylist(tasks, TASKS)]))
    if buckets == 1:
        staged = compute_and_stage(work, rows)
    else:
        staged = worker.stage_rows(work, in_order(compute_rows(work, rows)))
    for batch in staged:
        yield from (StagedSlice(**row) for row in batch.to_pylist())


@pytest.mark.parametrize(
    "query", [MEANS, EVENTS, TWO, SESSIONS, MATCHES], ids=["panes", "events", "both", "sessions", "matches"]
)
def test_every_division_gives_the_files_of_the_worker_processes(
    processes: Workers, world: World, tmp_path: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "PAYLOAD_BYTES", 200)
    run = planned(world, query, "files")
    expected = sorted(local.compute(processes, run, tmp_path).staged, key=str)
    assert all(file.rows for file in expected)
    for buckets, most in itertools.product((1, 3), (10_000, 40)):
        divided = stage_rows(run, TASK_BYTES, partial(staged_in_parts, run, buckets, most))
        assert sorted(divided.staged, key=str) == expected


def compiled(text: str) -> CompiledQuery:
    return compile_query(text, inputs={"telemetry": CaptureInput.metadata}, output_aliases=["aggregates"])


@pytest.mark.parametrize(
    ("query", "size", "slices", "buckets", "partitions"),
    [
        (MEANS, 0, 1, 1, 1),
        (MEANS, PART_BYTES + 1, 1, 2, 2),
        (MEANS, 20 * PART_BYTES, 3, 7, 21),
        (EVENTS, 20 * PART_BYTES, 24, 1, 24),
        (EVENTS, 800 * PART_BYTES, 2, 400, MOST_PARTITIONS),
        (GROUPS_OF_GROUPS, 20 * PART_BYTES, 1, 1, 1),
    ],
)
def test_a_slice_is_divided_by_its_size_if_its_rows_share_keys(
    query: str, size: int, slices: int, buckets: int, partitions: int
) -> None:
    division = divide(compiled(query), tuple(Slice(start, start + 1) for start in range(slices)), size)
    assert (division.buckets, division.partitions) == (buckets, partitions)


def test_equal_keys_are_in_one_part_and_rows_keep_their_order() -> None:
    one, other = ("input a", None), ("input b", None)
    division = Division((Slice(0, 9), Slice(9, 18)), (one, other), 4, {one: ("k",)})
    rows = pa.RecordBatch.from_pydict({"k": [f"device {n % 50}" for n in range(200)], "n": range(200)})
    divided = dict(division.divided(one, 9, rows))
    assert sorted(divided) == [4, 5, 6, 7]
    assert {division.slice_of(part) for part in divided} == {Slice(9, 18)}
    keys = [set(part["k"].to_pylist()) for part in divided.values()]
    assert sum(map(len, keys)) == len(set.union(*keys)) == 50
    assert all(part["n"].to_pylist() == sorted(part["n"].to_pylist()) for part in divided.values())
    assert list(division.divided(other, 0, rows)) == [(0, rows)], "without keys, all rows are in one part"


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (PermanentError("a"), PermanentError("a")),
        (RunError("a"), RunError("a")),
        (MemoryError(), RunError("a worker has no memory left: give it more")),
        (ValueError("a\nb"), RunError("a worker failed: ValueError: a")),
    ],
)
def test_an_error_of_a_worker_says_whether_a_retry_would_help(raised: Exception, expected: RunError) -> None:
    with pytest.raises(RunError) as error, one_error("give it more"):
        raise raised
    assert (type(error.value), str(error.value)) == (type(expected), str(expected))


def test_a_worker_of_another_version_refuses_before_it_reads_what_it_is_to_compute() -> None:
    with pytest.raises(PermanentError) as error:
        next(worker.run_call("0.0.1", b"of another version", []))
    assert str(error.value) == (
        f"an executor has Recapture {__version__}, and the driver 0.0.1: install the same version there, or make the "
        "bundle again"
    )
