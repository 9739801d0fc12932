"""The built-in checks on slices: the events of a slice can be used, reach the query and become rows.

Expectations cannot check this. They judge rows, and such a slice may have none.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from recapture.pages.page import share
from recapture.printable import one_line
from recapture.process import wording
from recapture.process.wording import counted
from recapture.quality.audit import TITLES, Result, slice_result
from recapture.quality.metrics import UNUSABLE
from recapture.quality.suites import SEVERITIES, Check, Severity
from recapture.time_model import verdicts

CRITICAL_UNUSABLE_SHARE = 0.9
"""Share of unusable events in a slice above which the check is critical, unless a suite sets another severity."""
WARNING_UNUSABLE_SHARE = 0.01
"""Share of unusable events in a slice above which the check warns, unless a suite sets another severity."""
CRITICAL_EVENTS_WITHOUT_ROWS = 100
"""Smallest number of events read in a slice for which having no rows is critical, if windows end in every slice."""
PROCESSED = tuple(verdict.label for verdict in verdicts.PROCESSED)
"""Verdicts of events that the query read."""
DROPPED = ("late_dropped", "early_dropped", "out_of_order_dropped")
"""Verdicts of events that the policies dropped."""
COUNTS = ("InputEvents", "DuplicateEvents", *UNUSABLE, *PROCESSED, *DROPPED)
"""Counts of an input that the checks need."""
_FAILURES: Mapping[Check, str] = {
    "events_can_be_used": "events cannot be used (at most 1 % expected)",
    "events_reach_the_query": "no event reaches the query",
    "query_returns_rows": "the query returns no rows for the events that it reads",
}
_FIELDS_SHOWN = 12
_NAME_LENGTH = 60
"""Largest number of characters that are shown of a field's name."""
_NO_ROWS = (
    "check WHERE and HAVING and the field names in them; if the output may have no rows, set "
    "quality.expect_rows to false"
)


@dataclass(frozen=True)
class InputCounts:
    """Counts of the events of an input that arrived in a slice."""

    alias: str
    counts: Mapping[str, int]
    """The counts that COUNTS names (docs/time-model.md, section 5), over all partitions."""

    @property
    def events(self) -> int:
        """Number of events that arrived, without duplicates."""
        return self.counts["InputEvents"] - self.counts["DuplicateEvents"]

    @property
    def unusable(self) -> int:
        """Number of events that no query can read."""
        return sum(self.counts[name] for name in UNUSABLE)

    @property
    def processed(self) -> int:
        """Number of events that the query read."""
        return sum(self.counts[name] for name in PROCESSED)

    @property
    def dropped(self) -> int:
        """Number of events that the policies dropped."""
        return sum(self.counts[name] for name in DROPPED)

    @property
    def unusable_share(self) -> float:
        """Share of the events that no query can read, 0 to 1."""
        return self.unusable / self.events if self.events else 0.0


@dataclass(frozen=True)
class SliceCounts:
    """Counts of the events that arrived in a slice, and of the rows that the slice has."""

    start: str
    """Start of the slice, ISO 8601."""
    inputs: Sequence[InputCounts]
    rows: Mapping[str, int]
    """Number of rows by the alias of the output."""

    @property
    def events(self) -> int:
        """Number of events that arrived, without duplicates."""
        return sum(input_counts.events for input_counts in self.inputs)

    @property
    def processed(self) -> int:
        """Number of events that the query read."""
        return sum(input_counts.processed for input_counts in self.inputs)

    @property
    def least_usable(self) -> InputCounts:
        """Input with the largest share of unusable events."""
        return max(self.inputs, key=lambda input_counts: input_counts.unusable_share)

    @property
    def unreached(self) -> InputCounts | None:
        """First input whose usable events were all dropped by the policies; None if there is none."""
        return next(
            (input_counts for input_counts in self.inputs if input_counts.dropped and not input_counts.processed), None
        )


@dataclass(frozen=True)
class Example:
    """A quarantined event: its verdict, the reason and its body."""

    verdict: str
    reason: str
    body: bytes | None
    """Bytes of the body; None if the archive has none for the event."""
    read_as: str | None = None
    """Settings of the input by which its bodies are read, such as "body_format Avro"; None for plain JSON."""


def results(
    slices: Sequence[SliceCounts],
    example: Callable[[str, str], Example | None],
    severities: Mapping[str, Mapping[Check, Severity]],
    windows_end_in_every_slice: bool = True,
    without_rows_allowed: Collection[str] = (),
) -> list[Result]:
    """Return the results of the built-in checks; query_returns_rows has one for each output that should have rows.

    `example` takes the start of a slice and the alias of an input, and returns one of their quarantined events, or None
    if there is none. `severities` has the severities that the suites of the outputs set, by the alias of the output.
    The outputs in `without_rows_allowed`, such as alerts, may have no rows.
    """
    with_events = [slice_ for slice_ in slices if slice_.events]
    worst = max(with_events, key=lambda slice_: slice_.least_usable.unusable_share, default=None)
    unusable = [slice_ for slice_ in with_events if slice_.least_usable.unusable_share > WARNING_UNUSABLE_SHARE]
    is_critical = worst is not None and worst.least_usable.unusable_share > CRITICAL_UNUSABLE_SHARE
    why = ""
    if unusable and worst:
        event = example(worst.start, worst.least_usable.alias)
        why = f"{_unusable_text(worst)}{f': {explanation(event)}' if event else ''}"
    severity = strictest(severities, "events_can_be_used") or ("critical" if is_critical else "warning")
    checks = [_result("events_can_be_used", "slices", severity, with_events, unusable, why)]
    unreached = [slice_ for slice_ in with_events if slice_.unreached]
    why = next((_drops_text(slice_, slice_.unreached) for slice_ in unreached if slice_.unreached), "")
    severity = strictest(severities, "events_reach_the_query") or "critical"
    checks.append(_result("events_reach_the_query", "slices", severity, with_events, unreached, why))
    processed = [slice_ for slice_ in with_events if slice_.processed]
    for alias in slices[0].rows if slices else ():
        if alias in without_rows_allowed:
            continue
        without_rows = [slice_ for slice_ in processed if not slice_.rows[alias]]
        busiest = max(without_rows, key=lambda slice_: slice_.processed, default=None)
        why = ""
        if busiest:
            events = counted(busiest.processed, "event")
            why = f"slice {busiest.start} has no rows, although the query read {events}: {_NO_ROWS}"
        many_events = busiest is not None and busiest.processed >= CRITICAL_EVENTS_WITHOUT_ROWS
        is_critical = many_events and windows_end_in_every_slice
        default: Severity = "critical" if is_critical else "warning"
        severity = severities.get(alias, {}).get("query_returns_rows", default)
        checks.append(_result("query_returns_rows", alias, severity, processed, without_rows, why))
    return checks


def strictest(severities: Mapping[str, Mapping[Check, Severity]], check: Check) -> Severity | None:
    """Return the strictest severity that a suite sets for a check of events, which belong to all outputs; or None."""
    stated = [by_check[check] for by_check in severities.values() if check in by_check]
    return min(stated, key=SEVERITIES.index, default=None)


def explanation(example: Example) -> str:
    """Return the reason why an event could not be used, and what to change."""
    fields = _fields(example.body)
    has = f"its fields are {', '.join(fields)}" if fields else ""
    if example.verdict == "invalid_timestamp":
        unit = _epoch_advice(example.body)
        advice = [has, "correct the field of TIMESTAMP BY, which must be an ISO 8601 time"]
        return f"{example.reason}; " + "; ".join(filter(None, [*advice, unit]))
    if example.verdict == "malformed" and not fields:
        return f"{example.reason}; {_body_advice(example.body, example.read_as)}"
    return f"{example.reason}; " + "; ".join(filter(None, [has, "correct CREATE TABLE or the query's casts"]))


def _result(
    check: Check,
    judged: str,
    severity: Severity,
    slices: Sequence[SliceCounts],
    failed: Sequence[SliceCounts],
    why: str,
) -> Result:
    events = "events that the query read" if check == "query_returns_rows" else "events"
    of = f"{counted(len(slices), 'slice')} with {events}"
    if failed:
        sentence = f"{_FAILURES[check]}: {len(failed):,} of {of} ({share(len(failed), len(slices))}): {why}"
    else:
        true_for = f"true for {'all ' * (len(slices) > 1)}{of}"
        sentence = f"{TITLES[check]} ({true_for if slices else f'no {events}'})"
    return slice_result(check, severity, [slice_.start for slice_ in failed], sentence, judged=judged)


def _unusable_text(slice_: SliceCounts) -> str:
    worst = slice_.least_usable
    named = {"malformed": "malformed", "invalid_timestamp": "without a valid time"}
    parts = [f"{worst.counts[name]:,} {text}" for name, text in named.items() if worst.counts[name]]
    events = f"{counted(worst.events, 'event')} ({share(worst.unusable, worst.events)})"
    return f"in slice {_place(slice_, worst)}, {' and '.join(parts)} of {events}"


def _drops_text(slice_: SliceCounts, unreached: InputCounts) -> str:
    parts = [f"{unreached.counts[name]:,} {name}" for name in DROPPED if unreached.counts[name]]
    return (
        f"in slice {_place(slice_, unreached)}, the policies dropped all usable events "
        f"({', '.join(parts)} of {unreached.events:,}): raise the limit that drops them, or set its policy to Adjust"
    )


def _place(slice_: SliceCounts, input_counts: InputCounts) -> str:
    return f"{slice_.start}{wording.of_input(input_counts.alias if len(slice_.inputs) > 1 else None)}"


def _document(body: bytes | None) -> object:
    try:
        return None if body is None else json.loads(body)
    except (ValueError, RecursionError):
        return None


def _fields(body: bytes | None) -> list[str]:
    document = _document(body)
    return [_shown(name) for name in itertools.islice(document, _FIELDS_SHOWN)] if isinstance(document, dict) else []


def _shown(name: str) -> str:
    """Return the start of a field's name, which a sender chooses, in one line."""
    return one_line(name[:_NAME_LENGTH]) + "…" * (len(name) > _NAME_LENGTH)


def _epoch_advice(body: bytes | None) -> str:
    """Return advice for the first field that looks like a time as a number; empty if there is none."""
    document = _document(body)
    numbers = document.items() if isinstance(document, dict) else ()
    for name, value in numbers:
        if isinstance(value, int | float) and not isinstance(value, bool):
            for unit, scale in (("second", 1), ("millisecond", 1000)):
                if 10**9 * scale <= value < 4 * 10**9 * scale:
                    field = _shown(name)
                    return (
                        f"{field} looks like {unit}s since 1970: TIMESTAMP BY DATEADD({unit}, {field}, "
                        "'1970-01-01T00:00:00Z')"
                    )
    return ""


def _body_advice(body: bytes | None, read_as: str | None) -> str:
    """Return what a body that cannot be read looks like, and what to do; for `read_as` see `Example`."""
    if body is None:
        return "the event has no body: its sender must send bytes (AMQP data), because Capture keeps no other body"
    if not body:
        return "the body is empty: check the sender"
    start = body[:60].decode("utf-8", "backslashreplace")
    if read_as:
        return f"the input has {read_as}, and the body starts with {start!r}: check the sender, or correct the setting"
    if body.startswith(b"\x1f\x8b"):
        return "the body looks like gzip: set input.body_compression to GZip"
    if body.startswith(b"Obj\x01"):
        return "the body looks like an Avro file: set input.body_format to Avro"
    if body[:1] in (b"{", b"["):
        return f"the body starts like JSON but is not valid ({start!r}): check the sender"
    return (
        f"the body is not a JSON object (it starts with {start!r}): if the blobs are not those of Event Hubs Capture, "
        "try input.format IotHub, ServiceBus, Json or Csv; if the bodies are CSV, set input.body_format to Csv"
    )
