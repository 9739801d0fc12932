"""What the trend of a pipeline is made from: its publications, metrics tables and audits."""

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa

from recapture.definition.pipeline import Pipeline
from recapture.errors import FormatError, PermanentError, RunError
from recapture.quality.audit import Result
from recapture.quality.metrics import combine, from_table_rows
from recapture.run.slice_state import blocked_in
from recapture.run.slices import require_whole_slices, slice_length, slices_of
from recapture.run.tables import metrics_key, tables_of
from recapture.run_files.contents import AUDIT
from recapture.run_files.files import RunFiles
from recapture.storage import Container, in_parallel, open_container
from recapture.table.delta import OpenTable
from recapture.table.files import read_slice_table
from recapture.table.publications import shown_entries
from recapture.table.snapshot import HeldFile
from recapture.time_model import ticks
from recapture.time_model.metrics import total
from recapture.time_model.partition_metrics import Value

NEWEST_DAYS = 92
"""Number of days that a trend covers without a range."""


@dataclass(frozen=True)
class TrendSlice:
    """What is known of a slice."""

    slice_start: str
    run: str | None
    """Run that is published; None if nothing is."""
    judged_run: str | None
    """Run whose audit judged the slice last: one that its audit stopped, or else the published one."""
    values: Mapping[str, Value] | None
    """Metrics of all partitions together; None if nothing is published, or if they are lost."""
    rows: int | None
    """Number of rows of all outputs; None if nothing is published, or if another program did not count them."""


@dataclass(frozen=True)
class Trend:
    """What the page of a trend is made from."""

    pipeline: Pipeline
    slices: Sequence[TrendSlice]
    """Slices in order of time, with those that are not published."""
    audits: Mapping[str, Sequence[Result] | None]
    """Results of the audits, by run; None if its run files are gone or have another format."""


def read_trend(
    pipeline: Pipeline, start: datetime | None, end: datetime | None, environment: Mapping[str, str] = os.environ
) -> Trend:
    """Return the trend of a range, or of the NEWEST_DAYS up to the newest slice that is published or blocked.

    Raise DefinitionError if the range is not one of whole slices, and RunError if nothing of it is published.
    """
    tables, length = tables_of(pipeline), slice_length(pipeline)
    container = open_container(pipeline.outputs[0].table, environment)
    publications = OpenTable(tables.publications, environment)
    entries = shown_entries(publications)
    runs = {slice_start: entry.run for slice_start, entry in entries.items() if entry.run is not None}
    blocked = blocked_in(container, entries, length) if runs else {}
    slice_starts = _range(pipeline, {*runs, *blocked}, start, end)
    published = [slice_start for slice_start in slice_starts if slice_start in runs]
    if not published:
        raise RunError(
            f"nothing is published in this range of {publications.table.url}: choose one that recapture status shows"
        )
    first = pipeline.outputs[0]
    held = OpenTable(tables.others[metrics_key(first)], environment).held(published)
    metrics = _metrics(open_container(first.metrics_table, environment), held)
    outputs = [OpenTable(tables.others[output.alias], environment).held(published) for output in pipeline.outputs]

    def trend_slice(slice_start: str) -> TrendSlice:
        run = runs.get(slice_start)
        rows = total(file.rows for held in outputs for file in held.get(slice_start, ())) if run is not None else None
        return TrendSlice(slice_start, run, blocked.get(slice_start, run), metrics.get(slice_start), rows)

    slices = list(map(trend_slice, slice_starts))
    judged = list(dict.fromkeys(slice_.judged_run for slice_ in slices if slice_.judged_run is not None))
    results = in_parallel(lambda run: _results(RunFiles(container, run)), judged)
    return Trend(pipeline, slices, dict(zip(judged, results, strict=True)))


def _range(pipeline: Pipeline, known: Collection[str], start: datetime | None, end: datetime | None) -> list[str]:
    """Return the starts of the slices of a range; without one, of the newest known slices."""
    if start is not None and end is not None:
        require_whole_slices(pipeline, start, end)
    elif known:
        instants = list(map(datetime.fromisoformat, known))
        end = max(instants) + timedelta(hours=pipeline.slice_hours)
        start = max(min(instants), end - timedelta(days=NEWEST_DAYS))
    else:
        return []
    return [ticks.to_text(slice_.start) for slice_ in slices_of(pipeline, start, end)]


def _metrics(container: Container, held: Mapping[str, Sequence[HeldFile]]) -> dict[str, Mapping[str, Value]]:
    """Return the metrics of slices over all partitions, by slice_start; `held` has the files of the metrics table.

    Slices whose file is gone or damaged are left out.
    """

    def read(slice_start: str) -> Mapping[str, Value] | None:
        with suppress(pa.ArrowException):
            tables = [read_slice_table(container, file.path) for file in held[slice_start]]
            rows = [row for table in tables if table is not None for row in from_table_rows(slice_start, table)]
            return combine(row.values for row in rows) if rows else None
        return None

    values = zip(held, in_parallel(read, held), strict=True)
    return {slice_start: known for slice_start, known in values if known is not None}


def _results(files: RunFiles) -> tuple[Result, ...] | None:
    """Return the results of the audit of a run; None if its file is gone or cannot be read."""
    try:
        audited = files.find(AUDIT)
    except (FormatError, PermanentError):
        return None
    return None if audited is None else audited.audit.results
