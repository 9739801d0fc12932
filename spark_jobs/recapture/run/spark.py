"""The Spark job of a run: manifest to tasks, tasks to ordered events, events to windows, windows to staged Parquet.

Runs in the session of `recapture backfill`, or by itself as `spark_jobs/backfill.py`.
"""

import contextlib
import itertools
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import TypeAdapter
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from recapture.archive.manifest import Manifest, PlannedSlice
from recapture.definition.pipeline import Pipeline, load
from recapture.errors import RecaptureError, RunError
from recapture.formats.events import Reader
from recapture.model import OutputColumn, published_schema
from recapture.ordering import order as ordering
from recapture.ordering.entities import told
from recapture.ordering.order import Ahead, Counters, Task
from recapture.ordering.sequence import Missing
from recapture.quality.metrics import COUNTS, GAPS_TOLD, WATERMARK_DELAY
from recapture.query.generate.values import quoted_name
from recapture.query.model import CompiledQuery
from recapture.run.files import Run, StagedSlice
from recapture.storage import open_container, side_by_side
from recapture.table.files import parquet, stage
from recapture.time_model import ticks
from recapture.time_model.policies import Policies, Verdict
from recapture.time_model.slices import Slice

SMALLEST_TASK = 32 * 1024 * 1024
"""Bytes that a task reads at least where there are so many: each task costs its start and its neighbour's edge."""
TASKS_PER_CORE = 2
LOCAL_SHUFFLE_PARTITIONS = 8
"""Partial aggregates are few; Spark's default of 200, and planning anew after each stage, are for clusters."""
SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.variable.substitute": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PruneFilters",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": str(2**31 - 1),
}
"""What the rows depend on. All other settings of Spark SQL are Spark's own, whatever the cluster's defaults say.

Without ANSI mode an overflow wraps around and a division by zero is NULL. Variables would put the environment into the
query. PruneFilters would read no event at all for WHERE 1 = 0: then nothing would be counted. Above a number of groups
a task would sort them, and merge what it read first into the rest: arrival order lost."""
CLUSTERS_OWN = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.", "spark.sql.execution.pyspark.")
"""Settings that a cluster may choose, or what they begin with: they divide the work and leave the rows as they are."""

UNANCHORED = "_unanchored"
"""The column, beside those of the output, that is true for a session whose beginning lies before what a slice reads."""
EVENTS_READ = "MapInArrow"
"""What Spark's plan calls the reading of `events`."""

_TASK = TypeAdapter(Task)
_STAGED = pa.schema(
    [
        ("slice_start", pa.int64()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("rows", pa.int64()),
        ("unanchored", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Work:
    """What every task of a run needs to know; travels to the executors, so it holds no credentials."""

    container: str
    papers: str
    """The folder of the run's papers."""
    run: str
    query: CompiledQuery
    policies: Policies | None
    reader: Reader
    set_aside: bool
    """What becomes of damaged blobs; otherwise they stop the run."""


@dataclass(frozen=True)
class Destination:
    """Where the rows of one output go."""

    alias: str
    table: str
    columns: tuple[OutputColumn, ...]
    sql: str

    @property
    def schema(self) -> pa.Schema:
        """Of the staged files."""
        return published_schema(self.columns)


def session(master: str, name: str, scratch: Path) -> SparkSession:
    """Return a quiet Spark session; `master` as Spark spells it. What it writes for itself lies in `scratch`."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.master(master)
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .config("spark.local.dir", str(scratch))
        .config("spark.driver.extraJavaOptions", f"-XX:+UseParallelGC -Dlog4j2.level=OFF -Djava.io.tmpdir='{scratch}'")
    )
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.sql.shuffle.partitions", LOCAL_SHUFFLE_PARTITIONS)
        builder = builder.config("spark.sql.adaptive.enabled", "false")
    return builder.getOrCreate()


def run(spark: SparkSession, pipeline: Pipeline, run_id: str) -> None:
    """Stage the rows of a planned run and write down what it counted. Publishes nothing.

    Raises RunError for a blob that is damaged or was changed since it was planned, and for what Spark could not do.
    """
    first = pipeline.outputs[0].table
    papers = Run(open_container(first), run_id)
    manifest = papers.manifest()
    if manifest.definition_digest != _definition_digest(pipeline):
        raise RunError(f"{pipeline.definition} changed since run {run_id} was planned: plan again")
    reader = pipeline.input.reader(pipeline.query)
    set_aside = pipeline.input.on_damaged_blob == "quarantine"
    work = Work(pipeline.input.container, first, run_id, pipeline.query, pipeline.policies, reader, set_aside)
    task_bytes = max(SMALLEST_TASK, manifest.size // (TASKS_PER_CORE * spark.sparkContext.defaultParallelism))
    tasks = list(ordering.split(manifest.slices, manifest.blobs, task_bytes))
    digests = {planned.slice.start: planned.digest for planned in manifest.slices}
    try:
        staged = _stage(spark, work, list(_destinations(pipeline)), tasks, digests)
    except PySparkException as error:
        raise RunError(_reason(error)) from error
    papers.write("staged.json", [asdict(each) for each in staged])
    papers.write("metrics.json", list(_metrics(papers, manifest)))


def pin_settings(spark: SparkSession) -> None:
    """Give a session the settings of Spark SQL that the rows depend on."""
    for name in spark.conf.getAll:
        if name.startswith("spark.sql.") and not name.startswith(CLUSTERS_OWN) and spark.conf.isModifiable(name):
            spark.conf.unset(name)
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)


def _definition_digest(pipeline: Pipeline) -> str:
    from recapture.run.stages import definition

    return definition(pipeline).digest


def _destinations(pipeline: Pipeline) -> Iterator[Destination]:
    for output in pipeline.outputs:
        compiled = pipeline.compiled(output)
        yield Destination(output.alias, output.table, compiled.columns, compiled.sql)


def _stage(
    spark: SparkSession, work: Work, destinations: list[Destination], tasks: list[Task], digests: dict[int, str]
) -> list[StagedSlice]:
    """Write the rows of every output; a slice without rows has a file too."""
    written: dict[str, list[Any]] = {}
    if tasks:
        pin_settings(spark)
        with _view(_events(spark, work, tasks)) as events:
            results = [spark.sql(destination.sql) for destination in destinations]
            if sum(map(_reads, results)) > 1:
                events.persist(StorageLevel.MEMORY_AND_DISK)
            written = {
                destination.alias: _written(result, destination, digests).collect()
                for destination, result in zip(destinations, results, strict=True)
            }
    return [
        staged
        for destination in destinations
        for staged in _every_slice(destination, written.get(destination.alias, []), digests)
    ]


@contextlib.contextmanager
def _view(events: DataFrame) -> Iterator[DataFrame]:
    events.createOrReplaceTempView("events")
    try:
        yield events
    finally:
        events.unpersist()


def _reads(result: DataFrame) -> int:
    """How often a query reads the view `events`."""
    plan = result._jdf.queryExecution().optimizedPlan().toString()
    return str(plan).count(EVENTS_READ)


def _every_slice(destination: Destination, rows: list[Any], digests: dict[int, str]) -> Iterator[StagedSlice]:
    staged = {row.slice_start: row for row in rows}
    table = open_container(destination.table)
    nothing = pa.Table.from_batches([], destination.schema)
    for start in sorted(digests):
        text = ticks.to_text(start)
        if start in staged:
            row = staged[start]
            yield StagedSlice(destination.alias, text, row.path, row.size, row.rows, row.unanchored)
        else:
            yield StagedSlice(destination.alias, text, *stage(table, start, digests[start], nothing), 0, 0)


def _events(spark: SparkSession, work: Work, tasks: list[Task]) -> DataFrame:
    """The view `events`: one Spark partition for each task."""
    rows = [(_TASK.dump_json(task).decode(),) for task in tasks]
    frame = spark.createDataFrame(spark.sparkContext.parallelize(rows, len(rows)), "task string")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "65536")
    schema = from_arrow_schema(ordering.schema(work.query))

    def order(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch["task"].to_pylist():
                yield from _run_task(work, _TASK.validate_json(text))

    return frame.mapInArrow(order, schema)


def _run_task(work: Work, task: Task) -> Iterator[pa.RecordBatch]:
    papers = Run(open_container(work.papers), work.run)
    container = open_container(work.container)
    batches, counters = ordering.order(task, container, work.query, work.policies, work.set_aside, work.reader)
    yield from batches
    for wanted, counted in counters.items():
        _keep(papers, task.partition, wanted, counted, work.policies)


def _keep(papers: Run, partition: str, wanted: Slice, counted: Counters, policies: Policies | None) -> None:
    """Write what was counted and set aside under a name of (run, partition, slice): a retry overwrites itself."""
    if counted.quarantine:
        papers.table.write(
            papers.quarantine_name(partition, wanted),
            parquet(pa.Table.from_batches(counted.quarantine, ordering.QUARANTINE)),
        )
    metrics = _row(partition, wanted, counted, policies)
    papers.table.write(papers.counters_name(partition, wanted), json.dumps(metrics).encode())


def _row(partition: str, wanted: Slice, counted: Counters, policies: Policies | None) -> dict[str, Any]:
    verdicts = {verdict.name.lower(): int(counted.verdicts[verdict]) for verdict in Verdict}
    counts = {
        "InputEvents": counted.events,
        "InputEventBytes": counted.event_bytes,
        "InputEventsSourcesTotal": counted.blobs,
        "DeserializationError": verdicts["malformed"],
        "InvalidInputTimeStamp": verdicts["invalid_timestamp"],
        "EarlyInputEvents": counted.early,
        "LateInputEvents": counted.late,
        "DroppedOrAdjustedEvents": counted.out_of_order,
        "DuplicateEvents": counted.duplicates,
        "SequenceGaps": sum(len(each.ranges.first) for each in counted.missing),
        "DamagedBlobs": counted.damaged,
        **verdicts,
    }
    return {
        "slice_start": ticks.to_text(wanted.start),
        "partition": partition,
        **{name: counts[name] for name in COUNTS},
        WATERMARK_DELAY: _watermark_delay(counted, policies),
        "whole": counted.whole,
        "furthest_ahead": None if counted.furthest_ahead is None else _ahead(counted.furthest_ahead),
        "gaps": _gaps(counted.missing),
        "without_block": counted.without_block,
    }


def _gaps(missing: Sequence[Missing]) -> dict[str, Any]:
    """How many sequence numbers are missing, and the first of their ranges, [first, last]."""
    ranges = [list(pair) for each in missing for pair in told(each)]
    return {"missing": sum(last - first + 1 for first, last in ranges), "ranges": ranges[:GAPS_TOLD]}


def _watermark_delay(counted: Counters, policies: Policies | None) -> float | None:
    """Seconds from the watermark that a slice's events left behind to its newest arrival (time model, section 5)."""
    if counted.newest_arrival is None or counted.newest_time is None:
        return None
    watermark = counted.newest_time - (0 if policies is None else policies.out_of_order)
    return (counted.newest_arrival - watermark) / ticks.TICKS_PER_SECOND


def _ahead(event: Ahead) -> dict[str, Any]:
    seconds = event.ticks / ticks.TICKS_PER_SECOND
    return {"seconds": seconds, "sequence_number" if event.numbered else "place": event.number, "blob": event.blob}


def _metrics(papers: Run, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """The metrics of the run: a row for each slice and partition of the hub, also where nothing arrived."""
    read = {pinned.partition for pinned in manifest.blobs}

    def counted(place: tuple[PlannedSlice, str]) -> dict[str, Any]:
        planned, partition = place
        if partition not in read:
            return _row(partition, planned.slice, Counters(), None)
        content = papers.table.read_current(papers.counters_name(partition, planned.slice))
        if content is None:
            raise RunError(
                f"the task of partition {partition}, slice {ticks.to_text(planned.slice.start)} "
                "left no counters: run the stage again"
            )
        metrics: dict[str, Any] = json.loads(content)
        return metrics

    places = [(planned, partition) for planned in manifest.slices for partition in manifest.partitions]
    for (planned, partition), metrics in zip(places, side_by_side(counted, places), strict=True):
        yield metrics | {"complete": partition not in planned.incomplete}


def _written(result: DataFrame, destination: Destination, digests: dict[int, str]) -> DataFrame:
    """Write each slice's rows as one Parquet file, sorted, and tell where."""
    order = ["slice_start", *(quoted_name(column.name) for column in destination.columns)]
    slices = result.repartition(min(len(digests), 64), "slice_start").sortWithinPartitions(*order)
    names = [column.name for column in destination.columns]

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = open_container(destination.table)
        for start, group in _by_slice(batches):
            rows = pa.Table.from_batches(group)
            unanchored = pc.sum(rows[UNANCHORED]).as_py() if UNANCHORED in rows.column_names else 0
            path, size = stage(table, start, digests[start], rows.select(names).cast(destination.schema))
            entry = {"slice_start": start, "path": path, "size": size, "rows": len(rows), "unanchored": unanchored or 0}
            yield pa.RecordBatch.from_pylist([entry], schema=_STAGED)

    return slices.mapInArrow(write, from_arrow_schema(_STAGED))


def _by_slice(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, list[pa.RecordBatch]]]:
    """Rows that are sorted by slice_start, slice by slice."""

    def pieces() -> Iterator[tuple[int, pa.RecordBatch]]:
        for batch in batches:
            encoded = batch["slice_start"].dictionary_encode()
            begins = 0
            for start, group in itertools.groupby(encoded.indices.to_pylist()):
                count = sum(1 for _ in group)
                instant = encoded.dictionary[start].cast(pa.int64()).as_py()
                yield instant * ticks.TICKS_PER_MICROSECOND + ticks.UNIX_EPOCH, batch.slice(begins, count)
                begins += count

    for start, group in itertools.groupby(pieces(), key=lambda piece: piece[0]):
        yield start, [piece for _, piece in group]


def _reason(error: PySparkException) -> str:
    """What a task that failed in Python had to say, else the first line of Spark's own words."""
    text = str(error)
    ours = re.findall(r"^(?:recapture\.[\w.]+Error): (.*)$", text, re.MULTILINE)
    if ours:
        return str(ours[-1])
    raised = re.findall(r"^[\w.]+(?:Error|Exception): .*$", text, re.MULTILINE)
    return f"the Spark job failed: {raised[-1] if raised else text.strip().splitlines()[0]}"


def main(arguments: list[str]) -> int:
    """Run the job of a planned run; what Airflow submits."""
    definition, run_id = arguments
    spark = SparkSession.builder.appName(f"recapture {run_id}").getOrCreate()
    try:
        run(spark, load(Path(definition)), run_id)
    except RecaptureError as error:
        print(f"recapture: {error}", file=sys.stderr)
        return error.exit_code
    finally:
        spark.stop()
    return 0
