"""The verdict of a report: can these slices be trusted; if not, why; and what to change."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recapture.pages.page import duration, share
from recapture.quality.metrics import UNUSABLE
from recapture.reports.ledger import LATE, judged
from recapture.reports.timing import needed_seconds
from recapture.time_model.metrics import VERDICTS, total
from recapture.wording import counted

_MOSTLY = 0.9
"""Share of events on time below which a report warns even if no check failed."""
_ALL_BUT_FEW = 0.999
"""Share of events that are not late, or not out of order, with a proposed tolerance."""
LARGEST_LATE = 1_814_399
"""Largest late tolerance in seconds that ASA takes."""
LARGEST_OUT_OF_ORDER = 599
"""Largest out-of-order tolerance in seconds that ASA takes."""


def verdict(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the level (good, warning or bad), a sentence, the reasons and the advice, from the other sections."""
    level, sentence = _run(document) if document["kind"] == "run" else _range(document)
    return {
        "level": level,
        "sentence": sentence,
        "events": _events(document["ledger"]["totals"]),
        "reasons": _reasons(document),
        "advice": list(dict.fromkeys(_advice(document))),
    }


def _run(document: Mapping[str, Any]) -> tuple[str, str]:
    quality, what = document["quality"], _what(document)
    if document["approvals"]:
        return "warning", f"Use {what} with care: the audit stopped the run, and {_approved(document)}"
    if quality == "failed":
        return "bad", f"Do not trust {what}: the audit stopped the run, and nothing was published."
    if not document["published"]:
        return "warning", (
            "No table holds this run: it passed its audit, but it was not published, or its slices were published by "
            "another run or rolled back since."
        )
    warnings = sum(failure["severity"] == "warning" for failure in document["failures"]["failed"])
    if quality == "passed with warnings":
        return "warning", f"You can use {what} with care: published with {counted(warnings, 'warning')}."
    few = _few_on_time(document)
    checks = "every check that could be judged" if document["failures"]["unjudged"] else "every check"
    if few:
        return "warning", f"Use {what} with care: {checks} passed and the rows are published, but {few}."
    return "good", f"You can trust {what}: {checks} passed, and the rows are published."


def _range(document: Mapping[str, Any]) -> tuple[str, str]:
    slices = document["slices"]
    total, warned = slices["total"], slices["passed with warnings"]
    good = f"{slices['passed']:,} of {counted(total, 'slice')} passed every check"
    bad = "; ".join(_not_to_be_trusted(document))
    if bad:
        with_warnings = f", {warned:,} with warnings" if warned else ""
        return "bad", f"Do not trust all of this range: {bad}. {good}{with_warnings}."
    if slices["outdated"]:
        outdated = counted(slices["outdated"], "slice was", "slices were")
        what = " and ".join(document["standing"]["differing"])
        return "warning", (
            f"Use this range with care: {outdated} computed or judged with another {what} than the pipeline has now. "
            f"{good} and {'is' if slices['passed'] == 1 else 'are'} not outdated."
        )
    if document["approvals"]:
        return "warning", f"Use this range with care: {good}; {_approved(document)}"
    if warned:
        return "warning", f"You can use this range with care: {good}, {warned:,} with warnings."
    few = _few_on_time(document)
    if few:
        return "warning", f"Use this range with care: {good}, but {few}."
    return "good", f"You can trust this range: {good}. {' '.join(_looked_at(document['standing']))}"


def _not_to_be_trusted(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield why slices of a range cannot be trusted."""
    slices = document["slices"]
    if slices["unpublished"]:
        yield f"{counted(slices['unpublished'], 'slice is', 'slices are')} not published"
    if slices["blocked"]:
        yield f"the audit stopped the last run of {counted(slices['blocked'], 'slice')}"
    if slices["stale"]:
        stale = counted(slices["stale"], "slice is", "slices are")
        at = document["standing"]["checked"]["at"]
        yield f"{stale} stale, as blobs were added, modified or deleted since they were read (last check: {at})"


def _looked_at(standing: Mapping[str, Any]) -> Iterator[str]:
    """Yield when the blobs of a range were compared with what was read, and which slices another engine computed."""
    if standing["covers"]:
        yield f"Their blobs were last compared with what was read at {standing['checked']['at']}."
    else:
        yield "No check has compared all of their blobs with what was read: run recapture check to do so."
    if standing["other_engine"]:
        slices = counted(standing["other_engine"], "slice was", "slices were")
        yield f"{slices} computed by another version of Recapture."


def _approved(document: Mapping[str, Any]) -> str:
    """Return who approved slices although the audit stopped their run, and why."""
    approval, more = document["approvals"][0], len(document["approvals"]) - 1
    others = f" There are {counted(more, 'more approval')}." if more else ""
    slices = counted(approval["slices"], "slice")
    return f"{approval['by']} approved {slices} on {approval['at']}: {approval['reason']}{others}"


def _few_on_time(document: Mapping[str, Any]) -> str | None:
    """Return the clause that says how few events are on time; None if most are."""
    totals = document["ledger"]["totals"]
    on_time, events = totals["on_time"], judged(totals)
    if on_time is None or events is None or on_time >= _MOSTLY * events:
        return None
    return f"only {share(on_time, events)} of the events are on time"


def _what(document: Mapping[str, Any]) -> str:
    count = document["slices"]["total"]
    hours = document["slice_hours"]
    if count > 1:
        return f"these {counted(count, 'slice')}"
    return "this hour" if hours == 1 else "this day" if hours == 24 else f"these {hours} hours"


def _events(totals: Mapping[str, Any]) -> str:
    arrived, duplicates, events = totals["InputEvents"], totals["DuplicateEvents"], judged(totals)
    if arrived is None or events is None:
        return "The events that arrived were not counted."
    if not arrived:
        return "No event arrived."
    adjusted = total(totals[name] for name in VERDICTS if name.endswith("adjusted"))
    dropped = total(totals[name] for name in VERDICTS if name.endswith("dropped"))
    unusable = total(totals[name] for name in UNUSABLE)
    parts = [f"{share(totals['on_time'], events)} on time"]
    for count, text in ((adjusted, "adjusted"), (dropped, "dropped"), (unusable, "quarantined")):
        if count:
            parts.append(f"{count:,} {text} ({share(count, events)})")
    those = f", {duplicates:,} of them duplicates. The other {events:,}" if duplicates else ""
    return f"{counted(arrived, 'event')} arrived{those}: {', '.join(parts)}.{_late(totals, events)}"


def _late(totals: Mapping[str, Any], events: int) -> str:
    """Return the sentence about late events that have another verdict; nothing if there are none."""
    late, verdicts = totals[LATE], total(totals[name] for name in ("late_adjusted", "late_dropped"))
    if late is None or verdicts is None or late == verdicts:
        return ""
    were = f" {counted(late, 'event was', 'events were')} late ({share(late, events)})"
    return f"{were}; of these, {late - verdicts:,} count as out of order, because they were that, too."


def _reasons(document: Mapping[str, Any]) -> list[str]:
    """Return the sentences of what failed or warned; only notes are left out."""
    return [
        failure["sentence"]
        for failure in document["failures"]["failed"]
        if failure["severity"] in ("critical", "warning")
    ]


def _advice(document: Mapping[str, Any]) -> Iterator[str]:
    for failure in document["failures"]["failed"]:
        if failure["hint"] and failure["severity"] != "info":
            yield f"{failure['title']}: {failure['hint']}"
    if document["quality"] == "failed" and not document["approvals"]:
        yield "correct the data, the pipeline file or the suite, then run the slices again; the same input fails again"
    yield from document["warnings"]
    yield from _clocks(document)
    for of_input in document["timing"]:
        yield from _tolerances(of_input, len(document["timing"]) > 1)
    if document["kind"] == "range":
        yield from _disorder(document)
    if document["slices"]["stale"] or document["slices"]["outdated"]:
        yield "backfill the slices that are stale or outdated: see the table of slices that need attention"
    if document["slices"]["unpublished"] and document["kind"] == "range":
        yield f"backfill the unpublished slices, the first from {document['slices']['first_unpublished']}"


def _clocks(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what to do about events that were dropped or adjusted because they were early."""
    totals = document["ledger"]["totals"]
    early = total((totals["early_dropped"], totals["early_adjusted"]))
    if not early:
        return
    done = " and ".join(name for name in ("dropped", "adjusted") if totals[f"early_{name}"])
    keys = [key for of_input in document["timing"] for key in of_input["early_keys"]]
    named = f", such as those of {', '.join(keys)}" if keys else ""
    events = counted(early, "event is", "events are")
    yield f"{events} too far ahead of the arrival and {done}: correct the clocks of the devices{named}"


def _disorder(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what to do about many events that are out of order; the report of a run has a warning about them."""
    totals = document["ledger"]["totals"]
    events, behind = judged(totals), total((totals["out_of_order_adjusted"], totals["out_of_order_dropped"]))
    if (
        events
        and behind
        and behind > (1 - _MOSTLY) * events
        and not all(of_input["over"] for of_input in document["timing"])
    ):
        yield (
            f"{share(behind, events)} of the events are out of order: if clocks run ahead, TIMESTAMP BY … OVER a "
            "device's key gives every device a watermark of its own"
        )


def _tolerances(of_input: Mapping[str, Any], name_input: bool) -> Iterator[str]:
    """Yield the tolerances with which nearly no event is late or out of order, if the present ones are smaller."""
    place = f" ({of_input['alias']})" if name_input else ""
    needed, now = _needed(of_input["lateness"], of_input["late_seconds"], LARGEST_LATE)
    if needed is not None:
        yield (
            f"eventsLateArrivalMaxDelayInSeconds{place} is {now:.0f}: with {needed}, {_ALL_BUT_FEW:.1%} of the events "
            f"would not be late, and a slice would be complete {duration(needed - now)} later"
        )
    needed, now = _needed(of_input["disorder"], of_input["out_of_order_seconds"], LARGEST_OUT_OF_ORDER)
    if needed is not None:
        yield (
            f"eventsOutOfOrderMaxDelayInSeconds{place} is {now:.0f}: with {needed}, {_ALL_BUT_FEW:.1%} of the events "
            "would not be out of order"
        )


def _needed(bins: Sequence[Mapping[str, Any]], now: float | None, largest: int) -> tuple[int | None, float]:
    """Return the tolerance that nearly all events need, or None if it is not above the present one, and that one."""
    needed = needed_seconds(bins, _ALL_BUT_FEW)
    if now is None or needed is None or not now < needed <= largest:
        return None, now or 0
    return needed, now
