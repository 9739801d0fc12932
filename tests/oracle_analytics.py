"""The analytic functions of docs/time-model.md, section 4.3, in plain Python.

The tests of the query language compare the fast path with this file, so the two share no code. Every function here
returns one value for each row, in the order of `in_order`. It computes each value from all rows, without any state.
Times and lengths are ticks of 100 ns. None is NULL.

Sums of integers are exact, and sums of floats are rounded once. If the test data has only integers and halves, every
sum is exact in any order, so compare results with ==, without a tolerance.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle_windows import (
    Event,
    Key,
    Members,
    average,
    collect_top,
    count,
    greatest,
    least,
    multiple_from,
    top_one,
    total,
)

Payload = dict[str, Any]
Expression = Callable[[Payload], Any]
Condition = Callable[[Payload], bool]

AGGREGATES: dict[str, Callable[[Iterable[Any]], Any]] = {
    "SUM": total,
    "AVG": average,
    "MIN": least,
    "MAX": greatest,
    "COUNT": count,
    "COLLECT": list,
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
    results = []
    for row, members in histories(in_order(events), over):
        earlier = [member for member in members if member is not row]
        results.append(value(earlier[-offset].payload) if len(earlier) >= offset else default(row.payload))
    return results


def last(events: Iterable[Event], over: Over, value: Expression, default: Expression = null) -> list[Any]:
    """Return LAST(value, default) OVER (…) for each row."""
    return [
        value(members[-1].payload) if members else default(row.payload)
        for row, members in histories(in_order(events), over)
    ]


def aggregate(events: Iterable[Event], over: Over, function: str, value: Expression | None = None) -> list[Any]:
    """Return function(value) OVER (…) for each row. COUNT without a value is COUNT(*)."""
    if value is None and function != "COUNT":
        raise ValueError(f"{function} needs a value: only COUNT(*) takes none")
    read = value or (lambda payload: payload)
    return [
        AGGREGATES[function](read(member.payload) for member in members)
        for _, members in histories(in_order(events), over)
    ]


def top_of_history(events: Iterable[Event], over: Over, value: str, *order: tuple[str, str]) -> list[Any]:
    """Return TopOne(value) OVER (ORDER BY order …) for each row."""
    return [top_one(members, value, *order) if members else None for _, members in histories(in_order(events), over)]


def collect_top_of_history(
    events: Iterable[Event], over: Over, number: int, value: str, *order: tuple[str, str]
) -> list[Any]:
    """Return CollectTop(number, value) OVER (ORDER BY order …) for each row."""
    return [collect_top(members, number, value, *order) for _, members in histories(in_order(events), over)]


def is_first(
    events: Iterable[Event], length: int, keys: Sequence[str] = (), when: Condition | None = None
) -> list[int]:
    """Return ISFIRST(tick, length) OVER (PARTITION BY keys WHEN when) for each row.

    Its windows are tumbling windows (end - length, end], whose ends are multiples of length.
    """
    rows = in_order(events)
    results = []
    for row in rows:
        window = [
            candidate
            for candidate in rows
            if multiple_from(candidate.time, length) == multiple_from(row.time, length)
            and key_of(candidate, keys) == key_of(row, keys)
            and meets(candidate, when)
        ]
        results.append(1 if window and window[0] is row else 0)
    return results


def histories(rows: Members, over: Over) -> Iterator[tuple[Event, Members]]:
    """Yield each row with the rows of its history, oldest first."""
    for place, row in enumerate(rows):
        yield (
            row,
            [
                candidate
                for candidate in rows[: place + 1]
                if row.time - over.length < candidate.time <= row.time
                and key_of(candidate, over.keys) == key_of(row, over.keys)
                and meets(candidate, over.when)
            ],
        )


def key_of(row: Event, keys: Sequence[str]) -> Key:
    """Return the values of PARTITION BY. NULL is a value like any other; a missing field is NULL."""
    return tuple(row.payload.get(key) for key in keys)


def meets(row: Event, when: Condition | None) -> bool:
    return when is None or when(row.payload)
