"""Published slices: those that expectations compare a run with, and those from which a suite is proposed."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from recapture.definition.sections import Output
from recapture.errors import PermanentError
from recapture.quality.metrics import PARTITION_METRICS
from recapture.quality.metrics import TABLE_SCHEMA as METRICS_SCHEMA
from recapture.quality.rows import Rows
from recapture.quality.suites import Suite, slices_before
from recapture.run.staged import local_files
from recapture.run.tables import metrics_key, tables_of
from recapture.run_files.planned import PlannedRun
from recapture.storage import in_parallel, open_container
from recapture.table.delta import OpenTable, Table
from recapture.table.files import read_parquet, require_slice_file
from recapture.table.schema import SLICE_COLUMN
from recapture.time_model import ticks

if TYPE_CHECKING:
    import pandas as pd


def with_history(run: PlannedRun, output: Output, suite: Suite, rows: Rows, folder: Path) -> Rows:
    """Return the rows of an output with the published rows that its suite compares them with, in local files."""
    starts = slices_before(suite.expectations, "aggregates", [run_slice.slice for run_slice in run.manifest.slices])
    published = published_files(tables_of(run.pipeline).others[output.alias], starts)
    return replace(rows, history=local_files(folder, f"{output.alias}-earlier", published.items()))


def earlier_metrics(run: PlannedRun, suites: Iterable[Suite]) -> pd.DataFrame | None:
    """Return the published metrics that the suites compare the run's with, in the form of a run's metrics.

    None if no suite compares them, or if there are none. The table does not say whether a slice was complete and whole.
    """
    expectations = [expectation for suite in suites for expectation in suite.expectations]
    starts = slices_before(expectations, "metrics", [run_slice.slice for run_slice in run.manifest.slices])
    published = published_files(tables_of(run.pipeline).others[metrics_key(run.pipeline.outputs[0])], starts)
    return metrics_of(published) if published else None


def metrics_of(files: Mapping[str, bytes]) -> pd.DataFrame:
    """Return what files of the metrics table hold, in the form of a run's metrics; `files` has one or more."""
    rows = rows_of(files, METRICS_SCHEMA.names).dropna(subset="input")
    wide = rows.pivot(index=["slice_start", "input", "partition"], columns="metric", values="value")
    return wide.reindex(columns=list(PARTITION_METRICS)).reset_index()


def with_columns(files: Mapping[str, bytes], columns: Collection[str]) -> dict[str, bytes]:
    """Return the files that have all of these columns. Others were computed with another query."""
    return {
        start: content
        for start, content in files.items()
        if set(columns).issubset(pq.read_schema(io.BytesIO(content)).names)
    }


def rows_of(files: Mapping[str, bytes], columns: Sequence[str]) -> pd.DataFrame:
    """Return these columns of the rows of files, and then `slice_start` (text). Times without a zone are UTC.

    There is at least one file, and all files have the columns.
    """
    tables = [
        table.append_column(SLICE_COLUMN, pa.repeat(start, table.num_rows))
        for start, table in ((start, read_parquet(content, columns)) for start, content in files.items())
    ]
    frame = pa.concat_tables(tables).to_pandas()
    naive = frame.select_dtypes("datetime").columns
    return frame.assign(**{name: frame[name].dt.tz_localize("UTC") for name in naive})


def published_files(table: Table, starts: Iterable[int]) -> dict[str, bytes]:
    """Return the content of each slice's file that the table holds, by slice_start and in order.

    Raise RunError if a file is gone or damaged, or if another program added or deleted rows.
    """
    texts = [ticks.to_text(start) for start in starts]
    if not texts:
        return {}
    held = OpenTable(table).held(texts)
    container = open_container(table.url)

    def read(start: str) -> bytes:
        file, *others = held[start]
        if others or file.has_deletions:
            raise PermanentError(
                f"another program changed the rows of slice {start} in {table.url}: backfill the slice again, which "
                "restores what is published"
            )
        named = f"{file.path}, which {table.url} names for slice {start}"
        problem = f"{named}, is gone or damaged: restore it, or backfill the slice again"
        return require_slice_file(container, file.path, problem)

    published = [start for start in texts if start in held]
    return dict(zip(published, in_parallel(read, published), strict=True))
