"""The metrics that are counted by slice and partition (docs/time-model.md, section 5).

To add a count, declare it as a field of `Counts` and count it in `recapture.ordering.counters`. Any other metric has a
name, and an entry in `COMBINED`, and a value in `Counters.metrics`. The metrics table, the report and the suites take
the names from here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recapture.time_model.verdicts import Verdict


def _metric(name: str) -> int:
    """Declare a count that is published under `name`."""
    count: int = field(default=0, metadata={"metric": name})
    return count


@dataclass(kw_only=True)
class Counts:
    """What arrives in one slice from one partition, in numbers."""

    events: int = _metric("InputEvents")
    """Events, duplicates included."""
    event_bytes: int = _metric("InputEventBytes")
    """Size of the events' bodies, in bytes."""
    blobs: int = _metric("InputEventsSourcesTotal")
    """Blobs, empty and damaged ones included."""
    malformed: int = _metric("DeserializationError")
    """Events with the verdict MALFORMED."""
    invalid_timestamps: int = _metric("InvalidInputTimeStamp")
    """Events with the verdict INVALID_TIMESTAMP."""
    early: int = _metric("EarlyInputEvents")
    """Events beyond the early window, whatever their verdict."""
    late: int = _metric("LateInputEvents")
    """Events beyond the late tolerance, whatever their verdict."""
    out_of_order: int = _metric("DroppedOrAdjustedEvents")
    """Events below the watermark."""
    duplicates: int = _metric("DuplicateEvents")
    """Events that arrived before; these have no verdict."""
    gaps: int = _metric("SequenceGaps")
    """Ranges of missing sequence numbers."""
    damaged: int = _metric("DamagedBlobs")
    """Blobs that were quarantined whole."""
    verdicts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(Verdict), np.int64))
    """Events by verdict."""

    def by_metric(self) -> dict[str, int]:
        """Return each count under the name of its metric, in the order of COUNTS."""
        named = {metric.metadata["metric"]: getattr(self, metric.name) for metric in _METRICS}
        return named | {verdict.label: int(self.verdicts[verdict]) for verdict in Verdict}


_METRICS = tuple(metric for metric in fields(Counts) if "metric" in metric.metadata)
VERDICTS = tuple(verdict.label for verdict in Verdict)
"""Names of the verdicts, each of which is a metric too."""
COUNTS = (*(metric.metadata["metric"] for metric in _METRICS), *VERDICTS)
"""Names of all metrics that count something."""
WATERMARK_DELAY = "OutputWatermarkDelaySeconds"
"""The slice's newest arrival minus its final watermark, in seconds.

The final watermark is the largest System.Timestamp of the slice's events minus the out-of-order tolerance. The delay is
negative if a clock ran ahead, and null if no event was processed. Of several partitions or slices it is the maximum.
"""
WATERMARK = "WatermarkSeconds"
"""The slice's final watermark, in seconds since 1970-01-01T00:00:00Z; null if no event was processed.

Of several partitions or slices it is the maximum.
"""


def total(values: Iterable[int | None]) -> int | None:
    """Return the sum of counts; None if one of them was not counted, such as by a version without the metric."""
    counts = list(values)
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _maximum(values: Sequence[Any]) -> Any:
    return max((value for value in values if value is not None), default=None)


COMBINED: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    **dict.fromkeys(COUNTS, total),
    WATERMARK_DELAY: _maximum,
    WATERMARK: _maximum,
}
"""All metrics of a partition in a slice, by name: how the values of several partitions or slices become one."""
MAX_GAPS = 20
"""Gaps whose ranges are reported, of a partition and of a slice; SequenceGaps counts all of them."""
