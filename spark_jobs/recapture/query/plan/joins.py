"""JOIN and look-ups in reference data as values (docs/time-model.md, sections 4.4 and 4.5)."""

from collections.abc import Iterator
from dataclasses import dataclass

from recapture.query.plan.analytics import Analytics, look_back_of
from recapture.query.plan.expressions import Expr, column
from recapture.time_model.windows import JoinedSide, Reach

VALIDITY = ("_valid_from", "_valid_until")
"""Columns of reference data that bound the System.Timestamps for which a row is in force."""


def side_column(number: int, name: str) -> str:
    """Return the name of a side's column in the joined rows: 1, "x" => 1.x"""
    return f"{number}.{name}"


def side_time(number: int) -> Expr:
    """Return the System.Timestamp of a side's row: 1 => 1._system_timestamp"""
    return column(side_column(number, "_system_timestamp"))


@dataclass(frozen=True)
class Side:
    """A relation of a JOIN."""

    table: str
    columns: tuple[str, ...]
    is_reference: bool = False
    analytics: Analytics | None = None
    """Analytic functions over its rows, before they are joined."""


@dataclass(frozen=True)
class Join:
    """One JOIN: how the next side is joined to the rows of the sides before it."""

    condition: Expr
    """ON with its time bounds, over the columns of the sides."""
    latest_match: Expr | None
    """Latest time at which a match could occur, over the columns of the sides; None for an inner join."""


@dataclass(frozen=True)
class Lookup:
    """One JOIN with reference data: each row gets the rows that are in force at its System.Timestamp."""

    condition: Expr
    """ON, over the columns of the sides."""
    outer: bool
    """Whether a row without a match stays."""


@dataclass(frozen=True)
class JoinedTable:
    """The rows of the JOINs of a FROM, under a name.

    They have the columns `_system_timestamp`, `_arrival` and `_partition`, and the columns of each side under their
    names after the side's number, such as `0.x`.
    """

    name: str
    sides: tuple[Side, ...]
    joins: tuple[Join | Lookup, ...]
    """How each side after the first is joined."""
    look_backs: tuple[int, ...]
    """How long before a joined row's System.Timestamp the rows of each side may lie; ticks."""

    @property
    def windows(self) -> tuple[JoinedSide, ...]:
        """Its sides with events, in place of windows."""
        return tuple(joined for _, joined in self._streams)

    @property
    def _streams(self) -> Iterator[tuple[Side, JoinedSide]]:
        for side, look_back in zip(self.sides, self.look_backs, strict=True):
            if not side.is_reference:
                yield side, JoinedSide(look_back)

    def reads(self, extra_look_back: int) -> Iterator[tuple[str, Reach]]:
        """Yield each table that it reads, and the reach of its rows."""
        for side, joined_side in self._streams:
            yield side.table, Reach(joined_side, extra_look_back, look_back_of(side.analytics))

    @property
    def sources(self) -> list[str]:
        """Tables that it reads."""
        return [side.table for side in self.sides]
