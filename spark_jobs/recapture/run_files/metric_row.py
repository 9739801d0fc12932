"""The form that the metrics of a slice and partition have in run files: one flat JSON object."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from recapture.time_model.metrics import COMBINED
from recapture.time_model.partition_metrics import KeyEvents, KeyMetrics, PartitionMetrics


def _fields(row: Any) -> Any:
    """Return the fields of the metrics in a row. What an older version did not write takes its default, or is None."""
    if isinstance(row, PartitionMetrics):
        return row
    try:
        written = {name: value for name, value in row.items() if value is not None}
        written["values"] = {name: row.get(name) for name in COMBINED}
        if keys := written.get("keys"):
            most = {name: list(map(_key_fields, rows)) for name, rows in keys["most"].items()}
            written["keys"] = {**keys, "most": most, "unreached": list(map(_key_fields, keys["unreached"]))}
    except (AttributeError, KeyError, TypeError):
        raise ValueError("not a row of metrics") from None
    return written


def _key_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"key": row["key"], "counts": {name: count for name, count in row.items() if name != "key"}}


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
        "keys": metrics.keys and _key_row(metrics.keys),
        "without_block": metrics.without_block,
        **complete,
    }


def _key_row(keys: KeyMetrics) -> dict[str, Any]:
    most = {name: list(map(_key_events_row, most)) for name, most in keys.most.items()}
    return vars(keys) | {"most": most, "unreached": list(map(_key_events_row, keys.unreached))}


def _key_events_row(events: KeyEvents) -> dict[str, Any]:
    return {"key": events.key, **events.counts}


MetricRow = Annotated[PartitionMetrics, BeforeValidator(_fields), PlainSerializer(_row)]
"""Metrics that are written as one flat object."""
