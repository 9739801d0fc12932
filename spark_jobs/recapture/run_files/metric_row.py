"""The form that the metrics of a slice and partition have in run files: one flat JSON object."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from recapture.time_model.metrics import COMBINED
from recapture.time_model.partition_metrics import PartitionMetrics


def _fields(row: Any) -> Any:
    """Return the fields of the metrics in a row. What an older version did not write takes its default, or is None."""
    if not isinstance(row, Mapping):
        return row
    written = {name: value for name, value in row.items() if value is not None}
    return written | {"values": {name: row.get(name) for name in COMBINED}}


def _row(metrics: PartitionMetrics) -> dict[str, Any]:
    complete = {} if metrics.complete is None else {"complete": metrics.complete}
    return {
        "slice_start": metrics.slice_start,
        "input": metrics.input,
        "partition": metrics.partition,
        **metrics.values,
        "whole": metrics.whole,
        "furthest_ahead": metrics.furthest_ahead and metrics.furthest_ahead.to_dict(),
        "gaps": asdict(metrics.gaps),
        "numbers": [
            {"sequence_partition": numbers.sequence_partition, "ranges": numbers.ranges} for numbers in metrics.numbers
        ],
        "keys": metrics.keys,
        "without_block": metrics.without_block,
        **complete,
    }


MetricRow = Annotated[PartitionMetrics, BeforeValidator(_fields), PlainSerializer(_row)]
"""Metrics that are written as one flat object."""
