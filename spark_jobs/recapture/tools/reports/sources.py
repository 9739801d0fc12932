"""What a report is made from: run files, publications and tables, read for a run or for a range of slices."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from recapture.archive.manifest import Manifest
from recapture.definition.pipeline import Pipeline
from recapture.errors import FormatError, RunError
from recapture.execute import profiles
from recapture.ordering.profile import PROFILE_SCHEMA
from recapture.quality.metrics import from_table_rows
from recapture.run.problems import Problem, TableState, open_others
from recapture.run.slice_state import Standing, standing_of
from recapture.run.slices import require_whole_slices, slice_length, slices_of
from recapture.run.tables import metrics_key, tables_of
from recapture.run_files.computed import METRICS, STAGED, Computed, StagedSlice
from recapture.run_files.contents import AUDIT, Audited
from recapture.run_files.files import RunFiles
from recapture.run_files.marks import STAGED_RUNS
from recapture.run_files.planned import PlannedRun, files_of
from recapture.storage import in_parallel, open_container
from recapture.table.files import read_slice_table
from recapture.table.publications import Approval, Entry, Publications, shown_entries
from recapture.time_model import ticks
from recapture.time_model.partition_metrics import PartitionMetrics
from recapture.time_model.slices import Slice

T = TypeVar("T")

NEWEST_SLICES = 31 * 24
"""Number of the newest published slices that a report covers without a range."""


@dataclass(frozen=True)
class RunSource:
    """The run files of one run; what is missing is None or empty."""

    files: RunFiles
    manifest: Manifest | None
    """Manifest; for a range, only that of the newest run."""
    metrics: tuple[PartitionMetrics, ...]
    """What was counted in each slice and partition of an input."""
    audited: Audited | None
    profile: pa.Table
    """Profile with `ordering.profile.PROFILE_SCHEMA`."""
    known_staged: tuple[StagedSlice, ...] | None = None
    """Files that the run staged; None if they have to be read."""

    @property
    def id(self) -> str:
        return self.files.id

    @cached_property
    def staged(self) -> tuple[StagedSlice, ...]:
        """Files that the run staged. Raise PermanentError if they are not known any more."""
        return self.files.read(STAGED) if self.known_staged is None else self.known_staged


@dataclass(frozen=True)
class Source:
    """Everything that a report is made from."""

    pipeline: Pipeline
    slices: tuple[Slice, ...]
    """Slices that the report covers, in order of time."""
    runs: Mapping[str, RunSource]
    """Runs that the slices hold, or the run that is reported; by id."""
    run_of_slice: Mapping[str, str]
    """Id of the run of each slice that has one, by slice_start."""
    entries: Mapping[str, Entry]
    """Entries of the slices in the publications, by slice_start."""
    metrics: tuple[PartitionMetrics, ...]
    """Metrics of the slices, a row for each partition of an input; without run files, those of the metrics table.

    A metric that the version which ran the slice did not have is None.
    """
    rows: Mapping[tuple[str, str], int]
    """Number of rows by the alias of the output and slice_start."""
    single: RunSource | None
    """The run that is reported; None for a range of published slices."""
    warnings: tuple[str, ...] = ()
    """Warnings of the run that is reported."""
    uncounted: frozenset[str] = frozenset()
    """Published slices whose metrics are lost, by slice_start: neither run files nor the metrics table has them."""
    standing: Standing | None = None
    """How the slices of a range stand now; None for the report of a run."""
    problems: tuple[Problem, ...] = ()
    """What the tables hold otherwise than it is published for slices of a range, see `run.problems`."""
    is_staged: bool = False
    """Whether the run that is reported waits for a person who publishes or discards it."""

    @property
    def start(self) -> int:
        return self.slices[0].start

    @property
    def end(self) -> int:
        return self.slices[-1].end

    @property
    def starts(self) -> list[str]:
        """Return the starts of the slices as text."""
        return list(map(_text, self.slices))

    def approvals(self) -> dict[str, Approval]:
        """Return the approvals of what the report covers, by slice_start."""
        currents = {start: self.entries[start].current for start in self.starts}
        return {
            start: current.approval
            for start, current in currents.items()
            if current is not None and current.approval is not None and current.run == self.run_of_slice.get(start)
        }

    def profiles(self) -> pa.Table:
        """Return the profiles of the slices that have one, with PROFILE_SCHEMA."""
        tables = [PROFILE_SCHEMA.empty_table()]
        for run in self.runs.values():
            starts = [slice_.start for slice_ in self.slices if self.run_of_slice.get(_text(slice_)) == run.id]
            tables.append(run.profile.filter(pc.is_in(run.profile["slice_start"], pa.array(starts, pa.int64()))))
        return pa.concat_tables(tables)


def of_run(run: PlannedRun, computed: Computed, audited: Audited, warnings: Sequence[str]) -> Source:
    """Return the source of the report of one run, published or not."""
    source = RunSource(run.files, run.manifest, computed.metrics, audited, _profile(run.files), computed.staged)
    starts = list(run.slices)
    return Source(
        pipeline=run.pipeline,
        slices=tuple(run_slice.slice for run_slice in run.slices.values()),
        runs={run.id: source},
        run_of_slice=dict.fromkeys(starts, run.id),
        entries=Publications(tables_of(run.pipeline).publications).entries(starts),
        metrics=source.metrics,
        rows={(file.output, file.slice_start): file.rows for file in computed.staged},
        single=source,
        warnings=tuple(warnings),
        is_staged=STAGED_RUNS.read(run.files.container, run.id) is not None,
    )


def of_range(pipeline: Pipeline, start: datetime | None, end: datetime | None) -> Source:
    """Return the source of the report of the published slices of a range, or of the newest NEWEST_SLICES.

    Raise DefinitionError if the range is not one of whole slices, and RunError if nothing of it is published.
    """
    tables = tables_of(pipeline)
    publications = Publications(tables.publications)
    slices = _range(pipeline, publications, start, end)
    starts = list(map(_text, slices))
    entries = publications.entries(starts)
    run_of_slice = {slice_start: entry.run for slice_start, entry in entries.items() if entry.run is not None}
    if not run_of_slice:
        raise RunError(
            f"nothing is published from {starts[0]} to {ticks.to_text(slices[-1].end)} in {tables.publications.url}: "
            "choose a range that recapture status shows"
        )
    ids = list(dict.fromkeys(run_of_slice.values()))

    def read(run: str) -> RunSource:
        return _run_source(files_of(pipeline, run), with_manifest=run == ids[-1])

    runs = dict(zip(ids, in_parallel(read, ids), strict=True))
    metrics = [
        row for run, source in runs.items() for row in source.metrics if run_of_slice.get(row.slice_start) == run
    ]
    without_files = sorted(run_of_slice.keys() - {row.slice_start for row in metrics})
    from_tables = in_parallel(lambda start: published_metrics(pipeline, start, entries[start]), without_files)
    metrics += [row for rows in from_tables for row in rows or ()]
    uncounted = [start for start, rows in zip(without_files, from_tables, strict=True) if rows is None]
    standing = standing_of(pipeline, publications.table)
    state = TableState(publications.table, open_others(pipeline), standing)
    return Source(
        pipeline=pipeline,
        slices=tuple(slices),
        runs=runs,
        run_of_slice=run_of_slice,
        entries=entries,
        metrics=tuple(sorted(metrics, key=lambda row: row.slice_start)),
        rows={
            (output.alias, slice_start): file.rows
            for slice_start, entry in entries.items()
            if entry.current is not None
            for output in pipeline.outputs
            if (file := entry.current.files.get(output.alias)) is not None
        },
        single=None,
        uncounted=frozenset(uncounted),
        standing=standing,
        problems=tuple(problem for problem in state.problems() if not set(starts).isdisjoint(problem.slices)),
    )


def _range(pipeline: Pipeline, publications: Publications, start: datetime | None, end: datetime | None) -> list[Slice]:
    if start is not None and end is not None:
        require_whole_slices(pipeline, start, end)
        return slices_of(pipeline, start, end)
    published = [start for start, entry in shown_entries(publications.table).items() if entry.run is not None]
    if not published:
        raise RunError(f"nothing is published in {publications.table.table.url}: run recapture backfill first")
    length = slice_length(pipeline)
    first, last = (ticks.from_datetime(datetime.fromisoformat(text)) for text in (published[0], published[-1]))
    first = max(first, last - (NEWEST_SLICES - 1) * length)
    return slices_of(pipeline, ticks.to_datetime(first), ticks.to_datetime(last + length))


def _run_source(files: RunFiles, *, with_manifest: bool) -> RunSource:
    """Return the run files of a run. A file that does not exist or has another format is missing."""
    manifest = _unless_other_format(files.find_manifest) if with_manifest else None
    metrics = _unless_other_format(lambda: files.find(METRICS))
    audited = _unless_other_format(lambda: files.find(AUDIT))
    return RunSource(files, manifest, metrics or (), audited, _profile(files))


def _unless_other_format(read: Callable[[], T | None]) -> T | None:
    """Return what `read` returns; None if the file has another format."""
    with suppress(FormatError):
        return read()
    return None


def _profile(files: RunFiles) -> pa.Table:
    """Return the profile of a run; an empty one if it does not exist or has another format."""
    profile = _unless_other_format(lambda: profiles.read(files))
    return PROFILE_SCHEMA.empty_table() if profile is None else profile.replace_schema_metadata(None)


def published_metrics(pipeline: Pipeline, slice_start: str, entry: Entry) -> list[PartitionMetrics] | None:
    """Return the metrics of a slice from the metrics table, a row for each partition of an input; None if lost.

    `entry` is that of the slice in the publications.
    """
    output = pipeline.outputs[0]
    file = None if entry.current is None else entry.current.files.get(metrics_key(output))
    table = None if file is None else read_slice_table(open_container(output.metrics_table), file.path)
    return None if table is None else from_table_rows(slice_start, table)


def _text(slice_: Slice) -> str:
    return ticks.to_text(slice_.start)
