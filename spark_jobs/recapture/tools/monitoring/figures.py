"""The figures of a pipeline that tell whether its tables are complete, trusted and up to date."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from recapture.definition.pipeline import Pipeline
from recapture.quality.metrics import PARTITION_METRICS, combine
from recapture.run.problems import read_tables
from recapture.run.slice_state import STANDING_STATES
from recapture.run.status import status
from recapture.table.publications import Publications
from recapture.time_model.partition_metrics import PartitionMetrics
from recapture.tools.monitoring.exposition import Gauge, Sample
from recapture.tools.reports.sources import published_metrics

SLICES = Gauge("recapture_slices", "Slices that are published, blocked or failed, by state.")
NEWEST_SLICE_END = Gauge("recapture_newest_slice_end_timestamp_seconds", "End of the newest published slice.")
NEWEST_PUBLICATION = Gauge("recapture_newest_publication_timestamp_seconds", "Time of the newest publication.")
ARCHIVE_CHECKED = Gauge(
    "recapture_archive_checked_timestamp_seconds", "Time when published slices were last compared with the archive."
)
UNPUBLISHED_RANGES = Gauge("recapture_unpublished_ranges", "Ranges without publications between published slices.")
PROBLEMS = Gauge("recapture_problems", "Problems of the tables and the records, as recapture status shows them.")
MISSING_EVENTS = Gauge("recapture_missing_events", "Sequence numbers missing from the published slices.")
MISSING_BLOBS = Gauge("recapture_missing_blobs", "Blobs missing from the published slices.")
ROWS = Gauge("recapture_newest_slice_rows", "Rows of an output in the newest published slice.")
METRIC = Gauge("recapture_newest_slice_metric", "Metric of an input in the newest published slice.")
GAUGES = (
    SLICES,
    NEWEST_SLICE_END,
    NEWEST_PUBLICATION,
    ARCHIVE_CHECKED,
    UNPUBLISHED_RANGES,
    PROBLEMS,
    MISSING_EVENTS,
    MISSING_BLOBS,
    ROWS,
    METRIC,
)


def figures(pipeline: Pipeline) -> list[Sample]:
    """Return the figures of a pipeline. What is not known has no sample; it is never 0 instead."""
    tables = read_tables(pipeline)
    result = status(pipeline, tables=tables)
    published = [slice_ for slice_ in result["outputs"][0]["slices"] if slice_["run"] is not None]
    metrics: list[PartitionMetrics] | None = None
    if published:
        newest: str = published[-1]["slice_start"]
        entry = Publications(tables.publications).entries([newest])[newest]
        metrics = published_metrics(pipeline, newest, entry)
    return [*_of_status(pipeline, result, published), *_of_metrics(pipeline.name, metrics or ())]


def _of_status(
    pipeline: Pipeline, result: Mapping[str, Any], published: Sequence[Mapping[str, Any]]
) -> Iterator[Sample]:
    labels = {"pipeline": pipeline.name}
    for state in STANDING_STATES:
        yield Sample(SLICES, labels | {"state": str(state)}, result["states"].get(state, 0))
    yield Sample(UNPUBLISHED_RANGES, labels, len(result["outputs"][0]["unpublished"]))
    yield Sample(PROBLEMS, labels, len(result["problems"]))
    if result["checked"]["at"] is not None:
        yield Sample(ARCHIVE_CHECKED, labels, _seconds(result["checked"]["at"]))
    if not published:
        return
    start = datetime.fromisoformat(published[-1]["slice_start"])
    yield Sample(NEWEST_SLICE_END, labels, (start + timedelta(hours=pipeline.slice_hours)).timestamp())
    yield Sample(NEWEST_PUBLICATION, labels, max(_seconds(slice_["published"]) for slice_ in published))
    for gauge, name in ((MISSING_EVENTS, "missing_events"), (MISSING_BLOBS, "missing_blobs")):
        counts = [slice_[name] for slice_ in published]
        if None not in counts:
            yield Sample(gauge, labels, sum(counts))
    for output in result["outputs"]:
        rows = next(
            slice_["rows"] for slice_ in output["slices"] if slice_["slice_start"] == published[-1]["slice_start"]
        )
        if rows is not None:
            yield Sample(ROWS, labels | {"output": output["alias"]}, rows)


def _of_metrics(pipeline: str, metrics: Sequence[PartitionMetrics]) -> Iterator[Sample]:
    """Yield the metrics of each input over its partitions: sums of the counts, and the longest delay."""
    for alias in dict.fromkeys(row.input for row in metrics):
        values = combine(row.values for row in metrics if row.input == alias)
        for name in PARTITION_METRICS:
            if values[name] is not None:
                yield Sample(METRIC, {"pipeline": pipeline, "input": alias, "metric": name}, values[name])


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
