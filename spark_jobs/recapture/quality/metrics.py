"""The metrics of a run (docs/time-model.md, section 5): their names, their totals and the rows of the metrics table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recapture.errors import RunError
from recapture.pages.page import duration, number
from recapture.time_model import ticks
from recapture.time_model.metrics import COMBINED, MAX_GAPS, VERDICTS, WATERMARK, WATERMARK_DELAY

if TYPE_CHECKING:
    import pandas as pd

PARTITION_METRICS = tuple(COMBINED)
"""Metrics of one partition in one slice."""
OUTPUT_METRICS = ("OutputEvents", "UnanchoredSessions")
"""Metrics of one output in one slice: its rows, and the rows that are sessions cut by the rule for sparse streams."""
COLUMNS = ("slice_start", "input", "partition", *PARTITION_METRICS, "complete", "whole")
"""Columns of the run's metrics that expectations can judge. There is one row per slice and partition."""
UNAUDITED = ("furthest_ahead", "gaps", "numbers", "keys", "without_block")
"""Fields of the same rows that no expectation judges.

`numbers` has the ranges of sequence numbers that arrived (see `recapture.archive.holes`), and `keys` what became of the
events of the keys with the most trouble (see `recapture.ordering.key_counts`). `without_block` lists the blobs that are
Avro files with a header and no block.
"""
DERIVED_COLUMNS = ("unaccounted_events", "late_share")
"""Columns that the audit adds, see `derive`."""
ADJUSTED = ("early_adjusted", "late_adjusted", "out_of_order_adjusted")
"""Verdicts of events whose times the policies adjusted."""
UNUSABLE = ("malformed", "invalid_timestamp")
"""Verdicts of events that no query can read."""
QUARANTINED = (*UNUSABLE, "DamagedBlobs")
"""Counts of the events and blobs that have a row in the quarantine."""
TABLE_SCHEMA = pa.schema(
    [("metric", pa.string()), ("input", pa.string()), ("partition", pa.string()), ("value", pa.float64())]
)
"""Schema of the metrics table without slice_start.

Counts and seconds have the same type, which is exact for counts up to 2^53.
"""


def derive(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the metrics with DERIVED_COLUMNS. Raise RunError if a column of `COLUMNS` is missing."""
    missing = [column for column in COLUMNS if column not in metrics.columns]
    if missing:
        raise RunError(f"the run's metrics lack {', '.join(missing)}; run the slices again")
    return metrics.assign(
        unaccounted_events=unaccounted_events(metrics), late_share=share_of_events(metrics, ["LateInputEvents"])
    )


def unaccounted_events(metrics: pd.DataFrame) -> pd.Series:
    """Return InputEvents less DuplicateEvents and the sum of the verdicts.

    It is 0 if every event has exactly one verdict, and null if a count is missing.
    """
    return metrics["InputEvents"] - metrics[["DuplicateEvents", *VERDICTS]].sum(axis=1, skipna=False)


def share_of_events(metrics: pd.DataFrame, counts: Sequence[str]) -> pd.Series:
    """Return the sum of some counts as a share of InputEvents, 0 to 1; null if nothing arrived."""
    arrived = metrics["InputEvents"]
    return metrics[list(counts)].sum(axis=1, skipna=False) / arrived.where(arrived > 0)


def combine(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the metrics of several slices or partitions as one: the sums of the counts, and the longest delay.

    A count that a row lacks, because an earlier version did not have the metric, is None.
    """
    rows = list(rows)
    return {name: combined([row.get(name) for row in rows]) for name, combined in COMBINED.items()}


def by_slice(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the metrics of each slice over all inputs, by slice_start.

    They include `complete`, `whole`, `furthest_ahead`, `gaps` and, under `inputs`, the same of each input with its
    `alias` and, under `partitions`, the metrics of each partition.
    """
    return {
        start: _combined(of_slice) | {"inputs": _by_input(of_slice)}
        for start, of_slice in _grouped(rows, "slice_start")
    }


def _by_input(of_slice: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "alias": alias,
            **_combined(of_input),
            "partitions": {row["partition"]: {name: row.get(name) for name in PARTITION_METRICS} for row in of_input},
        }
        for alias, of_input in _grouped(of_slice, "input")
    ]


def _combined(rows: list[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "complete": all(row["complete"] for row in rows),
        "whole": all(row["whole"] for row in rows),
        **combine(rows),
        "furthest_ahead": max(
            (row["furthest_ahead"] for row in rows if row["furthest_ahead"]),
            key=lambda ahead: ahead["seconds"],
            default=None,
        ),
        "gaps": _gaps(rows),
    }


def _gaps(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the number of missing sequence numbers over all partitions, and the first ranges of them."""
    ranges = [
        {"input": row["input"], "partition": row["partition"], "first": first, "last": last}
        for row in rows
        for first, last in row["gaps"]["ranges"]
    ]
    return {"missing": sum(row["gaps"]["missing"] for row in rows), "ranges": ranges[:MAX_GAPS]}


def by_partition(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the metrics of each partition of an input over all slices."""
    return {partition: combine(of_partition) for partition, of_partition in _grouped(rows, "partition")}


def _grouped(rows: Iterable[Mapping[str, Any]], name: str) -> Iterable[tuple[str, list[Mapping[str, Any]]]]:
    """Return the values of a field, in order of their first appearance, each with its rows."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row[name], []).append(row)
    return groups.items()


def value_text(name: str, value: float | None) -> str:
    """Return the value of a metric as a page shows it: a watermark as a time, seconds as a duration."""
    if name == WATERMARK and value is not None:
        return ticks.to_text(round(value * 10**6) * (ticks.TICKS_PER_SECOND // 10**6) + ticks.UNIX_EPOCH)
    return duration(value) if name == WATERMARK_DELAY else number(value)


def table_rows(of_slice: Mapping[str, Any]) -> pa.Table:
    """Return the rows of the metrics table for one slice of one output, without slice_start.

    `of_slice` is as `by_slice` returns it, with the metrics of the output added. Those have no partition.
    """

    def rows() -> Iterator[tuple[str, str | None, str | None, float | None]]:
        for of_input in of_slice["inputs"]:
            for partition, of_partition in of_input["partitions"].items():
                for name in PARTITION_METRICS:
                    yield name, of_input["alias"], partition, of_partition[name]
        for name in OUTPUT_METRICS:
            yield name, None, None, of_slice[name]

    metric, alias, partition, value = zip(*rows(), strict=True)
    values = [None if number is None else float(number) for number in value]
    return pa.table([metric, alias, partition, values], schema=TABLE_SCHEMA)
