"""JOIN (docs/time-model.md, section 4.4) in plain Python: nested loops over events.

The tests of the query language compare the fast path with this file, so the two share no code. Instants and durations
are ticks of 100 ns.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tests.oracle_windows import Event


@dataclass(frozen=True)
class Row:
    """A row of a JOIN, with the event of each side; None for a side without a match."""

    time: int
    """System.Timestamp."""
    events: tuple[Event | None, ...]


@dataclass(frozen=True)
class Bound:
    """A time bound: DATEDIFF(…, side, new side) lies between `low` and `high`; None means without a bound."""

    side: int
    low: int | None
    high: int | None


Condition = Callable[[Row, Event], bool]


def rows_of(events: Iterable[Event]) -> list[Row]:
    """Return the rows of a FROM, before its first JOIN."""
    return [Row(event.time, (event,)) for event in events]


def join(
    rows: Sequence[Row], events: Sequence[Event], bounds: Sequence[Bound], condition: Condition, outer: bool = False
) -> list[Row]:
    """Return the rows of one more JOIN; of a LEFT JOIN if `outer`."""
    result = []
    for row in rows:
        matches = [event for event in events if _within(row, event, bounds) and condition(row, event)]
        result += [Row(max(row.time, event.time), (*row.events, event)) for event in matches]
        if outer and not matches:
            result.append(Row(max(row.time, _latest_match(row, bounds)), (*row.events, None)))
    return result


def _within(row: Row, event: Event, bounds: Sequence[Bound]) -> bool:
    for bound in bounds:
        other = row.events[bound.side]
        if other is None:
            return False
        elapsed = event.time - other.time
        if (bound.low is not None and elapsed < bound.low) or (bound.high is not None and elapsed > bound.high):
            return False
    return True


def _latest_match(row: Row, bounds: Sequence[Bound]) -> int:
    """Return the latest time at which a match could have occurred."""
    ends = []
    for bound in bounds:
        other = row.events[bound.side]
        if bound.high is not None and other is not None:
            ends.append(other.time + bound.high)
    return min(ends)
