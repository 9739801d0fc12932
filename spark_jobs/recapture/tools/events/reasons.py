"""Why an event has its verdict, as a sentence with the numbers behind it (docs/time-model.md, section 2)."""

from collections.abc import Iterator
from dataclasses import dataclass

from recapture.time_model.policies import Policies
from recapture.time_model.ticks import TICKS_PER_SECOND

_UNITS = (("d", 86_400), ("h", 3600), ("min", 60))


def exact_duration(ticks: int) -> str:
    """Return a duration in all its units, to the tick, such as "12 min 4.5 s"."""
    seconds, fraction = divmod(abs(ticks), TICKS_PER_SECOND)
    parts = []
    for unit, size in _UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {unit}")
    if seconds or fraction or not parts:
        parts.append(f"{seconds}.{fraction:07}".rstrip("0").rstrip(".") + " s")
    return ("\N{MINUS SIGN}" if ticks < 0 else "") + " ".join(parts)


@dataclass(frozen=True)
class Judgement:
    """What the policies found of one event."""

    early: bool
    late: bool
    behind: int | None
    """How far it was below the largest System.Timestamp of its scope, in ticks; None if it was not out of order."""


def reason(policies: Policies, ahead: int, judgement: Judgement) -> str | None:
    """Return why the policies adjusted or dropped an event; None if it is on time.

    `ahead` is how far its application time is after its arrival, in ticks; negative if it is before.
    """
    return "; then ".join(_reasons(policies, ahead, judgement)) or None


def _reasons(policies: Policies, ahead: int, judgement: Judgement) -> Iterator[str]:
    if judgement.early and policies.early_window is not None:
        yield f"its time is {exact_duration(ahead)} after its arrival, {_more(policies.early_window, 'early window')}"
    elif judgement.late and policies.late_tolerance is not None:
        yield f"it arrived {exact_duration(-ahead)} after its time, {_more(policies.late_tolerance, 'late tolerance')}"
    if judgement.behind is not None:
        tolerance = _more(policies.out_of_order_tolerance, "out-of-order tolerance")
        time = "adjusted time" if judgement.early or judgement.late else "time"
        yield f"its {time} is {exact_duration(judgement.behind)} before the largest one so far, {tolerance}"


def _more(limit: int, name: str) -> str:
    return f"more than the {name} of {exact_duration(limit)}"
