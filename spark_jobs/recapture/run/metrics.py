"""The metrics of a run: what its tasks counted, together with the rows that it wrote."""

from collections.abc import Iterable, Mapping
from typing import Any

from recapture.quality import metrics
from recapture.run.files import StagedSlice


def with_written_rows(rows: Iterable[Mapping[str, Any]], staged: Iterable[StagedSlice]) -> dict[str, dict[str, Any]]:
    """Return the metrics of each slice by slice_start: those of `metrics.by_slice`, and those of the staged rows."""
    counted = metrics.by_slice(rows)
    for of_slice in counted.values():
        of_slice.update(dict.fromkeys(metrics.OUTPUT_METRICS, 0))
    for file in staged:
        counted[file.slice_start]["OutputEvents"] += file.rows
        counted[file.slice_start]["UnanchoredSessions"] += file.unanchored
    return counted
