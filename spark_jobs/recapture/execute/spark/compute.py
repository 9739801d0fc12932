"""Compute a planned run with Spark, which distributes what its Python workers compute: tasks, then slices."""

import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from recapture import __version__
from recapture.execute.engine import Engine
from recapture.execute.memory import bytes_per_event
from recapture.execute.references import write_reference
from recapture.execute.shared_keys import pane_columns, shared_keys
from recapture.execute.slice_rows import slice_query
from recapture.execute.spark import worker
from recapture.execute.spark.compat import Py4JJavaError, partitioned_by_id
from recapture.execute.spark.connect import cores_of_session
from recapture.execute.spark.failures import run_error
from recapture.execute.spark.parts import MOST_PARTITIONS, PART_BYTES, Division, Source
from recapture.execute.spark.session import reset_settings
from recapture.execute.spark.worker import Work
from recapture.execute.stage import STAGE, InputTasks, joined_references, stage_rows
from recapture.query.model import CompiledQuery
from recapture.query.plan.panes import PaneAggregation
from recapture.run_files.computed import Computed, StagedSlice
from recapture.run_files.cost import computation
from recapture.run_files.planned import PlannedRun
from recapture.time_model.slices import Slice

TASK_BYTES = 256 * 1024 * 1024
"""Size that tasks are planned for, in bytes: some seconds of work. It does not depend on the executors that have
registered when a run begins, which may be none, or on the length of the range.
"""
EVALUATED_BYTES = 512 * 1024 * 1024
"""Memory that the events of a part may take in a Python worker; bytes."""
BATCH_BYTES = 16 * 1024 * 1024
"""Size of the rows that Spark gives to a Python worker at once; bytes. Java holds them outside its heap."""


def compute(spark: SparkSession, run: PlannedRun) -> Computed:
    """Stage the rows of a planned run with Spark; see `stage_rows`."""

    def staged(inputs: list[InputTasks]) -> list[StagedSlice]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                return _stage(spark, run, inputs, Path(folder))
            except (PySparkException, Py4JJavaError) as error:
                raise run_error(str(error)) from error

    with computation(run, STAGE, Engine.SPARK, lambda: cores_of_session(spark), None):
        return stage_rows(run, TASK_BYTES, staged)


def _stage(spark: SparkSession, run: PlannedRun, inputs: list[InputTasks], folder: Path) -> list[StagedSlice]:
    reset_settings(spark)
    query = run.pipeline.query
    outputs = [(run.pipeline.compiled(output), output.table) for output in run.pipeline.outputs]
    slices = tuple(planned.slice for planned in run.manifest.slices)
    division = divide(query, slices, run.manifest.size)
    digests = tuple(planned.digest for planned in run.manifest.slices)
    most = EVALUATED_BYTES // bytes_per_event(query)
    work = Work(slice_query(query, outputs), division, digests, _distributed_references(spark, run, folder), most)
    contexts = [input_tasks.context for input_tasks in inputs]
    computed = _tasks(spark, inputs).mapInArrow(
        _sent(worker.run_tasks, contexts, division), from_arrow_schema(worker.ROWS)
    )
    rows = _by_part(computed, division.partitions)
    if division.buckets == 1:
        staged = rows.mapInArrow(_sent(worker.compute_and_stage, work), from_arrow_schema(worker.STAGED))
    else:
        rows = rows.mapInArrow(_sent(worker.compute_rows, work), from_arrow_schema(worker.ROWS))
        rows = _by_part(rows, min(len(slices) * len(outputs), MOST_PARTITIONS))
        staged = rows.mapInArrow(_sent(worker.stage_rows, work), from_arrow_schema(worker.STAGED))
    return [StagedSlice(**row.asDict()) for row in staged.collect()]


def _sent(function: Callable[..., Iterator[pa.RecordBatch]], *arguments: Any) -> Callable[..., Any]:
    """Return the call of a function of `worker` as it is sent to the workers, which first compare versions."""
    return partial(worker.run_call, __version__, pickle.dumps(partial(function, *arguments)))


def divide(query: CompiledQuery, slices: tuple[Slice, ...], size: int) -> Division:
    """Return the parts of the slices of a query that reads blobs with `size` bytes."""
    sources = tuple(
        (read.view, number)
        for read in query.inputs
        for number in (range(len(read.aggregations)) if read.aggregations else [None])
    )
    keys = _keys(query)
    buckets = max(1, -(-size // (PART_BYTES * len(slices)))) if keys is not None else 1
    return Division(slices, sources, buckets, keys or {})


def _keys(query: CompiledQuery) -> dict[Source, tuple[str, ...]] | None:
    """Return the columns that divide the rows of each source; None if a slice cannot be divided."""
    aggregations: dict[Source, PaneAggregation] = {
        (read.view, number): aggregation
        for read in query.inputs
        for number, aggregation in enumerate(read.aggregations)
    }
    if all(output.selects for output in query.outputs):  # no group meets another
        keys = {source: tuple(key.name for key in panes.keys) for source, panes in aggregations.items() if panes.keys}
        return keys or None
    shared = shared_keys(query)
    if shared is None:
        return None
    events = {(read.view, None): shared[read.view] for read in query.inputs if not read.aggregations}
    return events | {source: pane_columns(panes, shared[source[0]]) for source, panes in aggregations.items()}


def _distributed_references(spark: SparkSession, run: PlannedRun, folder: Path) -> dict[str, str]:
    """Give the reference data of a run to all executors, and return the names of its files by the name of the view."""
    names: dict[str, str] = {}
    for number, reference in enumerate(joined_references(run)):
        names[reference.compiled.view] = name = f"{run.id}-reference-{number}.arrow"
        write_reference(reference, folder / name)
        spark.addArtifacts(str(folder / name), file=True)
    return names


def _tasks(spark: SparkSession, inputs: Sequence[InputTasks]) -> DataFrame:
    """Return the tasks of all inputs, with one Spark partition per task."""
    tasks = [(place, task) for place, input_tasks in enumerate(inputs) for task in input_tasks.tasks]
    spark.conf.set("spark.sql.leafNodeDefaultParallelism", len(tasks))
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(BATCH_BYTES))
    columns = [
        pa.array(range(len(tasks)), pa.int32()),
        pa.array([place for place, _ in tasks], pa.int32()),
        pa.array([worker.TASK.dump_json(task, by_alias=True).decode() for _, task in tasks]),
    ]
    return spark.createDataFrame(pa.table(columns, schema=worker.TASKS))


def _by_part(rows: DataFrame, partitions: int) -> DataFrame:
    """Return rows with those of a part one after another, in order."""
    return partitioned_by_id(rows, partitions, "part").sortWithinPartitions("part", "source", "place")
