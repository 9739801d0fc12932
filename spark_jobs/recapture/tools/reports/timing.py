"""The times of events in a report: histograms, the events that pushed the watermark, and the watermark pictures."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recapture.archive.definitions import ArrivalTime
from recapture.ordering.profile import DISORDER_BOUNDS, LATENESS_BOUNDS
from recapture.pages.page import duration
from recapture.quality import metrics
from recapture.query.model import CompiledInput
from recapture.time_model import ticks
from recapture.time_model.metrics import VERDICTS, total
from recapture.time_model.partition_metrics import PartitionMetrics
from recapture.time_model.policies import Policies
from recapture.time_model.ticks import TICKS_PER_SECOND
from recapture.tools.reports.ledger import LATE, judged, not_on_time
from recapture.tools.reports.quarantined import text_of
from recapture.tools.reports.sources import Source
from recapture.tools.reports.watermark import picture

MAX_PICTURES = 4
MAX_PUSHERS = 8
"""Largest number of events that are shown as having pushed the watermark."""
_FEWEST_EVENTS = 3
"""Smallest number of sampled events of an OVER key that are worth a picture."""


def timing(source: Source) -> list[dict[str, Any]]:
    """Return the times of the events of each input with TIMESTAMP BY."""
    profiles = source.profiles()
    sections = []
    for compiled in source.pipeline.query.inputs:
        policies = source.pipeline.policies(compiled)
        if policies is not None:
            input_profiles = profiles.filter(pc.equal(profiles["input"], compiled.alias))
            rows = [row for row in source.metrics if row.input == compiled.alias]
            sections.append(_of_input(source, compiled, policies, input_profiles, rows))
    return sections


def _of_input(
    source: Source, compiled: CompiledInput, policies: Policies, profiles: pa.Table, rows: Sequence[PartitionMetrics]
) -> dict[str, Any]:
    late, early, tolerance = (
        None if value is None else value / TICKS_PER_SECOND
        for value in (policies.late_tolerance, policies.early_window, policies.out_of_order_tolerance)
    )
    return {
        "alias": compiled.alias,
        "over": [column.name for column in compiled.over],
        "policy": "Adjust" if policies.adjust else "Drop",
        "late_seconds": late,
        "early_seconds": early,
        "out_of_order_seconds": tolerance,
        "judged": judged(metrics.combine(row.values for row in rows)),
        "late": total(row.find_count(LATE) for row in rows),
        "out_of_order": total(row.find_count("DroppedOrAdjustedEvents") for row in rows),
        "latest_seconds": _latest(profiles),
        "profiled": profiles.num_rows,
        "of": len(rows),
        "lateness": bins(LATENESS_BOUNDS, _sum(profiles["lateness"], len(LATENESS_BOUNDS) + 1)),
        "disorder": bins(DISORDER_BOUNDS, _sum(profiles["disorder"], len(DISORDER_BOUNDS) + 1)),
        "pushers": _pushers(profiles),
        "pictures": list(_pictures(source, compiled, policies, profiles, rows)),
    }


def _latest(profiles: pa.Table) -> float | None:
    """Return the largest lateness of a sampled event in seconds; every sample has its latest event."""
    events = _events(profiles)
    latest = pc.max(pc.subtract(events["arrival"], events["time"])).as_py()
    return None if latest is None else latest / TICKS_PER_SECOND


def _sum(lists: pa.ChunkedArray, length: int) -> list[int]:
    """Return the sums of lists of numbers, position by position."""
    if not len(lists):
        return [0] * length
    flat: np.ndarray[Any, Any] = lists.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return [int(total) for total in flat.reshape(-1, length).sum(axis=0)]


def bins(bounds: Sequence[int], counts: Sequence[int]) -> list[dict[str, Any]]:
    """Return the bins of a histogram in seconds, above the lower and up to the upper bound; None is no bound."""
    lower, upper = [None, *bounds], [*bounds, None]
    return [
        {"above": above, "up_to": up_to, "events": events}
        for above, up_to, events in zip(lower, upper, counts, strict=True)
    ]


def _events(profiles: pa.Table) -> pa.Table:
    """Return the sampled events of profiles, each with the partition and the start of its slice."""
    sample = profiles["sample"].combine_chunks()
    parents = pc.list_parent_indices(sample)
    events = pa.Table.from_struct_array(pc.list_flatten(sample))
    for name in ("partition", "slice_start"):
        events = events.append_column(name, profiles[name].combine_chunks().take(parents))
    return events


def _pushers(profiles: pa.Table) -> list[dict[str, Any]]:
    """Return the processed events whose System.Timestamp is furthest ahead of their arrival.

    There is one of each OVER key; without OVER, one of each partition and slice.
    """
    events = _events(profiles)
    events = events.filter(pc.is_valid(events["body"]))
    lead = pc.subtract(events["system_timestamp"], events["arrival"])
    events = events.append_column("lead", lead).sort_by([("lead", "descending"), ("arrival", "ascending")])
    pushers: dict[Any, dict[str, Any]] = {}
    for event in events.slice(0, 50 * MAX_PUSHERS).to_pylist():
        number = event["sequence_number"] if event["sequence_number"] is not None else event["place"]
        pushers.setdefault(
            event["key"] if event["key"] is not None else (event["partition"], event["slice_start"]),
            {
                "seconds": event["lead"] / TICKS_PER_SECOND,
                "partition": event["partition"],
                "slice_start": ticks.to_text(event["slice_start"]),
                "key": event["key"],
                "blob": event["blob"],
                "number": number,
                "time": ticks.to_text(event["system_timestamp"]),
                "arrival": ticks.to_text(event["arrival"]),
                "body": text_of(event["body"]),
            },
        )
    return list(pushers.values())[:MAX_PUSHERS]


def _pictures(
    source: Source, compiled: CompiledInput, policies: Policies, profiles: pa.Table, rows: Sequence[PartitionMetrics]
) -> Iterator[dict[str, Any]]:
    """Yield the pictures of the slices and partitions with most events not on time, or else of the busiest one."""
    by_blob = source.pipeline.section(compiled.alias).arrival_time is ArrivalTime.BLOB_LAST_MODIFIED
    sampled = profiles.filter(pc.greater(pc.list_value_length(profiles["sample"]), 0))
    starts = map(ticks.to_text, sampled["slice_start"].to_pylist())
    partitions = sampled["partition"].to_pylist()
    places = {place: number for number, place in enumerate(zip(partitions, starts, strict=True))}
    with_sample = [row for row in rows if (row.partition, row.slice_start) in places]
    with_sample.sort(
        key=lambda row: (-not_on_time(row), -(row.find_count("InputEvents") or 0), row.slice_start, row.partition)
    )
    worth = [row for row in with_sample if not_on_time(row)] or with_sample[:1]
    left = MAX_PICTURES
    for row in _of_distinct_partitions(worth):
        sample = sampled["sample"][places[row.partition, row.slice_start]].as_py()
        for key in _keys(sample) if compiled.over else (None,):
            events = [event for event in sample if key is None or event["key"] == key]
            drawing = picture(events, policies, by_blob=by_blob)
            if drawing is not None:
                yield {
                    "input": compiled.alias,
                    "partition": row.partition,
                    "slice_start": row.slice_start,
                    "key": key,
                    "sampled": len(events),
                    "counts": {name: row.find_count(name) for name in ("InputEvents", "DuplicateEvents", *VERDICTS)},
                    **drawing.to_dict(),
                }
                left -= 1
                if not left:
                    return


def _of_distinct_partitions(rows: Sequence[PartitionMetrics]) -> list[PartitionMetrics]:
    """Return the first row of each partition, then the other rows."""
    first = {row.partition: row for row in reversed(rows)}
    chosen = list(first.values())
    return [*reversed(chosen), *(row for row in rows if not any(row is other for other in chosen))]


def _keys(sample: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Return None for all keys together, and the OVER key with most events that the policies moved, if there is one."""
    moved = Counter(event["key"] for event in sample if event["verdict"].startswith(("late", "out_of_order")))
    counts = Counter(event["key"] for event in sample if event["time"] is not None)
    worst = max(moved, key=lambda key: (moved[key], counts[key], key), default=None)
    return [None, worst] if worst is not None and counts[worst] >= _FEWEST_EVENTS and len(counts) > 1 else [None]


def label(bin_: Mapping[str, Any]) -> str:
    """Return the label of a bin of a histogram."""
    if bin_["up_to"] is None:
        return f"> {duration(bin_['above'])}"
    if bin_["above"] is None:
        return f"≤ {duration(bin_['up_to'])}"
    return f"to {duration(bin_['up_to'])}"
