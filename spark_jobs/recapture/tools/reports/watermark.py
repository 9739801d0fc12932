"""The watermark picture: events by arrival and lateness, where the policies moved them, and the watermark.

Application times, System.Timestamps and the watermark are drawn by their distance from the arrival. An hour of events
that are seconds late then fills the picture as well as one of events that are minutes late, and bounds are level.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby, pairwise
from typing import Any

from recapture.time_model.policies import Policies
from recapture.time_model.ticks import TICKS_PER_MILLISECOND, TICKS_PER_SECOND, UNIX_EPOCH

_BAND = 0.7
"""Share of the time to the next arrival over which events of one arrival are spread."""
_ONLY_BAND = 60 * TICKS_PER_SECOND
"""Time over which events are spread if all have one arrival."""
_REACH = 4
"""How far the axis extends at most beyond the middle nine tenths of the events, in units of their spread."""


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
    """Watermark of its scope after it; None if it does not reach the disorder rule."""
    verdict: str
    number: int
    """Sequence number, or the event's place in its blob."""


@dataclass(frozen=True)
class Picture:
    """The data of a picture. Times and durations are ticks."""

    points: tuple[Point, ...]
    """Events in arrival order."""
    one_watermark: bool
    """Whether the events are of one scope, so that they have one watermark."""
    late_bound: int | None
    """Late bound minus arrival; None without a late limit."""
    early_bound: int | None
    """Early bound minus arrival; None without an early window."""
    start: int
    """Start of the axis of arrivals."""
    end: int
    """End of the axis of arrivals."""
    lowest: int
    """Lower end of the axis of times less arrivals."""
    highest: int
    """Upper end of the axis of times less arrivals."""

    @property
    def outside(self) -> int:
        """Number of drawn events whose application time is beyond the axis."""
        return sum(
            point.time is not None and not self.lowest <= point.time - point.arrival <= self.highest
            for point in self.points
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the picture in JSON types. A time is in milliseconds since 1970, UTC; a duration in milliseconds."""
        return {
            "start": _instant(self.start),
            "end": _instant(self.end),
            "lowest": _milliseconds(self.lowest),
            "highest": _milliseconds(self.highest),
            "late_bound": _milliseconds(self.late_bound),
            "early_bound": _milliseconds(self.early_bound),
            "one_watermark": self.one_watermark,
            "outside": self.outside,
            "points": [
                asdict(point)
                | {
                    name: _instant(getattr(point, name))
                    for name in ("x", "arrival", "time", "system_timestamp", "watermark")
                }
                for point in self.points
            ],
        }


def picture(sample: Iterable[Mapping[str, Any]], policies: Policies, *, by_blob: bool) -> Picture | None:
    """Return the picture of sampled events; None if none of them has a time.

    `sample` has the fields of an event of `ordering.profile.PROFILE_SCHEMA`. With `by_blob`, events arrive with their
    blobs: those of one arrival are spread over some of the time to the next arrival, in arrival order.
    """
    events = sorted(sample, key=_arrival_order)
    if all(event["time"] is None for event in events):
        return None
    arrivals = [event["arrival"] for event in events]
    band = _band(arrivals) if by_blob else 0
    points = tuple(
        _point(event, policies, event["arrival"] + band * index // max(len(group) - 1, 1))
        for group in (list(group) for _, group in groupby(events, key=lambda event: event["arrival"]))
        for index, event in enumerate(group)
    )
    xs = [point.x for point in points]
    margin = max((max(xs) - min(xs)) // 25, TICKS_PER_SECOND)
    late_bound = None if policies.late_tolerance is None else -policies.late_tolerance
    lowest, highest = _axis(points, (0, late_bound, policies.early_window))
    return Picture(
        points=points,
        one_watermark=len({event["key"] for event in events if event["largest_time"] is not None}) <= 1,
        late_bound=late_bound,
        early_bound=policies.early_window,
        start=min(xs) - margin,
        end=max(xs) + margin,
        lowest=lowest,
        highest=highest,
    )


def _milliseconds(duration: int | None) -> float | None:
    return None if duration is None else duration / TICKS_PER_MILLISECOND


def _instant(instant: int | None) -> float | None:
    return None if instant is None else _milliseconds(instant - UNIX_EPOCH)


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


def _band(arrivals: Sequence[int]) -> int:
    """Return over how many ticks to spread the events of one of these ordered arrivals; 0 if no two share one."""
    distinct = list(dict.fromkeys(arrivals))
    if len(distinct) == len(arrivals):
        return 0
    if len(distinct) == 1:
        return _ONLY_BAND
    gaps = [later - earlier for earlier, later in pairwise(distinct)]
    return int(min([(distinct[-1] - distinct[0]) // 4, *gaps]) * _BAND)


def _axis(points: Iterable[Point], bounds: Iterable[int | None]) -> tuple[int, int]:
    """Return the ends of the axis: of all events, except those that are much further out than most.

    A bound is on the axis if most of the events still fill a third of it.
    """
    offsets = sorted(point.time - point.arrival for point in points if point.time is not None)
    low, high = offsets[len(offsets) // 20], offsets[-1 - len(offsets) // 20]
    spread = max(high - low, TICKS_PER_SECOND)
    near = [value for value in (*offsets, *_others(points)) if low - _REACH * spread <= value <= high + _REACH * spread]
    shown = [bound for bound in bounds if bound is not None and low - spread <= bound <= high + spread]
    lowest, highest = min(near + shown), max(near + shown)
    margin = max((highest - lowest) // 20, TICKS_PER_SECOND // 10)
    return lowest - margin, highest + margin


def _others(points: Iterable[Point]) -> Iterator[int]:
    """Yield the System.Timestamps of events, and the watermarks after them, less their arrivals."""
    for point in points:
        for time in (point.system_timestamp, point.watermark):
            if time is not None:
                yield time - point.arrival
