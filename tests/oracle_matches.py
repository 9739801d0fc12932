"""The matches of MATCH_RECOGNIZE, as docs/time-model.md, section 4.6 has them, in plain Python.

The tests compare the fast path with this file, so the two share no code. Here, every sequence of rows is tried on every
way through the pattern, in the order of preference.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.oracle_windows import Event, Members

Assigned = tuple[tuple[str, Event], ...]
"""The rows of a match so far, each with its variable."""
Condition = Callable[[Event, "Rows"], bool]
"""Condition of a variable: over a row, and the rows of the match up to this row."""


@dataclass(frozen=True)
class Part:
    """A part of a pattern: a variable's name, or parts of a kind, as often as `least` to `most` times in a row."""

    parts: "tuple[str | Part, ...]"
    is_choice: bool = False
    least: int = 1
    most: int = 1


@dataclass(frozen=True)
class Rows:
    """The rows of a match."""

    assigned: Assigned

    def of(self, variable: str, field: str) -> list[Any]:
        """Return the values of a field in the rows of a variable."""
        return [event.payload[field] for name, event in self.assigned if name == variable]

    def first(self, variable: str, field: str) -> Any:
        return next(iter(self.of(variable, field)), None)

    def last(self, variable: str, field: str) -> Any:
        return next(reversed(self.of(variable, field)), None)

    def least(self, variable: str, field: str) -> Any:
        return min((value for value in self.of(variable, field) if value is not None), default=None)

    def greatest(self, variable: str, field: str) -> Any:
        return max((value for value in self.of(variable, field) if value is not None), default=None)

    @property
    def classes(self) -> list[str]:
        return [name for name, _ in self.assigned]


def matches(
    events: Iterable[Event], pattern: Part, conditions: Mapping[str, Condition], length: int, keys: tuple[str, ...] = ()
) -> list[Rows]:
    """Return the match of each sequence of rows that fits a pattern. Events with equal times are in arrival order."""
    by_key: dict[tuple[Any, ...], Members] = {}
    for event in sorted(events, key=lambda event: event.time):
        by_key.setdefault(tuple(event.payload[key] for key in keys), []).append(event)
    found: list[Rows] = []
    for rows in by_key.values():
        for start in range(len(rows)):
            within = [row for row in rows[start:] if row.time < rows[start].time + length]
            preferred: dict[int, Assigned] = {}
            for way in _ways(pattern, within, (), conditions):
                preferred.setdefault(len(way), way)
            found += [Rows(way) for count, way in preferred.items() if count]
    return found


def _ways(part: str | Part, rows: Members, before: Assigned, conditions: Mapping[str, Condition]) -> Iterator[Assigned]:
    """Yield the ways through a part, after the rows `before`, the preferred ones first."""
    if isinstance(part, str):
        if len(before) < len(rows):
            taken = (*before, (part, rows[len(before)]))
            if conditions[part](rows[len(before)], Rows(taken)):
                yield taken
        return
    yield from _repeated(part, rows, before, conditions, 0)


def _repeated(
    part: Part, rows: Members, before: Assigned, conditions: Mapping[str, Condition], times: int
) -> Iterator[Assigned]:
    if times < part.most:
        for way in _once(part, rows, before, conditions):
            if len(way) > len(before) or times < part.least:
                yield from _repeated(part, rows, way, conditions, times + 1)
    if times >= part.least:
        yield before


def _once(part: Part, rows: Members, before: Assigned, conditions: Mapping[str, Condition]) -> Iterator[Assigned]:
    if part.is_choice:
        for inner in part.parts:
            yield from _ways(inner, rows, before, conditions)
        return
    yield from _in_turn(part.parts, rows, before, conditions)


def _in_turn(
    parts: "tuple[str | Part, ...]", rows: Members, before: Assigned, conditions: Mapping[str, Condition]
) -> Iterator[Assigned]:
    if not parts:
        yield before
        return
    for way in _ways(parts[0], rows, before, conditions):
        yield from _in_turn(parts[1:], rows, way, conditions)
