"""GROUP BY as a value: its windows, keys and aggregates, and the columns that stand for them in a group.

A group has the columns `_window_end`, `_window_id`, `_k0`, … for the keys and `_r0`, … for the results.
"""

from dataclasses import dataclass

from recapture.query.plan.aggregates import Aggregate
from recapture.query.plan.expressions import Expr
from recapture.time_model.windows import SessionWindow, Window

WINDOW_END, WINDOW_ID = "_window_end", "_window_id"
"""Columns of a group, next to its keys and its results: the end of its window in ticks, and the window's name."""


@dataclass(frozen=True)
class GroupedWindow:
    """One window of a GROUP BY."""

    window: Window
    id: str | None
    """Its name in Windows(Window('id', …), …)."""
    partition_by: tuple[int, ...] = ()
    """Indexes of the keys that have sessions of their own."""


@dataclass(frozen=True)
class Grouping:
    """A GROUP BY."""

    windows: tuple[GroupedWindow, ...]
    keys: tuple[Expr, ...]
    """Keys, over a row."""
    aggregates: tuple[Aggregate, ...]
    """Aggregates of SELECT and HAVING, over a row."""
    having: Expr | None
    """Condition of HAVING, over a group's `_k0`, …, `_r0`, …, `_window_id` and `_window_end`."""

    @property
    def unanchored(self) -> bool:
        """Whether its groups have the column `_unanchored`: it has sessions."""
        return any(isinstance(grouped.window, SessionWindow) for grouped in self.windows)

    @property
    def key_names(self) -> list[str]:
        """Names of the columns of the keys: _k0, …"""
        return [f"_k{number}" for number in range(len(self.keys))]
