"""The verdict of a report: can these slices be trusted; if not, why; and what to change."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from recapture.pages.page import duration, share
from recapture.process.wording import counted, named_slices
from recapture.quality.metrics import UNUSABLE
from recapture.run.outdated import UNKNOWN
from recapture.run.slice_state import State
from recapture.time_model.metrics import VERDICTS, total
from recapture.tools.reports.ledger import LATE, judged

_NAMED_KEYS = 3
"""Number of keys that an advice names."""
_MOSTLY = 0.9
"""Share of events on time below which a report warns even if no check failed."""
_FEW = 0.001
"""Share of events that are late, or out of order, up to which a report does not mention tolerances."""


def verdict(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the level (good, warning or bad), a sentence, the reasons and the advice, from the other sections."""
    level, sentence = _run(document) if document["kind"] == "run" else _range(document)
    failed = [failure for failure in document["failures"]["failed"] if failure["severity"] != "info"]
    return {
        "level": level,
        "sentence": sentence,
        "events": _events(document["ledger"]["totals"]),
        "reasons": [failure["sentence"] for failure in failed],
        "advice": list(dict.fromkeys(_advice(document, failed))),
    }


def _run(document: Mapping[str, Any]) -> tuple[str, str]:
    quality, what = document["quality"], _what(document)
    if document["approvals"]:
        return "warning", f"Use {what} with care: the audit stopped the run, and {_approved(document)}"
    if quality == "failed":
        return "bad", f"Do not trust {what}: the audit stopped the run, and nothing was published."
    warnings = document["failures"]["counts"]["warning"]
    if document["staged"] and not document["published"]:
        passed = f"it passed its audit with {counted(warnings, 'warning')}" if warnings else "it passed its audit"
        return "warning", f"This run is staged: {passed}, and waits for a person who publishes or discards it."
    if not document["published"]:
        return "warning", (
            "No table holds this run: it passed its audit, but it was not published, or its slices were published by "
            "another run or rolled back since."
        )
    if quality == "passed with warnings":
        count = counted(warnings, "warning")
        return "warning", f"Use {what} with care: the audit gave {count}; the rows are published."
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
        with_warnings = f"; {warned:,} passed with warnings" if warned else ""
        return "bad", f"Do not trust all of this range: {bad}. {good}{with_warnings}."
    if slices["outdated"]:
        outdated = counted(slices["outdated"], "slice was", "slices were")
        how = ", or ".join(_outdated(document["standing"]["differing"]))
        return "warning", (
            f"Use this range with care: {outdated} computed or judged {how}. "
            f"{good} and {'is' if slices['passed'] == 1 else 'are'} not outdated."
        )
    if slices["cannot be checked"]:
        unchecked = counted(slices["cannot be checked"], "slice cannot be", "slices cannot be")
        return "warning", f"Use this range with care: {unchecked} compared with the archive any more. {good}."
    if document["ledger"]["totals"]["InputEvents"] is None:
        return "warning", f"Use this range with care: {good}, but the counts of some events are lost."
    if document["approvals"]:
        return "warning", f"Use this range with care: {good}; {_approved(document)}"
    if warned:
        return "warning", f"Use this range with care: {good}; {warned:,} passed with warnings."
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
    if slices[State.PROVISIONAL]:
        provisional = counted(slices[State.PROVISIONAL], "slice is", "slices are")
        yield f"{provisional} provisional, published before Capture had written everything"
    if slices["stale"]:
        stale = counted(slices["stale"], "slice is", "slices are")
        at = document["standing"]["checked"]["at"]
        yield f"{stale} stale, as blobs were added, modified or deleted since they were read (last check: {at})"
    for problem in document["standing"]["problems"]:
        yield f"{problem['table']} {problem['problem']} ({named_slices(problem['slices'])})"


def _outdated(differing: Collection[str]) -> Iterator[str]:
    """Yield how outdated slices were computed or judged; `differing` are parts of the definition."""
    known = [name for name in differing if name != UNKNOWN]
    if known:
        yield f"with another {' or '.join(known)} than the pipeline has now"
    if UNKNOWN in differing:
        yield "by an earlier version of Recapture, which did not record its definition"


def _looked_at(standing: Mapping[str, Any]) -> Iterator[str]:
    """Yield when the blobs of a range were compared with what was read, and which slices another engine computed."""
    if standing["covers"]:
        yield f"What these slices read was last compared with the archive at {standing['checked']['at']}."
    else:
        yield "The archive has not been compared with what all of these slices read: run recapture check."
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
    return f"{were}; {late - verdicts:,} of them count as out of order, because they were both."


def _advice(document: Mapping[str, Any], failed: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what to change, because of what failed or warned and of the other sections."""
    if any(failure["of_unusable"] for failure in failed):
        yield from _unusable(document["quarantine"]["reasons"])
    titles: dict[str, dict[str, None]] = {}
    for failure in sorted(failed, key=lambda failure: failure["cause"]):
        if failure["hint"]:
            titles.setdefault(failure["hint"], {})[failure["title"]] = None
    for hint, hint_reasons in titles.items():
        yield f"so that {', and '.join(hint_reasons)}: {hint}"
    if document["quality"] == "failed" and not document["approvals"]:
        yield "correct the data, the pipeline file or the suite, then run the slices again; the same input fails again"
    if document["staged"] and not document["published"]:
        yield from _decision(PurePath(document["definition"]["file"]).name, document["runs"][0]["run"])
    yield from document["warnings"]
    yield from _clocks(document)
    yield from _tolerances(document)
    if document["slices"][State.PROVISIONAL]:
        yield "when Capture has written the provisional slices, run recapture update, or backfill them again"
    if document["slices"]["stale"] or document["slices"]["outdated"]:
        yield "backfill the slices that are stale or outdated: see the table of slices that need attention"
    if document["standing"] is not None:
        yield from (problem["remedy"] for problem in document["standing"]["problems"])
    if document["slices"]["unpublished"] and document["kind"] == "range":
        yield f"backfill the unpublished slices, the first from {document['slices']['first_unpublished']}"


def _decision(file: str, run: str) -> Iterator[str]:
    """Yield how a person decides about a staged run."""
    yield f"to see what it would change, read What changed below, or run recapture diff {file} --against {run}"
    yield f"to publish it, approve it in Airflow, or run recapture publish {file} {run}"


def _clocks(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what to do about events that were dropped or adjusted because they were early."""
    totals = document["ledger"]["totals"]
    early = total((totals["early_dropped"], totals["early_adjusted"]))
    if not early:
        return
    done = " or ".join(name for name in ("dropped", "adjusted") if totals[f"early_{name}"])
    named = ", ".join(f"{row['key']} ({row['count']:,})" for row in _most(document, "early"))
    named = f", such as {named}" if named else ""
    events, times = counted(early, "event was", "events were"), "its time is" if early == 1 else "their times are"
    yield f"{events} {done}, because {times} too far ahead of the arrival: correct the clocks of the devices{named}"


def _most(document: Mapping[str, Any], trouble: str) -> list[Mapping[str, Any]]:
    """Return the keys with the most events in a kind of trouble, and their counts."""
    rows = [
        row
        for input_keys in document["keys"]
        for trouble_keys in input_keys["troubles"]
        for row in trouble_keys["keys"]
        if trouble_keys["name"] == trouble and row["key"] is not None
    ]
    return sorted(rows, key=lambda row: -row["count"])[:_NAMED_KEYS]


def _unusable(reasons: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the most frequent reason why events are quarantined; `reasons` are those of the quarantine."""
    for reason in reasons[:1]:
        events = counted(reason["rows"], "event is", "events are")
        named = reason["verdict"].replace("_", " ")
        yield f"{events} quarantined as {named} ({reason['reason']}): correct CREATE TABLE, the query, or the sender"


def _tolerances(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many events are late or out of order, if they are not few, and which command compares tolerances.

    How many events other tolerances would keep on time, together, only the archive tells.
    """
    for timing in document["timing"]:
        events, late, behind = timing["judged"], timing["late"], timing["out_of_order"]
        if not events or late is None or behind is None or max(late, behind) <= _FEW * events:
            continue
        place = f" of {timing['alias']}" if len(document["timing"]) > 1 else ""
        latest = timing["latest_seconds"]
        by = f" (the latest by {duration(latest)})" if latest is not None else ""
        counts = ((late, f"late{by}"), (behind, "out of order"))
        were = " and ".join(f"{counted(count, 'was', 'were')} {what}" for count, what in counts if count)
        file = PurePath(document["definition"]["file"]).name
        yield (
            f"of the events{place}, {were}: to count how many would be on time with other tolerances, "
            f"or with another key after OVER, run recapture advise {file} --from {document['from']} --to "
            f"{document['to']}"
        )
