"""Read the coverage of a pipeline: its publications, blocked runs, changed blobs, and how far Capture has got."""

import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import pyarrow as pa

from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Output
from recapture.errors import PermanentError, RecaptureError
from recapture.quality.metrics import TABLE_SCHEMA
from recapture.run.needs import longest_wait
from recapture.run.outdated import parts_of
from recapture.run.progress import first_incomplete
from recapture.run.slice_state import Standing, read_standing
from recapture.run.slices import slice_length
from recapture.run.tables import tables_of
from recapture.run_files.changes import Changes
from recapture.run_files.work import Request
from recapture.storage import Container, open_container
from recapture.table.delta import OpenTable, Table
from recapture.table.files import read_slice_table
from recapture.time_model import ticks
from recapture.time_model.metrics import COMBINED
from recapture.time_model.slices import slices_between
from recapture.tools.coverage.activity import Activity
from recapture.tools.coverage.states import NO_ACTIVITY, SliceState, shown_starts, slice_states

PROGRESS_SECONDS = 60.0
"""Time in seconds after which the reader looks again how far Capture has got."""
OPEN_SECONDS = 600.0
"""Time for which a table stays open, in seconds: the token with which it was opened expires within the hour."""

_UNKNOWN_PROGRESS = (
    "How far Capture has got is not known, so a slice that is still being written may be shown as missing"
)


@dataclass(frozen=True)
class Coverage:
    """Coverage of a pipeline."""

    slices: tuple[SliceState, ...]
    """States, in order of time, from the first slice of which something is known to the last that has ended."""
    changes: Changes
    requests: tuple[Request, ...] = ()
    """Requests in the order in which they were made."""
    problems: tuple[str, ...] = ()
    """What could not be read, and what is shown wrongly because of it."""


class CoverageReader:
    """Reads the coverage of one pipeline. It keeps the tables open, so that reading them again is quick."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self._lock = threading.Lock()
        self._tables: dict[str, tuple[float, OpenTable]] = {}
        self._progress: tuple[float, int, int | None] | None = None
        """Time of the last look, end of the last slice at that time, and start of the first incomplete slice."""

    def read(
        self, now: datetime, environment: Mapping[str, str] = os.environ, activity: Activity = NO_ACTIVITY
    ) -> Coverage:
        """Return the coverage; `activity` is what the scheduler does. Raise RecaptureError if it cannot be read."""
        with self._lock:
            length = slice_length(self.pipeline)
            last_end = ticks.from_datetime(now) // length * length
            publications = self._open(tables_of(self.pipeline).publications, environment)
            container = open_container(self.pipeline.outputs[0].table, environment)
            standing = read_standing(publications, container, self._parts, length, longest_wait(self.pipeline))
            incomplete_from = None
            changes = standing.changes
            problems = [problem for problem in standing.problems if problem != changes.problem]
            if changes.problem is not None:
                problems.append(f"Slices may be stale without being shown as such: {changes.problem}")
            schedule = self.pipeline.schedule
            until = None if schedule is None or schedule.until is None else ticks.from_datetime(schedule.until)
            starts = shown_starts(standing, last_end, length, activity, until)
            try:
                incomplete_from = self._first_incomplete(standing, starts, last_end, now, environment)
            except RecaptureError as error:
                problems.append(f"{_UNKNOWN_PROGRESS}: {error}")
            states = slice_states(standing, last_end, length, incomplete_from, activity, until)
            return Coverage(tuple(states), changes, standing.work.requests, tuple(problems))

    @cached_property
    def _parts(self) -> dict[str, str]:
        return parts_of(self.pipeline)

    def metrics(
        self, output: Output, slice_start: str, environment: Mapping[str, str] = os.environ
    ) -> dict[str, float | None]:
        """Return the metrics of an output's slice over all partitions, by name; none if nothing is published.

        Raise PermanentError if their file is gone or damaged.
        """
        with self._lock:
            table = self._open(Table(output.metrics_table, TABLE_SCHEMA), environment)
            container, held = open_container(output.metrics_table, environment), table.held([slice_start])
            values: dict[str, list[float | None]] = {}
            for file in held.get(slice_start, ()):
                for row in _rows(container, file.path):
                    values.setdefault(row["metric"], []).append(row["value"])
        return {name: COMBINED.get(name, sum)(metric_values) for name, metric_values in values.items()}

    def _open(self, table: Table, environment: Mapping[str, str]) -> OpenTable:
        """Return the table as it is now."""
        opened_at, opened = self._tables.pop(table.url, (0.0, None))
        if opened is not None and time.monotonic() - opened_at < OPEN_SECONDS:
            opened.refresh()
        else:
            opened_at, opened = time.monotonic(), OpenTable(table, environment)
        self._tables[table.url] = opened_at, opened
        return opened

    def _first_incomplete(
        self, standing: Standing, starts: range, last_end: int, now: datetime, environment: Mapping[str, str]
    ) -> int | None:
        """Return the start of the first slice of which more may still be written; None if there is none."""
        if self._progress is not None:
            read_at, end, start = self._progress
            if end == last_end and time.monotonic() - read_at < PROGRESS_SECONDS:
                return start
        published, length = standing.published, starts.step
        unpublished = [start for start in starts if ticks.to_text(start) not in published]
        slices = [slice_ for start in unpublished for slice_ in slices_between(start, start + length, length)]
        incomplete = first_incomplete(self.pipeline, slices, now, environment)
        start = None if incomplete is None else incomplete.start
        self._progress = time.monotonic(), last_end, start
        return start


def _rows(container: Container, path: str) -> list[dict[str, Any]]:
    """Return the rows of a file. Raise PermanentError if it is gone or damaged."""
    with suppress(pa.ArrowException):
        table = read_slice_table(container, path)
        if table is not None:
            return table.select(["metric", "value"]).to_pylist()
    raise PermanentError(f"{path} in {container.url} is gone or damaged: restore it, or backfill the slice again")
