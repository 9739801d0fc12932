"""Order and aggregate a planned run: tasks to ordered events, events to windows, windows to staged Parquet files.

Runs in the session of `recapture backfill`, or by itself as `spark_jobs/backfill.py`.
"""

import contextlib
import logging
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from recapture import log
from recapture.definition.pipeline import Pipeline, load
from recapture.errors import RecaptureError, RunError
from recapture.model import OutputColumn, published_schema
from recapture.ordering import panes
from recapture.ordering.order import schema
from recapture.ordering.task import Task, split
from recapture.query.generate.values import quoted_name
from recapture.query.model import CompiledInput, panes_view
from recapture.run import profiles
from recapture.run.files import StagedSlice
from recapture.run.functions import register
from recapture.run.metrics import metric_rows
from recapture.run.planned import PlannedRun, load_run
from recapture.run.references import create_view
from recapture.run.session import MORE_MEMORY, pin_settings
from recapture.run.tasks import STAGED_SCHEMA, TASK, TaskContext, run_tasks, write_slices
from recapture.storage import open_container
from recapture.table.files import write_slice_file
from recapture.time_model import ticks
from recapture.wording import counted

SMALLEST_TASK = 32 * 1024 * 1024
"""Smallest size that tasks are planned for, in bytes; a task may still be smaller.

Every task has a start-up cost, and reads blobs that its neighbours read too.
"""
TASKS_PER_CORE = 2

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class InputTasks:
    """The tasks of an input."""

    context: TaskContext
    tasks: list[Task]

    @property
    def operator(self) -> str:
        """Operator that reads the events, as Spark's plan shows it."""
        return f"MapInArrow {self.context.input.view}("


@dataclass(frozen=True)
class Destination:
    """An output: its query and its table."""

    alias: str
    table: str
    """Address of the table."""
    columns: tuple[OutputColumn, ...]
    sql: str

    @property
    def schema(self) -> pa.Schema:
        """Schema of the staged files."""
        return published_schema(self.columns)


def compute(spark: SparkSession, run: PlannedRun) -> None:
    """Stage the rows of a planned run and write what it counted to the run files. Publish nothing.

    Raise RunError if a blob is damaged or has changed since it was planned, or if the Spark job fails.
    """
    pipeline, manifest = run.pipeline, run.manifest
    task_bytes = max(SMALLEST_TASK, manifest.size // (TASKS_PER_CORE * spark.sparkContext.defaultParallelism))
    inputs = [_input_tasks(run, compiled, task_bytes) for compiled in pipeline.query.inputs]
    tasks = sum(len(of_input.tasks) for of_input in inputs)
    digests = {run_slice.slice.start: run_slice.digest for run_slice in manifest.slices}
    with log.logged(_LOG, f"run {run.id}: order and aggregate in {counted(tasks, 'task')}") as results:
        try:
            staged = _stage(spark, run, inputs, list(_destinations(pipeline)), digests)
        except (PySparkException, Py4JJavaError) as error:
            raise RunError(_reason(error)) from error
        run.files.write("staged.json", [asdict(file) for file in staged])
        rows = list(metric_rows(run.files, manifest))
        run.files.write("metrics.json", rows)
        profiles.collect(run.files, [task for of_input in inputs for task in of_input.tasks], rows)
        results.append(f"staged {counted(sum(file.rows for file in staged), 'row')}")


def _input_tasks(run: PlannedRun, compiled: CompiledInput, task_bytes: int) -> InputTasks:
    planned, section = run.manifest.input(compiled.alias), run.pipeline.section(compiled.alias)
    context = TaskContext(
        input=compiled,
        container_url=section.container,
        run_files_url=run.files.container.url,
        run_id=run.id,
        policies=run.pipeline.policies(compiled),
        reader=run.pipeline.reader(compiled),
        quarantine_damaged=section.on_damaged_blob == "quarantine",
        logs=log.enabled(),
    )
    return InputTasks(context, list(split(planned.slices, planned.blobs, task_bytes)))


def _create_reference_views(spark: SparkSession, run: PlannedRun) -> None:
    for compiled in run.pipeline.query.references:
        section, planned = run.pipeline.reference(compiled.alias), run.manifest.reference(compiled.alias)
        create_view(spark, planned, compiled, section.reader(compiled.body_columns), open_container(section.container))


def _destinations(pipeline: Pipeline) -> Iterator[Destination]:
    for output in pipeline.outputs:
        compiled = pipeline.compiled(output)
        yield Destination(output.alias, output.table, compiled.columns, compiled.sql)


def _stage(
    spark: SparkSession,
    run: PlannedRun,
    inputs: list[InputTasks],
    destinations: list[Destination],
    digests: dict[int, str],
) -> list[StagedSlice]:
    """Write the rows of every output, with an empty file for each slice without rows. Return the files."""
    written: dict[str, list[Row]] = {}
    most_tasks = max(len(of_input.tasks) for of_input in inputs)
    if most_tasks:
        pin_settings(spark)
        spark.conf.set("spark.sql.leafNodeDefaultParallelism", most_tasks)  # a Spark partition for each task
        register(spark, run.pipeline.query)
        _create_reference_views(spark, run)
        with contextlib.ExitStack() as stack:
            views = {of_input.operator: stack.enter_context(_view(spark, of_input)) for of_input in inputs}
            results = [spark.sql(destination.sql) for destination in destinations]
            plans = "".join(map(_optimized_plan, results))
            for operator, events in views.items():
                if plans.count(operator) > 1:
                    events.persist(StorageLevel.MEMORY_AND_DISK)
            written = {
                destination.alias: slice_writer(result, destination, digests).collect()
                for destination, result in zip(destinations, results, strict=True)
            }
    return [
        staged
        for destination in destinations
        for staged in _with_empty_slices(destination, written.get(destination.alias, []), digests)
    ]


@contextlib.contextmanager
def _view(spark: SparkSession, of_input: InputTasks) -> Iterator[DataFrame]:
    """Create the views of an input, and yield the frame that they select from: its events or its panes."""
    given = _given(spark, of_input.context, of_input.tasks)
    create_views(given, of_input.context.input)
    try:
        yield given
    finally:
        given.unpersist()


def create_views(given: DataFrame, compiled: CompiledInput) -> None:
    """Create the view of an input's events, or those of its panes, from what its tasks give."""
    if not compiled.aggregations:
        given.createOrReplaceTempView(f"`{compiled.view}`")
    for number in range(len(compiled.aggregations)):
        struct = quoted_name(panes.column_name(number))
        rows = given.where(f"{struct} IS NOT NULL").select(f"{struct}.*")
        rows.createOrReplaceTempView(quoted_name(panes_view(compiled.view, number)))


def _optimized_plan(result: DataFrame) -> str:
    return str(result._jdf.queryExecution().optimizedPlan().toString())


def _with_empty_slices(destination: Destination, rows: list[Row], digests: dict[int, str]) -> Iterator[StagedSlice]:
    """Yield the written files, and write and yield an empty file for each of the other slices."""
    staged = {row.slice_start: row for row in rows}
    table = open_container(destination.table)
    nothing = pa.Table.from_batches([], destination.schema)
    for start in sorted(digests):
        text = ticks.to_text(start)
        if start in staged:
            row = staged[start]
            yield StagedSlice(destination.alias, text, row.path, row.size, row.rows, row.unanchored)
        else:
            yield StagedSlice(destination.alias, text, *write_slice_file(table, start, digests[start], nothing), 0, 0)


def _given(spark: SparkSession, context: TaskContext, tasks: list[Task]) -> DataFrame:
    """Return the events of an input, or its panes, with one Spark partition per task."""
    texts = [TASK.dump_json(task, by_alias=True).decode() for task in tasks]
    chunks = [pa.array([text], pa.string()) for text in texts]
    frame = spark.createDataFrame(pa.table({"task": pa.chunked_array(chunks, pa.string())}))
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "65536")
    aggregations = context.input.aggregations
    columns = from_arrow_schema(panes.schema(aggregations) if aggregations else schema(context.input))

    run = partial(run_tasks, context)
    run.__name__ = context.input.view  # type: ignore[attr-defined]  # its name in Spark's plan
    return frame.mapInArrow(run, columns)


def slice_writer(result: DataFrame, destination: Destination, digests: dict[int, str]) -> DataFrame:
    """Return a frame with one row per file. Collecting it writes each slice as one sorted Parquet file."""
    order = ["slice_start", *(quoted_name(column.name) for column in destination.columns)]
    slices = result.repartition(min(len(digests), 64), "slice_start").sortWithinPartitions(*order)
    write = partial(write_slices, destination.table, destination.schema, digests)
    return slices.mapInArrow(write, from_arrow_schema(STAGED_SCHEMA))


def _reason(error: PySparkException | Py4JJavaError) -> str:
    """Return the message of Recapture's own error, else the last exception in Spark's text, else its first line."""
    text = str(error)
    ours = re.findall(r"^(?:recapture\.[\w.]+Error): (.*)$", text, re.MULTILINE)
    ours += re.findall(r"\[USER_RAISED_EXCEPTION\] ((?:ud[af]\.|ST_|CREATE).*) SQLSTATE: \w+$", text, re.MULTILINE)
    if ours:
        return str(ours[-1])
    if "java.lang.OutOfMemoryError" in text:
        return f"Java, which runs Spark, has no memory left: {MORE_MEMORY}"
    raised = re.findall(r"^[\w.]+(?:Error|Exception): .*$", text, re.MULTILINE)
    return f"the Spark job failed: {raised[-1] if raised else text.strip().splitlines()[0]}"


def main(arguments: list[str]) -> int:
    """Compute a planned run; Airflow submits this."""
    file, run_id = arguments
    log.enable()
    spark = SparkSession.builder.appName(f"recapture {run_id}").getOrCreate()
    try:
        compute(spark, load_run(load(Path(file)), run_id))
    except RecaptureError as error:
        print(f"recapture: {error}", file=sys.stderr)
        return error.exit_code
    finally:
        spark.stop()
    return 0
