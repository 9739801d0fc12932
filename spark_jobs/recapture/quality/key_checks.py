"""The built-in checks on keys: the events of each key reach the query, and no key disappears from the rows."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from recapture.process.wording import counted, named_slices
from recapture.quality.audit import TITLES, Result, slice_result
from recapture.quality.suites import Check, Severity
from recapture.time_model.partition_metrics import PartitionMetrics
from recapture.time_model.verdicts import TROUBLES

_SHOWN = 5
"""Number of keys that a sentence names."""
_REMEDIES = {
    "early": "correct the clock, which is ahead",
    "late": "raise eventsLateArrivalMaxDelayInSeconds, or set eventsOutOfOrderPolicy to Adjust",
    "out_of_order": "raise eventsOutOfOrderMaxDelayInSeconds, or set eventsOutOfOrderPolicy to Adjust",
    "malformed": "see the reasons in the quarantine",
    "invalid_timestamp": "see the reasons in the quarantine",
}
"""What to do about a key all events of which were not processed, by what happened to most of them."""


@dataclass(frozen=True)
class VanishedKeys:
    """Keys that an output's slice lacks, although each of the slices right before it has them."""

    slice_start: str
    keys: tuple[str, ...]
    """The first of these keys, each as its parts, with commas between them."""
    count: int


def unreached_result(rows: Iterable[PartitionMetrics], severity: Severity | None) -> Result:
    """Return whether an event of every key was processed; the user sets `severity`, which is a warning by default."""
    check: Check = "events_of_every_key_reach_the_query"
    counts_by_key: dict[str, Counter[str]] = {}
    columns, count, judged, starts = "", 0, False, set()
    arrived = 0
    for row in rows:
        arrived += row.count("InputEvents")
        keys = row.keys
        judged |= keys is not None
        if keys is None or not keys.unreached:
            continue
        columns, count = ", ".join(keys.columns), count + keys.unreached_count
        starts.add(row.slice_start)
        for unreached in keys.unreached:
            counts = counts_by_key.setdefault(str(unreached.key), Counter())
            counts.update({name: unreached.counts[name] for name in ("events", *TROUBLES)})
    if not counts_by_key:
        why = "the query has no key of OVER or GROUP BY that is a column" if arrived else "no event arrived"
        said = TITLES[check] if judged else f"{TITLES[check]} (not judged: {why})"
        return slice_result(check, severity or "warning", (), said, proved=judged)
    largest = sorted(counts_by_key.items(), key=lambda item: (-item[1]["events"], item[0]))
    named = "; ".join(_sentence(key, counts) for key, counts in largest[:_SHOWN])
    in_all = counted(max(count, len(counts_by_key)), "key")
    more = f"; in all {in_all}, counted in each slice and partition" if len(counts_by_key) > _SHOWN else ""
    remedy = _REMEDIES[_main_trouble(largest[0][1])]
    said = f"no event of these keys ({columns}) reached the query: {named}{more}; {remedy}"
    return slice_result(check, severity or "warning", sorted(starts), said)


def vanished_result(
    alias: str, vanished: Sequence[VanishedKeys], severity: Severity | None, *, why_unjudged: str | None
) -> Result:
    """Return whether the rows of an output still have every key that the slices right before had.

    `severity` is what the user sets; by default it is a warning. `why_unjudged` says why no slice could be judged.
    """
    check: Check = "no_key_disappears"
    if not vanished:
        said = TITLES[check]
        said += "" if why_unjudged is None else f" (not judged: {why_unjudged})"
        return slice_result(check, severity or "warning", (), said, judged=alias, proved=why_unjudged is None)
    named = []
    for gone in vanished[:_SHOWN]:
        others = f" and {gone.count - _SHOWN:,} more" if gone.count > _SHOWN else ""
        named.append(f"{', '.join(gone.keys[:_SHOWN])}{others} in slice {gone.slice_start}")
    starts = [gone.slice_start for gone in vanished]
    more = f"; in all {named_slices(starts)}" if len(vanished) > _SHOWN else ""
    said = (
        f"keys have no rows, but had some in each of the three slices before: {'; '.join(named)}{more}; look for their "
        "events among the late, early and malformed ones, and in the archive"
    )
    return slice_result(check, severity or "warning", starts, said, judged=alias)


def _sentence(key: str, counts: Mapping[str, int]) -> str:
    trouble = _main_trouble(counts)
    words = trouble.replace("_", " ").replace("invalid timestamp", "without a valid time")
    events = counted(counts["events"], "event")
    return f"{key} ({events}, {'all' if counts[trouble] == counts['events'] else f'{counts[trouble]:,}'} {words})"


def _main_trouble(counts: Mapping[str, int]) -> str:
    return max(_REMEDIES, key=lambda name: counts[name])
