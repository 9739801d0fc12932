"""The metrics of a run (docs/time-model.md, section 5): folded, and laid out as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from recapture.errors import RunError
from recapture.time_model.metrics import COUNTS, MAX_GAPS, VERDICTS, WATERMARK_DELAY

if TYPE_CHECKING:
    import pandas as pd

OF_A_PARTITION = (*COUNTS, WATERMARK_DELAY)
OF_AN_OUTPUT = ("OutputEvents", "UnanchoredSessions")
"""Rows, and those of them that are sessions whose beginning lies before what a slice reads."""
COLUMNS = ("slice_start", "input", "partition", *OF_A_PARTITION, "complete", "whole")
"""What a run counts: one row for each slice and partition."""
BESIDE = ("furthest_ahead", "gaps", "without_block")
"""What else such a row tells, and no expectation judges: the last, the blobs that are Avro files of a header alone."""
DERIVED_COLUMNS = ("law_difference", "late_share")
"""What the audit adds: see `derive`."""
UNUSABLE = ("malformed", "invalid_timestamp")
"""The verdicts of events that no query can read."""
SET_ASIDE = (*UNUSABLE, "DamagedBlobs")
"""The counts of what has a row in the quarantine."""
TABLE_SCHEMA = pa.schema(
    [("metric", pa.string()), ("input", pa.string()), ("partition", pa.string()), ("value", pa.float64())]
)
"""Of the metrics table, besides slice_start: one type for counts and seconds, and exact for counts up to 2^53."""


def derive(metrics: pd.DataFrame) -> pd.DataFrame:
    """Add what follows from the counts.

    `law_difference`: InputEvents less DuplicateEvents and the sum of the verdicts; 0 where the law holds, null where a
    count is missing.
    `late_share`: LateInputEvents / InputEvents, 0 to 1; null where nothing arrived.
    Raises RunError for a frame without the columns of `COLUMNS`.
    """
    missing = [column for column in COLUMNS if column not in metrics.columns]
    if missing:
        raise RunError(f"the run's metrics lack {', '.join(missing)}; run the slices again")
    arrived = metrics["InputEvents"]
    return metrics.assign(
        law_difference=arrived - metrics[["DuplicateEvents", *VERDICTS]].sum(axis=1, skipna=False),
        late_share=metrics["LateInputEvents"] / arrived.where(arrived > 0),
    )


def together(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The metrics of several slices or partitions as one: counts add up, the longest watermark delay holds."""
    rows = list(rows)
    counts = {name: sum(row[name] for row in rows) for name in COUNTS}
    delays = [row[WATERMARK_DELAY] for row in rows if row[WATERMARK_DELAY] is not None]
    return counts | {WATERMARK_DELAY: max(delays, default=None)}


def by_slice(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By slice_start: its metrics over all partitions, `complete`, `whole`, its furthest event ahead, its gaps, and the
    metrics of each partition."""
    of_slices: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        of_slices.setdefault(row["slice_start"], []).append(row)
    return {
        start: {
            "complete": all(row["complete"] for row in of_slice),
            "whole": all(row["whole"] for row in of_slice),
            **together(of_slice),
            "furthest_ahead": max(
                (row["furthest_ahead"] for row in of_slice if row["furthest_ahead"]),
                key=lambda ahead: ahead["seconds"],
                default=None,
            ),
            "gaps": _gaps(of_slice),
            "partitions": {
                row["partition"]: {name: row[name] for name in ("input", *OF_A_PARTITION)} for row in of_slice
            },
        }
        for start, of_slice in of_slices.items()
    }


def _gaps(of_slice: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """How many sequence numbers are missing in all partitions, and the first ranges of them."""
    ranges = [
        {"partition": row["partition"], "first": first, "last": last}
        for row in of_slice
        for first, last in row["gaps"]["ranges"]
    ]
    return {"missing": sum(row["gaps"]["missing"] for row in of_slice), "ranges": ranges[:MAX_GAPS]}


def by_partition(slices: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The metrics of each partition over all slices, these as `by_slice` has them."""
    of_partitions: dict[str, list[Mapping[str, Any]]] = {}
    for each in slices:
        for partition, row in each["partitions"].items():
            of_partitions.setdefault(partition, []).append(row)
    return {partition: together(rows) for partition, rows in of_partitions.items()}


def table_rows(of_slice: Mapping[str, Any]) -> pa.Table:
    """The rows of the metrics table for one slice of one output, without slice_start.

    `of_slice` is as `by_slice` has it, with the metrics of the output; these have no partition.
    """

    def rows() -> Iterator[tuple[str, str | None, str | None, float | None]]:
        for partition, of_partition in of_slice["partitions"].items():
            for name in OF_A_PARTITION:
                yield name, of_partition["input"], partition, of_partition[name]
        for name in OF_AN_OUTPUT:
            yield name, None, None, of_slice[name]

    metric, alias, partition, value = zip(*rows(), strict=True)
    values = [None if each is None else float(each) for each in value]
    return pa.table([metric, alias, partition, values], schema=TABLE_SCHEMA)
