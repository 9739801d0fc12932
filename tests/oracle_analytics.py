"""The analytic functions of docs/time-model.md, section 4.3, in plain Python.

The tests of the query language compare the fast path with this file, so the two share no code. Every function here
returns one value for each row, in the order of `in_order`. It computes each value from all rows, without any state.
Times and lengths are ticks of 100 ns. None is NULL.

Sums of integers are exact, and sums of floats are rounded once. If the test data has only integers and halves, every
sum is exact in any order, so compare results with ==, without a tolerance.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle_windows import Event, Key, Members, average, count, greatest, least, multiple_from, total

Payload = dict[str, Any]
Expression = Callable[[Payload], Any]
Condition = Callable[[Payload], bool]

AGGREGATES: dict[str, Callable[[Iterable[Any]], Any]] = {
    "SUM": total,
    "AVG": average,
    "MIN": least,
    "MAX": greatest,
    "COUNT": count,
}


@dataclass(frozen=True)
class Over:
    """OVER (PARTITION BY keys LIMIT DURATION(tick, length) WHEN when). Without `when`, every row counts."""

    length: int
    keys: tuple[str, ...] = ()
    when: Condition | None = None


def field(name: str) -> Expression:
    """Return the expression that reads a field. A missing field is NULL."""
    return lambda payload: payload.get(name)


def null(payload: Payload) -> None:
    """Return NULL, the default of LAG and LAST if the query gives none."""


def in_order(events: Iterable[Event]) -> Members:
    """Return the rows by time. Events with equal times stay in the order of the list, which is arrival order."""
    return sorted(events, key=lambda event: event.time)


def lag(
    events: Iterable[Event], over: Over, value: Expression, offset: int = 1, default: Expression = null
) -> list[Any]:
    """Return LAG(value, offset, default) OVER (…) for each row."""
    if offset < 1:
        raise ValueError(f"offset must be at least 1, but it is {offset}")
    rows = in_order(events)
    results = []
    for place, row in enumerate(rows):
        earlier = [rows[other] for other in history(rows, place, over) if other != place]
        results.append(value(earlier[-offset].payload) if len(earlier) >= offset else default(row.payload))
    return results


def last(events: Iterable[Event], over: Over, value: Expression, default: Expression = null) -> list[Any]:
    """Return LAST(value, default) OVER (…) for each row."""
    rows = in_order(events)
    results = []
    for place, row in enumerate(rows):
        members = [rows[other] for other in history(rows, place, over)]
        results.append(value(members[-1].payload) if members else default(row.payload))
    return results


def aggregate(events: Iterable[Event], over: Over, function: str, value: Expression | None = None) -> list[Any]:
    """Return function(value) OVER (…) for each row. COUNT without a value is COUNT(*)."""
    if value is None and function != "COUNT":
        raise ValueError(f"{function} needs a value: only COUNT(*) takes none")
    rows = in_order(events)
    results = []
    for place in range(len(rows)):
        payloads = [rows[other].payload for other in history(rows, place, over)]
        results.append(AGGREGATES[function](payloads if value is None else map(value, payloads)))
    return results


def is_first(
    events: Iterable[Event], length: int, keys: Sequence[str] = (), when: Condition | None = None
) -> list[int]:
    """Return ISFIRST(tick, length) OVER (PARTITION BY keys WHEN when) for each row."""
    rows = in_order(events)
    results = []
    for place, row in enumerate(rows):
        window = [
            other
            for other, candidate in enumerate(rows)
            if window_end(candidate, length) == window_end(row, length)
            and key_of(candidate, keys) == key_of(row, keys)
            and meets(candidate, when)
        ]
        results.append(1 if window and window[0] == place else 0)
    return results


def history(rows: Members, place: int, over: Over) -> list[int]:
    """Return the places of the rows in the history of the row at `place`, oldest first."""
    row = rows[place]
    return [
        other
        for other, candidate in enumerate(rows)
        if other <= place
        and row.time - over.length < candidate.time <= row.time
        and key_of(candidate, over.keys) == key_of(row, over.keys)
        and meets(candidate, over.when)
    ]


def key_of(row: Event, keys: Sequence[str]) -> Key:
    """Return the values of PARTITION BY. NULL is a value like any other; a missing field is NULL."""
    return tuple(row.payload.get(key) for key in keys)


def meets(row: Event, when: Condition | None) -> bool:
    return when is None or when(row.payload)


def window_end(row: Event, length: int) -> int:
    """Return the end of the tumbling window (end - length, end] that holds the row. Ends are multiples of length."""
    return multiple_from(row.time, length)
