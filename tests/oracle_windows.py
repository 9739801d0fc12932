"""The windows and the aggregates of docs/time-model.md, sections 4 and 6, in plain Python.

The tests of the query language compare the fast path with this file, so the two share no code. Instants and durations
are ticks of 100 ns; instants count from 0001-01-01T00:00Z.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Key = tuple[Any, ...]
Members = list["Event"]


@dataclass(frozen=True)
class Event:
    """An event at its System.Timestamp. In every list, events with equal times are in arrival order."""

    time: int
    payload: dict[str, Any]
    partition: str = "0"


@dataclass(frozen=True)
class Hopping:
    """A hopping window. A tumbling window is one whose hop is its size."""

    size: int
    hop: int
    offset: int = 0


@dataclass(frozen=True)
class Sliding:
    size: int


@dataclass(frozen=True)
class Session:
    """A session window. `over` names the partition key; without it, all events share the sessions."""

    timeout: int
    longest: int
    over: tuple[str, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    pass


Window = Hopping | Sliding | Session | Snapshot


@dataclass(frozen=True)
class Content:
    """A row's window: its id in Windows(…), its end, its group, and its events, ordered by time, then arrival."""

    window: str | None
    end: int
    group: Key
    members: Members
    unanchored: bool = False
    """Whether it is a session that is cut at even multiples, because its stream is too sparse."""


def contents(
    events: Iterable[Event], window: Window, group_by: Sequence[str] = (), name: str | None = None
) -> list[Content]:
    """Return every window that holds an event, group by group (docs/time-model.md, section 4)."""
    ordered = sorted(events, key=lambda event: event.time)
    if isinstance(window, Session):
        return [
            Content(name, end, group, inside, unanchored)
            for key_events in split(ordered, window.over).values()
            for end, members, unanchored in sessions(key_events, window.timeout, window.longest)
            for group, inside in split(members, group_by).items()
        ]
    return [
        Content(name, end, group, inside)
        for group, members in split(ordered, group_by).items()
        for end, inside in _placed(members, window)
    ]


def split(events: Iterable[Event], fields: Sequence[str]) -> dict[Key, Members]:
    """Return the events by the values of some fields. NULL is a value like any other; a missing field is NULL."""
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
    """Return a window at every offset + k * hop that has an event in the `size` up to it, end included."""
    if not events:
        return []
    end = multiple_from(events[0].time - offset, hop) + offset
    windows = []
    while end < events[-1].time + size:
        windows.append((end, [event for event in events if end - size < event.time <= end]))
        end += hop
    return [(end, members) for end, members in windows if members]


def sliding(events: Members, size: int) -> list[tuple[int, Members]]:
    """Return a window wherever an event enters or leaves, unless it is empty."""
    ends = {event.time for event in events} | {event.time + size for event in events}
    windows = [(end, [event for event in events if end - size < event.time <= end]) for end in sorted(ends)]
    return [(end, members) for end, members in windows if members]


def snapshot(events: Members) -> list[tuple[int, Members]]:
    """Return a window for each time at which there are events."""
    times = sorted({event.time for event in events})
    return [(time, [event for event in events if event.time == time]) for time in times]


def sessions(events: Members, timeout: int, longest: int) -> list[tuple[int, Members, bool]]:
    """Return the sessions of one partition key, each with its end, its events, and whether it is unanchored."""
    result: list[tuple[int, Members, bool]] = []
    last_before: int | None = None
    for stream in streams(events, timeout):
        first_of_key = last_before is None or stream[0].time - last_before > timeout + longest
        last_before = stream[-1].time
        deciding = stream[0] if first_of_key or len(stream) == 1 else stream[1]
        cuts = cuts_of(stream, span_of(deciding.time, longest) + 1, longest)
        members: Members = []
        begun_by_rule = False
        for event, following in zip(stream, [*stream[1:], None], strict=True):
            members.append(event)
            span = span_of(event.time, longest)
            if following is None or (span_of(following.time, longest) > span and cuts[span][0]):
                spans = {span_of(member.time, longest) for member in members}
                unanchored = begun_by_rule or any(cuts[span][1] for span in spans)
                deadline = (span + 1) * longest if cuts[span][0] else math.inf
                result.append((int(min(event.time + timeout, deadline)), members, unanchored))
                members, begun_by_rule = [], cuts[span][1]
    return result


def streams(events: Members, timeout: int) -> list[Members]:
    """Return the events in order, divided where a pause is longer than the timeout."""
    result: list[Members] = []
    for event in events:
        if result and event.time - result[-1][-1].time <= timeout:
            result[-1].append(event)
        else:
            result.append([event])
    return result


def cuts_of(stream: Members, first_deadline: int, longest: int) -> dict[int, tuple[bool, bool]]:
    """Return by span whether there is a cut at its end, and whether the rule for sparse streams says so."""
    held = Counter(span_of(event.time, longest) for event in stream)
    cuts = {}
    turn = -1
    for span in sorted(held):
        if span == first_deadline or (span > first_deadline and held[span] >= 2):
            turn = 0
        elif span > first_deadline:
            turn += 1
        if turn <= 3:
            cuts[span] = (turn in (0, 2), False)
        else:
            cuts[span] = ((span + 1) % 2 == 0, True)
    return cuts


def span_of(time: int, longest: int) -> int:
    """Return the number k of the span (k * longest, (k + 1) * longest] that holds a time."""
    return multiple_from(time, longest) // longest - 1


def multiple_from(instant: int, step: int) -> int:
    """Return the first multiple of `step` that is not before an instant."""
    return -(-instant // step) * step


def ending_in(rows: Iterable[Content], start: int, end: int) -> list[Content]:
    """Return the windows that a slice (start, end] publishes."""
    return [row for row in rows if start < row.end <= end]


def count_distinct(values: Iterable[Any]) -> int:
    return len({value for value in values if value is not None})


def count(values: Iterable[Any]) -> int:
    """Return COUNT(x). COUNT(*) is the number of members."""
    return len(_present(values))


def total(values: Iterable[Any]) -> int | float | None:
    """Return SUM: a bigint if all values are bigints, otherwise a float."""
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
    """Return VAR, which is NULL for fewer than two values, or VARP."""
    exact = _variance(_present(values), population)
    return None if exact is None else float(exact)


def deviation(values: Iterable[Any], population: bool = False) -> float | None:
    """Return STDEV or STDEVP."""
    exact = _variance(_present(values), population)
    return None if exact is None else math.sqrt(exact)


def percentile_cont(values: Iterable[Any], portion: str, descending: bool = False) -> float | None:
    """Return PERCENTILE_CONT(portion) OVER (ORDER BY x), interpolated between the two values around it."""
    ranked = sorted(_present(values), reverse=descending)
    if not ranked:
        return None
    place = Fraction(portion) * (len(ranked) - 1)
    below = math.floor(place)
    low, high = Fraction(ranked[below]), Fraction(ranked[min(below + 1, len(ranked) - 1)])
    return float(low + (high - low) * (place - below))


def percentile_disc(values: Iterable[Any], portion: str, descending: bool = False) -> Any:
    """Return PERCENTILE_DISC(portion) OVER (ORDER BY x): the first value whose cumulative share reaches the portion."""
    ranked = sorted(_present(values), reverse=descending)
    for n, value in enumerate(ranked, 1):
        if Fraction(n, len(ranked)) >= Fraction(portion):
            return value
    return None


def ranked(members: Members, *order: tuple[str, str]) -> Members:
    """Return the members in the order of ORDER BY fields, each with "ASC" or "DESC".

    NULL is the least value. Ties are in the order of time, then arrival.
    """
    ordered = sorted(members, key=lambda event: event.time)
    for field, direction in reversed(order):
        ordered.sort(key=lambda event: _null_first(event.payload.get(field)), reverse=direction == "DESC")
    return ordered


def top_one(members: Members, field: str | None, *order: tuple[str, str]) -> Any:
    """Return TopOne(field) OVER (ORDER BY …); without a field, the whole event."""
    return _shown(ranked(members, *order)[0], field)


def collect_top(members: Members, number: int, field: str | None, *order: tuple[str, str]) -> list[dict[str, Any]]:
    """Return CollectTop(number, field) OVER (ORDER BY …)."""
    best = ranked(members, *order)[:number]
    return [{"rank": rank, "value": _shown(event, field)} for rank, event in enumerate(best, 1)]


def collect(members: Members, field: str | None) -> list[Any]:
    """Return Collect(field), in which a NULL is an element too."""
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
