"""The windows and the aggregates of docs/time-model.md, sections 4 and 6, word for word, in plain Python.

The tests of the query language end at this file, so it shares no code with the fast path. All instants and durations
are ticks of 100 ns, instants since 0001-01-01T00:00Z.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

Key = tuple[Any, ...]
Members = list["Event"]


@dataclass(frozen=True)
class Event:
    """An event at its System.Timestamp. Wherever events are listed, equal times stand in the order of arrival."""

    time: int
    payload: dict[str, Any]
    partition: str = "0"


@dataclass(frozen=True)
class Hopping:
    """A tumbling window is one whose hop is its size."""

    size: int
    hop: int
    offset: int = 0


@dataclass(frozen=True)
class Sliding:
    size: int


@dataclass(frozen=True)
class Session:
    """`over` names the partition key; without it a session is of all events."""

    timeout: int
    longest: int
    over: tuple[str, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    pass


Window = Hopping | Sliding | Session | Snapshot


@dataclass(frozen=True)
class Content:
    """A row's window: its id in Windows(…), its end, its group, and the events in it by (time, arrival)."""

    window: str | None
    end: int
    group: Key
    members: Members
    unanchored: bool = False
    """A session whose beginning cannot be known from what was read."""


def contents(
    events: Iterable[Event],
    window: Window,
    group_by: Sequence[str] = (),
    name: str | None = None,
    read_after: int | None = None,
) -> list[Content]:
    """Every window with an event in it, group by group (docs/time-model.md, section 4).

    `read_after` says that no event up to that instant was read, though there may be some: see `sessions`.
    """
    ordered = sorted(events, key=lambda event: event.time)
    if isinstance(window, Session):
        return [
            Content(name, end, group, inside, unanchored(scope, members[0], window.timeout, read_after))
            for scope in split(ordered, window.over).values()
            for end, members in sessions(scope, window.timeout, window.longest, read_after)
            for group, inside in split(members, group_by).items()
        ]
    return [
        Content(name, end, group, inside)
        for group, members in split(ordered, group_by).items()
        for end, inside in _placed(members, window)
    ]


def split(events: Iterable[Event], fields: Sequence[str]) -> dict[Key, Members]:
    """The events by the values of some fields. NULL is a value like any other, and so is a field that is missing."""
    groups: dict[Key, Members] = {}
    for event in events:
        groups.setdefault(tuple(event.payload.get(field) for field in fields), []).append(event)
    return groups


def _placed(events: Members, window: Hopping | Sliding | Snapshot) -> list[tuple[int, Members]]:
    match window:
        case Hopping():
            return hopping(events, window.size, window.hop, window.offset)
        case Sliding():
            return sliding(events, window.size)
        case Snapshot():
            return snapshot(events)


def hopping(events: Members, size: int, hop: int, offset: int = 0) -> list[tuple[int, Members]]:
    """A window at every offset + k * hop that has an event in the `size` up to it, the end included."""
    if not events:
        return []
    end = multiple_from(events[0].time - offset, hop) + offset
    found = []
    while end < events[-1].time + size:
        found.append((end, [event for event in events if end - size < event.time <= end]))
        end += hop
    return [(end, members) for end, members in found if members]


def sliding(events: Members, size: int) -> list[tuple[int, Members]]:
    """A window wherever an event enters or leaves, unless nothing is left."""
    ends = {event.time for event in events} | {event.time + size for event in events}
    found = [(end, [event for event in events if end - size < event.time <= end]) for end in sorted(ends)]
    return [(end, members) for end, members in found if members]


def snapshot(events: Members) -> list[tuple[int, Members]]:
    """A window for each time at which there are events."""
    times = sorted({event.time for event in events})
    return [(time, [event for event in events if event.time == time]) for time in times]


def sessions(events: Members, timeout: int, longest: int, read_after: int | None = None) -> list[tuple[int, Members]]:
    """The sessions of one partition key.

    With `read_after`, nobody knows what was before: a first event within `timeout` of that instant need not have opened
    its session. It is then cut at the next even multiple of `longest`, so that all who read a stream without a gap,
    from wherever, agree.
    """
    found: list[tuple[int, Members]] = []
    for event in events:
        if found:
            cut, members = found[-1]
            if event.time <= members[-1].time + timeout and event.time <= cut:
                members.append(event)
                continue
        if not found and read_after is not None and event.time <= read_after + timeout:
            cut = multiple_from(event.time, 2 * longest)
        else:
            cut = multiple_from(event.time + longest, longest)
        found.append((cut, [event]))
    return [(min(cut, members[-1].time + timeout), members) for cut, members in found]


def unanchored(events: Members, first: Event, timeout: int, read_after: int | None) -> bool:
    """Whether no silence of the timeout lies between what was not read and a session's first event."""
    if read_after is None:
        return False
    times = [read_after, *(event.time for event in events if event.time <= first.time)]
    return all(later - earlier <= timeout for earlier, later in pairwise(times))


def multiple_from(instant: int, step: int) -> int:
    """The first multiple of `step` that is not before an instant."""
    return -(-instant // step) * step


def ending_in(rows: Iterable[Content], start: int, end: int) -> list[Content]:
    """The windows that a slice (start, end] publishes."""
    return [row for row in rows if start < row.end <= end]


def count_distinct(values: Iterable[Any]) -> int:
    return len({value for value in values if value is not None})


def count(values: Iterable[Any]) -> int:
    """COUNT(x); COUNT(*) is the number of members."""
    return len(_present(values))


def total(values: Iterable[Any]) -> int | float | None:
    """SUM: a bigint of bigints, else a float."""
    present = _present(values)
    if not present:
        return None
    return math.fsum(present) if any(isinstance(value, float) for value in present) else sum(present)


def average(values: Iterable[Any]) -> float | None:
    exact = _mean(_present(values))
    return None if exact is None else float(exact)


def least(values: Iterable[Any]) -> Any:
    return min(_present(values), default=None)


def greatest(values: Iterable[Any]) -> Any:
    return max(_present(values), default=None)


def variance(values: Iterable[Any], population: bool = False) -> float | None:
    """VAR, NULL for fewer than two values, or VARP."""
    exact = _variance(_present(values), population)
    return None if exact is None else float(exact)


def deviation(values: Iterable[Any], population: bool = False) -> float | None:
    """STDEV or STDEVP."""
    exact = _variance(_present(values), population)
    return None if exact is None else math.sqrt(exact)


def percentile_cont(values: Iterable[Any], portion: str, descending: bool = False) -> float | None:
    """PERCENTILE_CONT(portion) OVER (ORDER BY x): interpolated between the two values around it."""
    ranked = sorted(_present(values), reverse=descending)
    if not ranked:
        return None
    place = Fraction(portion) * (len(ranked) - 1)
    below = math.floor(place)
    low, high = Fraction(ranked[below]), Fraction(ranked[min(below + 1, len(ranked) - 1)])
    return float(low + (high - low) * (place - below))


def percentile_disc(values: Iterable[Any], portion: str, descending: bool = False) -> Any:
    """PERCENTILE_DISC(portion) OVER (ORDER BY x): the first value at which the share of all so far is the portion."""
    ranked = sorted(_present(values), reverse=descending)
    for n, value in enumerate(ranked, 1):
        if Fraction(n, len(ranked)) >= Fraction(portion):
            return value
    return None


def ranked(members: Members, *order: tuple[str, str]) -> Members:
    """By the fields of an ORDER BY, each with "ASC" or "DESC"; NULL is the least. Ties stay by (time, arrival)."""
    found = sorted(members, key=lambda event: event.time)
    for field, direction in reversed(order):
        found.sort(key=lambda event: _null_first(event.payload.get(field)), reverse=direction == "DESC")
    return found


def top_one(members: Members, field: str | None, *order: tuple[str, str]) -> Any:
    """TopOne(field) OVER (ORDER BY …); without a field, the whole event."""
    return _shown(ranked(members, *order)[0], field)


def collect_top(members: Members, number: int, field: str | None, *order: tuple[str, str]) -> list[dict[str, Any]]:
    """CollectTop(number, field) OVER (ORDER BY …)."""
    best = ranked(members, *order)[:number]
    return [{"rank": rank, "value": _shown(event, field)} for rank, event in enumerate(best, 1)]


def collect(members: Members, field: str | None) -> list[Any]:
    """Collect(field): a NULL is an element too."""
    return [_shown(event, field) for event in sorted(members, key=lambda event: event.time)]


def _shown(event: Event, field: str | None) -> Any:
    return event.payload if field is None else event.payload.get(field)


def _present(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _mean(present: list[Any]) -> Fraction | None:
    return sum(map(Fraction, present), Fraction()) / len(present) if present else None


def _variance(present: list[Any], population: bool) -> Fraction | None:
    mean = _mean(present)
    degrees = len(present) - (0 if population else 1)
    if mean is None or not degrees:
        return None
    return sum(((Fraction(value) - mean) ** 2 for value in present), Fraction()) / degrees


def _null_first(value: Any) -> tuple[bool, Any]:
    return (value is not None, 0 if value is None else value)
