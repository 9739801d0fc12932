"""GROUP BY as a value: its windows, keys and aggregates, and the columns that stand for them in the generated SQL.

Rows are aggregated in two steps. A pane is a stretch of time that every window holds whole or not at all: the window
itself for tumbling windows and snapshots, a hop's share for hopping windows, one instant for sliding and session
windows. The first step aggregates the rows of each partition and pane (`panes`). The second puts these partial
aggregates into windows and merges them (`windows`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from recapture.query.generate.aggregates import Aggregate
from recapture.query.generate.select_items import Item, SelectItem, SqlItem, column
from recapture.query.model import UNANCHORED_COLUMN
from recapture.query.plan.expressions import FALSE, Expr
from recapture.time_model.windows import SessionWindow, Window

SLICE_BOUNDS = (column("_slice_start"), column("_slice_end"))
"""Columns of the start and the end of a row's slice, in ticks."""
UNANCHORED = column(UNANCHORED_COLUMN)
"""Column that marks the rows of sessions cut by the rule for sparse streams (docs/time-model.md, section 4.2)."""


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
    def key_columns(self) -> list[SelectItem]:
        """Columns of the keys: `_k0`, …"""
        return [column(f"_k{number}") for number in range(len(self.keys))]

    @cached_property
    def inputs(self) -> list[Item]:
        """Items over a row: the keys, and the prepared arguments `_a0`, … of the aggregates."""
        keys = (SelectItem(f"_k{number}", key) for number, key in enumerate(self.keys))
        return [*keys, *self._items(lambda aggregate, number: [SqlItem(f"_a{number}", aggregate.input)])]

    @cached_property
    def partials(self) -> list[SqlItem]:
        """Items of the first step, over the prepared arguments: the partial aggregates `_p0`, …"""
        return self._items(lambda aggregate, number: aggregate.partials(f"`_a{number}`", f"_p{number}"))

    @property
    def merged_partials(self) -> list[SqlItem]:
        """Items that merge the partial aggregates of one instant; see Aggregate.has_running_form."""
        return self._items(lambda aggregate, number: aggregate.merged_partials(f"_p{number}"))

    def running(self, over: str) -> list[SqlItem]:
        """Return the items that merge the partial aggregates in a frame, OVER (…); see Aggregate.has_running_form."""
        return self._items(lambda aggregate, number: aggregate.running(f"_p{number}", over))

    @property
    def results(self) -> list[SqlItem]:
        """Items of the second step, over the partial aggregates: the results `_r0`, …"""
        return self._items(lambda aggregate, number: [SqlItem(f"_r{number}", aggregate.merged(f"_p{number}"))])

    @property
    def collects(self) -> bool:
        """Whether the second step collects partial aggregates, because their order matters or their size varies."""
        return any(aggregate.collects for aggregate in self.aggregates)

    def _items(self, of: Callable[[Aggregate, int], list[SqlItem]]) -> list[SqlItem]:
        return [item for number, aggregate in enumerate(self.aggregates) for item in of(aggregate, number)]


def unanchored_items(has: bool, source_has: bool) -> list[SelectItem]:
    """Return the item of `_unanchored` for rows that have it: FALSE where their source does not."""
    if not has:
        return []
    return [UNANCHORED if source_has else SelectItem(UNANCHORED.name, FALSE)]
