"""Order and aggregate a planned run with Spark: tasks to events or panes, these to windows, windows to staged files.

Runs in the session of `recapture backfill`, or by itself as `spark_jobs/backfill.py`.
"""

import contextlib
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from recapture import errors
from recapture.definition.pipeline import load
from recapture.errors import DefinitionError, PermanentError, RecaptureError, RunError
from recapture.execute.engine import Engine
from recapture.execute.spark import merging
from recapture.execute.spark.functions import register
from recapture.execute.spark.references import create_view
from recapture.execute.spark.session import MORE_MEMORY, SHUFFLE_PARTITIONS, pin_settings
from recapture.execute.stage import STAGE, InputTasks, stage_rows
from recapture.execute.tasks import STAGED_SCHEMA, TASK, run_tasks, write_slices
from recapture.model import OutputColumn, published_schema
from recapture.ordering import panes
from recapture.ordering.order import schema
from recapture.printable import message
from recapture.process import log
from recapture.query.lower.spark_text import quoted_name
from recapture.run_files.computed import Computed, StagedSlice
from recapture.run_files.cost import computation
from recapture.run_files.planned import PlannedRun, load_run
from recapture.storage import open_container
from recapture.time_model import ticks


def compute(spark: SparkSession, run: PlannedRun) -> Computed:
    """Stage the rows of a planned run with Spark; see `stage_rows`."""

    def staged(inputs: list[InputTasks]) -> list[StagedSlice]:
        try:
            return _stage(spark, run, inputs)
        except (PySparkException, Py4JJavaError) as error:
            raise _error(error) from error

    cores = spark.sparkContext.defaultParallelism
    with computation(run, STAGE, Engine.SPARK, cores, None):
        return stage_rows(run, cores, staged)


def _stage(spark: SparkSession, run: PlannedRun, inputs: list[InputTasks]) -> list[StagedSlice]:
    pin_settings(spark)
    most_tasks = max(len(input_tasks.tasks) for input_tasks in inputs)
    spark.conf.set("spark.sql.leafNodeDefaultParallelism", most_tasks)  # a Spark partition for each task
    register(spark, run.pipeline.query)
    for compiled in run.pipeline.query.references:
        section, planned = run.pipeline.reference(compiled.alias), run.manifest.reference(compiled.alias)
        create_view(spark, planned, compiled, section.reader(compiled.body_columns), open_container(section.container))
    digests = {run_slice.slice.start: run_slice.digest for run_slice in run.manifest.slices}
    outputs = [(output, run.pipeline.compiled(output)) for output in run.pipeline.outputs]
    with contextlib.ExitStack() as stack:
        frames: dict[str, DataFrame] = {}
        for input_tasks in inputs:
            frame = _rows_of_tasks(spark, input_tasks)
            stack.callback(frame.unpersist)
            frames[input_tasks.context.input.view] = frame
            if not input_tasks.context.input.aggregations:
                frame.createOrReplaceTempView(quoted_name(input_tasks.context.input.view))
        division = merging.divide(run.manifest.size, len(digests), int(spark.conf.get(SHUFFLE_PARTITIONS) or 1))
        for groups in run.pipeline.query.groups:
            merging.create_groups_view(groups, frames, division)
        results = [
            merging.rows(compiled, frames, division) if compiled.selects else spark.sql(compiled.sql)
            for _, compiled in outputs
        ]
        plans = "".join(str(result._jdf.queryExecution().optimizedPlan().toString()) for result in results)
        for view, frame in frames.items():
            if plans.count(f"MapInArrow {view}(") > 1:
                frame.persist(StorageLevel.MEMORY_AND_DISK)
        return [
            StagedSlice(output.alias, ticks.to_text(row.slice_start), row.path, row.size, row.rows, row.unanchored)
            for (output, compiled), result in zip(outputs, results, strict=True)
            for row in slice_writer(result, output.table, compiled.columns, digests).collect()
        ]


def _rows_of_tasks(spark: SparkSession, input_tasks: InputTasks) -> DataFrame:
    """Return the events of an input, or its panes, with one Spark partition per task."""
    context = input_tasks.context
    texts = [TASK.dump_json(task, by_alias=True).decode() for task in input_tasks.tasks]
    chunks = [pa.array([text], pa.string()) for text in texts]
    frame = spark.createDataFrame(pa.table({"task": pa.chunked_array(chunks, pa.string())}))
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "65536")
    aggregations = context.input.aggregations
    columns = from_arrow_schema(panes.schema(aggregations) if aggregations else schema(context.input))

    run = partial(run_tasks, context)
    run.__name__ = context.input.view  # type: ignore[attr-defined]  # its name in Spark's plan
    return frame.mapInArrow(run, columns)


def slice_writer(
    result: DataFrame, table: str, columns: Sequence[OutputColumn], digests: Mapping[int, str]
) -> DataFrame:
    """Return a frame with a row per file. Collecting it writes each slice as one sorted file to the url `table`."""
    order = ["slice_start", *(quoted_name(column.name) for column in columns)]
    slices = result.repartition(min(len(digests), 64), "slice_start").sortWithinPartitions(*order)
    write = partial(write_slices, table, published_schema(columns), digests)
    return slices.mapInArrow(write, from_arrow_schema(STAGED_SCHEMA))


def _error(error: PySparkException | Py4JJavaError) -> RunError:
    """Return Recapture's own error, else the last exception in Spark's text, else its first line.

    It is a PermanentError if the tasks raised one, or if the query did.
    """
    text = str(error)
    if ours := re.findall(r"^recapture\.errors\.(\w+): (.*)$", text, re.MULTILINE):
        name, message = ours[-1]
        return PermanentError(message) if issubclass(getattr(errors, name), PermanentError) else RunError(message)
    if ours := re.findall(r"\[USER_RAISED_EXCEPTION\] ((?:ud[af]\.|ST_|CREATE).*) SQLSTATE: \w+$", text, re.MULTILINE):
        return PermanentError(ours[-1])
    return RunError(_reason(text))


def _reason(text: str) -> str:
    if "java.lang.OutOfMemoryError" in text:
        return f"Java, which runs Spark, has no memory left: {MORE_MEMORY}"
    raised = re.findall(r"^[\w.]+(?:Error|Exception): .*$", text, re.MULTILINE)
    return f"the Spark job failed: {raised[-1] if raised else text.strip().splitlines()[0]}"


def main(arguments: list[str]) -> int:
    """Compute a planned run for Airflow, and return the exit code: 2 if a retry would fail in the same way."""
    file, run_id = arguments
    log.enable()
    spark = SparkSession.builder.appName(f"recapture {run_id}").getOrCreate()
    try:
        compute(spark, load_run(load(Path(file)), run_id))
    except RecaptureError as error:
        print(f"recapture: {message(str(error))}", file=sys.stderr)
        return DefinitionError.exit_code if isinstance(error, PermanentError) else error.exit_code
    finally:
        spark.stop()
    return 0
