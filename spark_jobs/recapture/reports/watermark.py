"""The watermark picture: events by arrival and application time, where the policies moved them, and the watermark."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from recapture.time_model.policies import Policies
from recapture.time_model.ticks import TICKS_PER_MILLISECOND, TICKS_PER_SECOND, UNIX_EPOCH

_BAND = 0.7
"""Share of the time to the next arrival over which events of one arrival are spread."""
_MARGIN = 600 * TICKS_PER_SECOND
_THIN = 15
"""Largest ratio of a picture's width to the spread of its events. A wider one is cut to the part around the worst."""


@dataclass(frozen=True)
class Point:
    """An event of the picture; times are ticks."""

    x: int
    """Where it is drawn: its arrival, or a little later if it shares it with the other events of its blob."""
    arrival: int
    time: int | None
    """Application time; None if the event has none."""
    system_timestamp: int | None
    """Time that the policies gave it; None if it is not processed."""
    watermark: int | None
    """Watermark of its scope after it; None if it does not reach the disorder stage."""
    verdict: str
    number: int
    """Sequence number, or the event's place in its blob."""


@dataclass(frozen=True)
class Picture:
    """The data of a picture; times are ticks."""

    points: tuple[Point, ...]
    """Events in arrival order."""
    watermark: tuple[tuple[int, int], ...] | None
    """Places (x, watermark) where the watermark changes; None if the events are of several scopes."""
    late_bound: tuple[tuple[int, int], ...]
    """Places (x, arrival less the late tolerance); empty without a late limit."""
    early_bound: tuple[tuple[int, int], ...]
    """Places (x, arrival plus the early window); empty without an early window."""
    start: int
    """Start of the axis of arrivals."""
    end: int
    """End of the axis of arrivals."""
    lowest: int
    """Lower end of the axis of application times."""
    highest: int
    """Upper end of the axis of application times."""

    @property
    def outside(self) -> int:
        """Number of drawn events whose application time is beyond the axis."""
        return sum(point.time is not None and not self.lowest <= point.time <= self.highest for point in self.points)

    def to_dict(self) -> dict[str, Any]:
        """Return the picture in JSON types; a time is in milliseconds since 1970, UTC."""
        return {
            "start": _milliseconds(self.start),
            "end": _milliseconds(self.end),
            "lowest": _milliseconds(self.lowest),
            "highest": _milliseconds(self.highest),
            "outside": self.outside,
            "points": [
                {
                    "x": _milliseconds(point.x),
                    "arrival": _milliseconds(point.arrival),
                    "time": _milliseconds(point.time),
                    "system_timestamp": _milliseconds(point.system_timestamp),
                    "watermark": _milliseconds(point.watermark),
                    "verdict": point.verdict,
                    "number": point.number,
                }
                for point in self.points
            ],
            "watermark": None if self.watermark is None else _line(self.watermark),
            "late_bound": _line(self.late_bound),
            "early_bound": _line(self.early_bound),
        }


def picture(
    sample: Iterable[Mapping[str, Any]], policies: Policies, start: int, end: int, *, by_blob: bool
) -> Picture | None:
    """Return the picture of sampled events that arrived in (start, end]; None if none of them has a time.

    `sample` has the fields of an event of `ordering.profile.PROFILE_SCHEMA`. With `by_blob`, events arrive with their
    blobs: those of one arrival are spread over some of the time to the next arrival, in arrival order.
    """
    events = sorted(sample, key=_arrival_order)
    timed = [event for event in events if event["time"] is not None]
    if not timed:
        return None
    start, end = _part(timed, policies, start, end)
    events = [event for event in events if start <= event["arrival"] <= end]
    band = _band([event["arrival"] for event in events], end - start) if by_blob else 0
    points = tuple(
        _point(event, policies, event["arrival"] + band * index // max(len(group) - 1, 1))
        for group in (list(group) for _, group in groupby(events, key=lambda event: event["arrival"]))
        for index, event in enumerate(group)
    )
    scopes = {event["key"] for event in events if event["largest_time"] is not None}
    xs = [point.x for point in points]
    margin = max((max(xs) - min(xs)) // 25, TICKS_PER_SECOND)
    start, end = min(xs) - margin, max(xs) + margin
    lowest, highest = _axis(points, policies, start, end)
    arrivals = sorted({point.arrival for point in points})

    def bound(shift: int | None) -> tuple[tuple[int, int], ...]:
        return () if shift is None else _bound(arrivals, band, start, end, shift)

    return Picture(
        points=points,
        watermark=_steps(points) if len(scopes) <= 1 else None,
        late_bound=bound(None if policies.late_tolerance is None else -policies.late_tolerance),
        early_bound=bound(policies.early_window),
        start=start,
        end=end,
        lowest=lowest,
        highest=highest,
    )


def _milliseconds(instant: int | None) -> float | None:
    return None if instant is None else (instant - UNIX_EPOCH) / TICKS_PER_MILLISECOND


def _line(places: Iterable[tuple[int, int]]) -> list[list[float | None]]:
    return [[_milliseconds(x), _milliseconds(level)] for x, level in places]


def _arrival_order(event: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the key of the arrival order (docs/time-model.md, section 1.1)."""
    number = event["sequence_number"]
    return event["arrival"], event["blob"] if number is None else "", event["place"] if number is None else number


def _point(event: Mapping[str, Any], policies: Policies, x: int) -> Point:
    largest, number = event["largest_time"], event["sequence_number"]
    return Point(
        x=x,
        arrival=event["arrival"],
        time=event["time"],
        system_timestamp=event["system_timestamp"],
        watermark=None if largest is None else largest - policies.out_of_order_tolerance,
        verdict=event["verdict"],
        number=event["place"] if number is None else number,
    )


def _part(timed: Sequence[Mapping[str, Any]], policies: Policies, start: int, end: int) -> tuple[int, int]:
    """Return the part of a slice to draw: all of it, or that around the worst event if the events would be a line."""
    distances = sorted(abs(event["arrival"] - event["time"]) for event in timed)
    tolerance = max(policies.late_tolerance or 0, policies.out_of_order_tolerance)
    spread = max(distances[len(distances) * 19 // 20], min(tolerance, 2 * distances[-1]), TICKS_PER_SECOND)
    width = _THIN * spread
    if width >= (end - start) // 2:
        return start, end
    worst = max(timed, key=lambda event: (event["verdict"] != "on_time", abs(event["arrival"] - event["time"])))
    first = min(max(worst["arrival"] - width // 2, start), end - width)
    return first, first + width


def _band(arrivals: Sequence[int], length: int) -> int:
    """Return over how many ticks the events of one arrival are spread; 0 if no two events share one."""
    distinct = sorted(set(arrivals))
    if len(distinct) == len(arrivals):
        return 0
    gaps = [later - earlier for earlier, later in pairwise(distinct)]
    return int(min([length // 4, *gaps]) * _BAND)


def _steps(points: Iterable[Point]) -> tuple[tuple[int, int], ...]:
    """Return where the watermark changes, and where it is last known."""
    steps: list[tuple[int, int]] = []
    last = None
    for point in points:
        if point.watermark is not None:
            last = (point.x, point.watermark)
            if not steps or steps[-1][1] != point.watermark:
                steps.append(last)
    return tuple(steps) if last is None or steps[-1] == last else (*steps, last)


def _bound(arrivals: Sequence[int], band: int, start: int, end: int, shift: int) -> tuple[tuple[int, int], ...]:
    """Return the places of a bound; it stays level where the events of one arrival are spread."""
    if not band:
        return (start, start + shift), (end, end + shift)
    return tuple((x, arrival + shift) for arrival in arrivals for x in (arrival, arrival + band))


def _axis(points: Iterable[Point], policies: Policies, start: int, end: int) -> tuple[int, int]:
    """Return the ends of the axis of application times: what is far beyond the bounds is not on it."""
    known = [(point.time, point.system_timestamp, point.watermark) for point in points]
    times = [time for of_point in known for time in of_point if time is not None]
    below = min((policies.late_tolerance or 0) * 3 // 2 + _MARGIN, 2 * (end - start))
    above = min((policies.early_window or 0) * 3 // 2 + _MARGIN, 2 * (end - start))
    lowest, highest = max(min(times), start - below), min(max(times), end + above)
    margin = max((highest - lowest) // 25, TICKS_PER_SECOND)
    return lowest - margin, highest + margin
