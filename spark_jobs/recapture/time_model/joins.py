"""How far apart the rows of a JOIN can be, and how far back each side is read (docs/time-model.md, section 4.4).

Sides are numbered in the order of FROM. Times and durations are ticks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from recapture.time_model.ticks import TICKS_PER_SECOND

LARGEST_BOUND = 7 * 24 * 3600 * TICKS_PER_SECOND
"""Largest time between the rows of two sides that a time bound can allow, seven days, in ticks."""


@dataclass(frozen=True)
class TimeBound:
    """A limit of the time of a new side's row minus the time of an earlier side's row."""

    side: int
    """Number of the earlier side."""
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class TimeRange:
    """Where the time of a new side's row lies, counted from the time of an earlier side's row."""

    side: int
    """Number of the earlier side."""
    low: int
    high: int


@dataclass
class Distances:
    """The largest times between the rows that one joined row consists of. It begins with one side."""

    most: list[list[int]] = field(default_factory=lambda: [[0]])
    """Largest time of the row of side j minus that of side i, as most[i][j]."""
    optional: list[bool] = field(default_factory=lambda: [False])
    """Whether each side is the right side of a LEFT JOIN, which may have no row."""
    look_backs: list[int] = field(default_factory=lambda: [0])
    """How long before a joined row's System.Timestamp the row of each side can lie.

    For a LEFT JOIN, this includes the rows of the right side that decide whether a row is without a match.
    """

    def add(self, bounds: Sequence[TimeBound], outer: bool) -> TimeRange | None:
        """Add the side of the next JOIN. Return the narrowest range in which its rows lie, or None without limits.

        The range counts from a side that always has a row.

        a JOIN b, 0 <= b - a <= 5 => TimeRange(0, 0, 5), and the look-backs of a and b are 5 and 0
        a LEFT JOIN b, -2 <= b - a <= 5 => TimeRange(0, -2, 5), and the look-backs of a and b are 5 and 7
        """
        lows = [(bound.side, bound.low) for bound in bounds if bound.low is not None]
        highs = [(bound.side, bound.high) for bound in bounds if bound.high is not None]
        if not lows or not highs:
            return None
        sides = range(len(self.most))
        after = [min(self.most[side][other] + high for other, high in highs) for side in sides]
        before = [min(self.most[other][side] - low for other, low in lows) for side in sides]
        look_backs = [max(self.look_backs[side], after[side]) for side in sides]
        base = look_backs if outer else self.look_backs
        self.look_backs = [*look_backs, max(0, min(base[side] - low for side, low in lows))]
        self.most = [[*self.most[side], after[side]] for side in sides] + [[*before, 0]]
        nearest = min((side for side in sides if not self.optional[side]), key=lambda side: after[side] + before[side])
        self.optional.append(outer)
        return TimeRange(nearest, -before[nearest], after[nearest])

    def add_reference(self) -> None:
        """Add a side of reference data: it has no time, so no time bound names it, and no range counts from it."""
        self.most = [[*row, 0] for row in self.most] + [[0] * (len(self.most) + 1)]
        self.optional.append(True)
        self.look_backs.append(0)
