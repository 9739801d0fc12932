"""Who was late, dropped or malformed: the events of a report by the key of OVER, or the one that groups."""

from collections import Counter
from typing import Any

from recapture.time_model.partition_metrics import KeyMetrics
from recapture.time_model.verdicts import TROUBLES
from recapture.tools.reports.sources import Source

MAX_KEYS = 10
"""Largest number of keys that are shown of each kind of trouble."""


def keys(source: Source) -> list[dict[str, Any]]:
    """Return the keys with the most events in each kind of trouble, by input: sums of what was kept of each slice."""
    by_input: dict[str, list[KeyMetrics]] = {}
    for row in source.metrics:
        if row.keys:
            by_input.setdefault(row.input, []).append(row.keys)
    return [_of_input(alias, slices) for alias, slices in by_input.items()]


def _of_input(alias: str, slices: list[KeyMetrics]) -> dict[str, Any]:
    troubles = []
    for name in TROUBLES:
        events, troubled = Counter[str | None](), Counter[str | None]()
        for slice_keys in slices:
            for most in slice_keys.most[name]:
                troubled[most.key] += most.counts[name]
                events[most.key] += most.counts["events"]
        largest = sorted(troubled.items(), key=lambda item: (-item[1], str(item[0])))[:MAX_KEYS]
        if largest:
            rows = [{"key": key, "count": count, "events": events[key]} for key, count in largest]
            troubles.append({"name": name, "keys": rows, "others": max(len(troubled) - MAX_KEYS, 0)})
    gone: Counter[str | None] = Counter()
    for slice_keys in slices:
        gone.update({unreached.key: unreached.counts["events"] for unreached in slice_keys.unreached})
    return {
        "alias": alias,
        "columns": slices[0].columns,
        "troubles": troubles,
        "unreached": [{"key": key, "events": events} for key, events in gone.most_common(MAX_KEYS)],
    }
