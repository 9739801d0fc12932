"""The ledger of a report: every event that arrived is a duplicate or has a verdict, by slice and by partition."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

from recapture.quality import metrics
from recapture.run.approval import APPROVED
from recapture.time_model.metrics import VERDICTS, WATERMARK_DELAY
from recapture.time_model.partition_metrics import PartitionMetrics, Value
from recapture.tools.reports.sources import Source

PARTS = ("DuplicateEvents", *VERDICTS)
"""Counts that add up to InputEvents."""
MOST_GROUPS = 72
"""Largest number of slices that are shown one by one; of more, days or months are shown."""
LOST = (*(name for name in VERDICTS if name.endswith("dropped")), *metrics.UNUSABLE)
"""Verdicts of events that no row counts."""
LATE = "LateInputEvents"
"""Count of the late events. Those that are out of order too have that verdict."""
_SHOWN = ("InputEvents", *PARTS, LATE, "InputEventBytes", "InputEventsSourcesTotal", "SequenceGaps", "DamagedBlobs")
_QUALITIES = ("failed", APPROVED, "passed with warnings", "passed")
"""Qualities of slices, the worst first."""


def ledger(source: Source) -> dict[str, Any]:
    """Return the counts of a report: in total, by slice, day or month, and by partition."""
    unit, name = _unit(len({start[:10] for start in source.starts}), len(source.slices))
    groups: dict[str, list[Mapping[str, Value]]] = {name(start): [] for start in source.starts}
    unknown: dict[str, Mapping[str, Value]] = {start: {} for start in sorted(source.uncounted)}
    for start, values in (*((row.slice_start, row.values) for row in source.metrics), *unknown.items()):
        groups[name(start)].append(values)
    qualities, one_input = slice_qualities(source), len(source.pipeline.query.inputs) == 1
    partitions: dict[tuple[str, str], list[Mapping[str, Value]]] = {}
    for row in source.metrics:
        partitions.setdefault((row.input, row.partition), []).append(row.values)
    totals = counts([*(row.values for row in source.metrics), *unknown.values()])
    rows_of = Counter[str]()
    for (alias, _), rows in source.rows.items():
        rows_of[alias] += rows
    return {
        "totals": totals | {"rows": sum(source.rows.values())},
        "unit": unit,
        "groups": [
            {"name": group, **counts(values), **_of_slices(source, qualities, list(starts))}
            for (group, values), (_, starts) in zip(groups.items(), groupby(source.starts, name), strict=True)
        ],
        "partitions": [
            {"input": alias, "partition": name, "name": name if one_input else f"{alias} {name}", **counts(rows)}
            for (alias, name), rows in partitions.items()
        ],
        "outputs": [{"alias": output.alias, "rows": rows_of[output.alias]} for output in source.pipeline.outputs],
    }


def counts(rows: Iterable[Mapping[str, Value]]) -> dict[str, Any]:
    """Return the shown counts of some metrics, and the longest watermark delay."""
    combined = metrics.combine(rows)
    return {name: combined[name] for name in (*_SHOWN, WATERMARK_DELAY)}


def judged(counted: Mapping[str, Any]) -> int | None:
    """Return the number of events that have a verdict: those that arrived, without duplicates; None if not counted."""
    arrived, duplicates = counted["InputEvents"], counted["DuplicateEvents"]
    return None if arrived is None or duplicates is None else arrived - duplicates


def not_on_time(row: PartitionMetrics) -> int:
    """Return the number of events that have another verdict than on_time."""
    return sum(row.find_count(verdict) or 0 for verdict in VERDICTS if verdict != "on_time")


def slice_qualities(source: Source) -> dict[str, str | None]:
    """Return the verdict of each slice's audit, or APPROVED, by slice_start; None for a slice that is not published."""
    if source.single is not None and source.single.audited is not None:
        quality = APPROVED if source.approvals() else source.single.audited.verdict
        return dict.fromkeys(source.starts, quality)
    currents = {start: source.entries[start].current for start in source.starts}
    return {start: None if current is None else current.quality for start, current in currents.items()}


def _unit(days: int, slices: int) -> tuple[str, Callable[[str], str]]:
    if slices <= MOST_GROUPS:
        return "slice", lambda start: start
    return ("day", lambda start: start[:10]) if days <= MOST_GROUPS else ("month", lambda start: start[:7])


def _of_slices(source: Source, qualities: Mapping[str, str | None], starts: list[str]) -> dict[str, Any]:
    """Return the other values of a group: the numbers of slices, unpublished slices and rows, and the worst quality."""
    audited = [quality for start in starts if (quality := qualities[start]) is not None]
    group = set(starts)
    return {
        "slices": len(starts),
        "unpublished": len(starts) - len(audited),
        "quality": min(audited, key=_QUALITIES.index, default=None),
        "rows": sum(rows for (_, start), rows in source.rows.items() if start in group),
    }
