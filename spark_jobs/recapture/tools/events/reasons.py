"""Why an event has its verdict, as a sentence with the numbers behind it (docs/time-model.md, section 2)."""

from collections.abc import Iterator

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


def reason(policies: Policies, arrival: int, time: int, largest_time: int | None) -> str | None:
    """Return why the policies adjusted or dropped an event; None if it is on time.

    `time` is its application time, and `largest_time` the largest System.Timestamp of its scope after it, or None if
    it did not reach the disorder stage; all in ticks.
    """
    return "; then ".join(_reasons(policies, arrival, time, largest_time)) or None


def _reasons(policies: Policies, arrival: int, time: int, largest_time: int | None) -> Iterator[str]:
    early, late = policies.early_window, policies.late_tolerance
    system = time
    if early is not None and time - arrival > early:
        system = arrival + early
        yield f"its time is {exact_duration(time - arrival)} after its arrival, {_more(early, 'early window')}"
    elif late is not None and arrival - time > late:
        system = arrival - late
        yield f"it arrived {exact_duration(arrival - time)} after its time, {_more(late, 'late tolerance')}"
    behind = 0 if largest_time is None else largest_time - system
    if behind > policies.out_of_order_tolerance:
        tolerance = _more(policies.out_of_order_tolerance, "out-of-order tolerance")
        yield f"its time is {exact_duration(behind)} before the largest one so far, {tolerance}"


def _more(limit: int, name: str) -> str:
    return f"more than the {name} of {exact_duration(limit)}"
