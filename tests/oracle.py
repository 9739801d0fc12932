"""The time model of docs/time-model.md, written plainly: one event at a time, with dictionaries and Python ints.

The tests compare the fast path with this file, so the two share no code. Instants and durations are ticks of 100 ns;
instants count from 0001-01-01T00:00Z.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tests import oracle_windows

VERDICTS = (
    "on_time",
    "early_dropped",
    "late_adjusted",
    "late_dropped",
    "out_of_order_adjusted",
    "out_of_order_dropped",
    "invalid_timestamp",
    "malformed",
)

METRICS = (
    *("InputEvents", "DeserializationError", "InvalidInputTimeStamp", "EarlyInputEvents"),
    *("LateInputEvents", "DroppedOrAdjustedEvents", *VERDICTS),
)
"""ASA's metrics of events, and the counts of the verdicts."""

Scope = tuple[str, tuple[Any, ...] | None]


@dataclass(frozen=True)
class Policy:
    """The policies of one job. `late` is None without a limit; `early` is None without an early window."""

    out_of_order: int
    late: int | None
    early: int | None
    action: Literal["Adjust", "Drop"] = "Adjust"


@dataclass(frozen=True)
class Event:
    """One event. `time` is None if TIMESTAMP BY is missing or not a time; `over` is None if the query has no OVER.

    A NULL in the OVER key is a None inside the tuple.
    """

    partition: str
    arrival: int
    sequence: int
    time: int | None
    over: tuple[Any, ...] | None = None
    malformed: bool = False
    payload: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What the policies did to one event.

    `system_timestamp` is None if the event was not processed. `late` and `out_of_order` say which tests it failed,
    whatever its verdict. `watermark_after` is the watermark of the event's scope. It is None while the scope has
    processed nothing, and for an event that never reached a scope.
    """

    event: Event
    verdict: str
    system_timestamp: int | None = None
    late: bool = False
    out_of_order: bool = False
    watermark_after: int | None = None


Implementation = Callable[[Sequence[Event], Policy], list[tuple[str, int | None]]]
"""Verdict and System.Timestamp of each event: what the oracle and the fast path have in common."""


def process(events: Sequence[Event], policy: Policy, timestamp_by: bool = True) -> list[Outcome]:
    """Judge every event in arrival order (docs/time-model.md, section 2).

    The events may be given in any order; the n-th outcome belongs to the n-th event.
    """
    largest: dict[Scope, int] = {}
    outcomes: dict[int, Outcome] = {}
    for n in sorted(range(len(events)), key=lambda n: (events[n].arrival, events[n].sequence)):
        outcomes[n] = judge_event(events[n], policy, timestamp_by, largest)
    return [outcomes[n] for n in range(len(events))]


def judge_event(event: Event, policy: Policy, timestamp_by: bool, largest: dict[Scope, int]) -> Outcome:
    """Judge the next event in arrival order. `largest` holds the largest time of each scope; it is updated."""
    if event.malformed:
        return Outcome(event, "malformed")
    if not timestamp_by:
        return Outcome(event, "on_time", event.arrival)
    if event.time is None:
        return Outcome(event, "invalid_timestamp")
    if event.over is not None and any(part is None for part in event.over):
        return Outcome(event, "invalid_timestamp")

    scope = (event.partition, event.over)
    watermark = largest[scope] - policy.out_of_order if scope in largest else None
    t = event.time
    verdict = "on_time"

    if policy.early is not None and t - event.arrival > policy.early:
        return Outcome(event, "early_dropped", watermark_after=watermark)

    late = policy.late is not None and event.arrival - t > policy.late
    if late:
        if policy.action == "Drop":
            return Outcome(event, "late_dropped", late=True, watermark_after=watermark)
        assert policy.late is not None
        t = event.arrival - policy.late
        verdict = "late_adjusted"

    out_of_order = watermark is not None and t < watermark
    if out_of_order:
        if policy.action == "Drop":
            return Outcome(event, "out_of_order_dropped", late=late, out_of_order=True, watermark_after=watermark)
        assert watermark is not None
        t = watermark
        verdict = "out_of_order_adjusted"

    if scope not in largest or t > largest[scope]:
        largest[scope] = t
    return Outcome(event, verdict, t, late, out_of_order, largest[scope] - policy.out_of_order)


def windows(
    outcomes: Iterable[Outcome], window: oracle_windows.Window, keys: Sequence[str], start: int, end: int
) -> list[oracle_windows.Content]:
    """Return the windows of the processed events that end in (start, end] (docs/time-model.md, section 4)."""
    placed = [
        oracle_windows.Event(outcome.system_timestamp, outcome.event.payload)
        for outcome in outcomes
        if outcome.system_timestamp is not None
    ]
    return oracle_windows.ending_in(oracle_windows.contents(placed, window, keys), start, end)


def slice_metrics(outcomes: Iterable[Outcome], start: int, end: int) -> dict[str, dict[str, int]]:
    """Return ASA's metrics and the counts of the verdicts, per partition, for the events that arrived in (start, end].

    See docs/time-model.md, section 5. Bytes and sources are not counted here: only the blobs know them.
    """
    counts: dict[str, dict[str, int]] = {}
    for outcome in outcomes:
        if not start < outcome.event.arrival <= end:
            continue
        row = counts.setdefault(outcome.event.partition, dict.fromkeys(METRICS, 0))
        row["InputEvents"] += 1
        row["DeserializationError"] += outcome.verdict == "malformed"
        row["InvalidInputTimeStamp"] += outcome.verdict == "invalid_timestamp"
        row["EarlyInputEvents"] += outcome.verdict == "early_dropped"
        row["LateInputEvents"] += outcome.late
        row["DroppedOrAdjustedEvents"] += outcome.out_of_order
        row[outcome.verdict] += 1
    return counts
