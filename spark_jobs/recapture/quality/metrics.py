"""The metrics of a run (docs/time-model.md, section 5): their names, their totals and the rows of the metrics table."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recapture.pages.page import duration, number
from recapture.time_model import ticks
from recapture.time_model.metrics import COMBINED, COUNTS, MAX_GAPS, VERDICTS, WATERMARK, WATERMARK_DELAY
from recapture.time_model.partition_metrics import EventAhead, PartitionMetrics, Value, known_count
from recapture.time_model.verdicts import Verdict

if TYPE_CHECKING:
    import pandas as pd

PARTITION_METRICS = tuple(COMBINED)
"""Metrics of one partition in one slice."""
OUTPUT_METRICS = ("OutputEvents", "UnanchoredSessions")
"""Metrics of one output in one slice: its rows, and the rows that are sessions cut by the rule for sparse streams."""
COLUMNS = ("slice_start", "input", "partition", *PARTITION_METRICS, "complete", "whole")
"""Columns of the run's metrics that expectations can judge. There is one row per slice and partition."""
DERIVED_COLUMNS = ("unaccounted_events", "late_share")
"""Columns that the audit adds, see `derive`."""
ADJUSTED = ("early_adjusted", "late_adjusted", "out_of_order_adjusted")
"""Verdicts of events whose times the policies adjusted."""
NOT_ON_TIME = tuple(verdict for verdict in VERDICTS if verdict != Verdict.ON_TIME.label)
"""Verdicts of events that have a row in the table of verdicts."""
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
    """Return the metrics with DERIVED_COLUMNS.

    `unaccounted_events` is InputEvents less DuplicateEvents and the sum of the verdicts: 0 if every event has exactly
    one verdict, null if a count is missing.
    """
    accounted = metrics[["DuplicateEvents", *VERDICTS]].sum(axis=1, skipna=False)
    late_share = share_of_events(metrics, ["LateInputEvents"])
    return metrics.assign(unaccounted_events=metrics["InputEvents"] - accounted, late_share=late_share)


def share_of_events(metrics: pd.DataFrame, counts: Sequence[str]) -> pd.Series:
    """Return the sum of some counts as a share of InputEvents, 0 to 1; null if nothing arrived."""
    arrived = metrics["InputEvents"]
    return metrics[list(counts)].sum(axis=1, skipna=False) / arrived.where(arrived > 0)


def columns(metrics: PartitionMetrics) -> dict[str, Any]:
    """Return the COLUMNS of the metrics of a slice and partition."""
    return {
        "slice_start": metrics.slice_start,
        "input": metrics.input,
        "partition": metrics.partition,
        **metrics.values,
        "complete": metrics.complete,
        "whole": metrics.whole,
    }


@dataclass(frozen=True)
class Gap:
    """A range of sequence numbers that never arrived."""

    input: str
    partition: str
    first: int
    last: int


@dataclass(frozen=True)
class Totals:
    """The metrics of several partitions as one."""

    complete: bool
    whole: bool
    values: Mapping[str, Value]
    furthest_ahead: EventAhead | None
    missing: int
    """Number of sequence numbers that never arrived."""
    gaps: tuple[Gap, ...]
    """Their first ranges; at most MAX_GAPS."""

    def count(self, name: str) -> int:
        """Return a count. Raise RunError if it is not known."""
        return known_count(self.values, name)

    def counts(self, names: Iterable[str]) -> dict[str, int]:
        """Return counts by name. Raise RunError if one is not known."""
        return {name: self.count(name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return the totals in JSON types."""
        return {
            "complete": self.complete,
            "whole": self.whole,
            **self.values,
            "furthest_ahead": self.furthest_ahead and self.furthest_ahead.to_dict(),
            "gaps": {"missing": self.missing, "ranges": [asdict(gap) for gap in self.gaps]},
        }


@dataclass(frozen=True)
class InputTotals:
    """The metrics of an input in one slice."""

    alias: str
    totals: Totals
    partitions: Mapping[str, Mapping[str, Value]]
    """Values of the metrics of each partition."""

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics in JSON types."""
        return {"alias": self.alias, **self.totals.to_dict(), "partitions": self.partitions}


@dataclass(frozen=True)
class SliceTotals:
    """The metrics of one slice over all inputs."""

    totals: Totals
    inputs: tuple[InputTotals, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics in JSON types."""
        return {**self.totals.to_dict(), "inputs": [totals.to_dict() for totals in self.inputs]}


def combine(rows: Iterable[Mapping[str, Value]]) -> dict[str, Any]:
    """Return the metrics of several slices or partitions as one: the sums of the counts, and the longest delay.

    A count that a row lacks, because an earlier version did not have the metric, is None.
    """
    rows = list(rows)
    return {name: combined([row.get(name) for row in rows]) for name, combined in COMBINED.items()}


def by_slice(rows: Iterable[PartitionMetrics]) -> dict[str, SliceTotals]:
    """Return the metrics of each slice over all inputs, by slice_start."""
    return {
        start: SliceTotals(_totals(slice_rows), tuple(_by_input(slice_rows)))
        for start, slice_rows in _grouped(rows, lambda row: row.slice_start)
    }


def _by_input(rows: Iterable[PartitionMetrics]) -> Iterator[InputTotals]:
    for alias, input_rows in _grouped(rows, lambda row: row.input):
        yield InputTotals(alias, _totals(input_rows), {row.partition: row.values for row in input_rows})


def _totals(rows: list[PartitionMetrics]) -> Totals:
    gaps = (Gap(row.input, row.partition, first, last) for row in rows for first, last in row.gaps.ranges)
    return Totals(
        complete=all(row.complete for row in rows),
        whole=all(row.whole for row in rows),
        values=combine(row.values for row in rows),
        furthest_ahead=max(
            (row.furthest_ahead for row in rows if row.furthest_ahead), key=lambda ahead: ahead.seconds, default=None
        ),
        missing=sum(row.gaps.missing for row in rows),
        gaps=tuple(itertools.islice(gaps, MAX_GAPS)),
    )


def by_partition(rows: Iterable[PartitionMetrics]) -> dict[str, dict[str, Any]]:
    """Return the metrics of each partition of an input over all slices."""
    partitions = _grouped(rows, lambda row: row.partition)
    return {partition: combine(row.values for row in group) for partition, group in partitions}


def _grouped(
    rows: Iterable[PartitionMetrics], key: Callable[[PartitionMetrics], str]
) -> Iterable[tuple[str, list[PartitionMetrics]]]:
    """Return the values of a key, in order of their first appearance, each with its rows."""
    groups: dict[str, list[PartitionMetrics]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups.items()


def value_text(name: str, value: float | None) -> str:
    """Return the value of a metric as a page shows it: a watermark as a time, seconds as a duration."""
    if name == WATERMARK and value is not None:
        return ticks.to_text(round(value * 10**6) * (ticks.TICKS_PER_SECOND // 10**6) + ticks.UNIX_EPOCH)
    return duration(value) if name == WATERMARK_DELAY else number(value)


def table_rows(slice_totals: SliceTotals, outputs: Mapping[str, int]) -> pa.Table:
    """Return the rows of the metrics table, without slice_start, for a slice of an output with these OUTPUT_METRICS."""

    def rows() -> Iterator[tuple[str, str | None, str | None, float | None]]:
        for read in slice_totals.inputs:
            for partition, values in read.partitions.items():
                for name in PARTITION_METRICS:
                    yield name, read.alias, partition, values[name]
        for name in OUTPUT_METRICS:
            yield name, None, None, outputs[name]

    metric, alias, partition, value = zip(*rows(), strict=True)
    values = [None if number is None else float(number) for number in value]
    return pa.table([metric, alias, partition, values], schema=TABLE_SCHEMA)


def from_table_rows(slice_start: str, table: pa.Table) -> list[PartitionMetrics]:
    """Return a slice's metrics of each partition from rows of the metrics table; a metric that they lack is None."""
    partitions: dict[tuple[str, str], dict[str, Value]] = {}
    for row in table.to_pylist():
        name, value = row["metric"], row["value"]
        if name not in OUTPUT_METRICS:
            values = partitions.setdefault((row["input"], row["partition"]), dict.fromkeys(PARTITION_METRICS))
            values[name] = int(value) if name in COUNTS and value is not None else value
    return [PartitionMetrics(slice_start, *place, values) for place, values in partitions.items()]
