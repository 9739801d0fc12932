"""Rows as a run stages them, from a pandas frame, and their audit."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from recapture.quality import checkpoint
from recapture.quality.audit import Audit
from recapture.quality.rows import FRAME_ROWS, Rows, SliceFile
from recapture.quality.suites import RunParameters, Suite

ALIAS = "aggregates"
COLUMNS = ("windowEnd", "deviceId", "events", "avgTemperature")
Declared = Callable[..., Suite]
"""Returns a suite of the given expectations."""
SLICE_START = datetime(2026, 3, 1, 10, tzinfo=UTC)


def in_files(
    folder: Path, frame: pd.DataFrame | pa.Table, cuts: tuple[int, ...] = (), frame_rows: int = FRAME_ROWS
) -> Rows:
    """Write rows to files that begin at the rows of `cuts`."""
    table = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
    files = []
    for start, end in pairwise((0, *cuts, table.num_rows)):
        path = folder / f"{len(list(folder.iterdir()))}.parquet"
        pq.write_table(table.slice(start, end - start), path)
        files.append(SliceFile(path, SLICE_START))
    return Rows(table.schema.remove_metadata(), "slice_start", tuple(files), frame_rows)


def with_start_strings(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return metrics with the starts of slices as strings, as a run has them."""
    return metrics.assign(slice_start=[start.isoformat().replace("+00:00", "Z") for start in metrics["slice_start"]])


def in_rows(metrics: pd.DataFrame) -> list[dict[str, Any]]:
    """Return metrics as a run has them in its files."""
    metrics = with_start_strings(metrics)
    rows: list[dict[str, Any]] = metrics.astype(object).where(metrics.notna(), None).to_dict("records")
    return rows


def audit(
    metrics: pd.DataFrame, aggregates: dict[str, pd.DataFrame], suites: dict[str, Suite], run: RunParameters
) -> Audit:
    with tempfile.TemporaryDirectory() as folder:
        rows = {alias: in_files(Path(folder), frame) for alias, frame in aggregates.items()}
        return checkpoint.audit(in_rows(metrics), rows, suites, run)


@dataclass
class SoundRun:
    """A run that passes its audit until a test changes it."""

    metrics: pd.DataFrame
    aggregates: pd.DataFrame
    run: RunParameters

    def audit(self, suite: Suite | None = None) -> Audit:
        """Audit the run with the built-in checks and a suite of its output."""
        return audit(self.metrics, {ALIAS: self.aggregates}, {} if suite is None else {ALIAS: suite}, self.run)
