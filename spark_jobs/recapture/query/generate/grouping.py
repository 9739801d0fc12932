"""The columns that stand for keys and aggregates in the generated SQL.

Rows are aggregated in two steps. A pane is a stretch of time that every window holds whole or not at all: the window
itself for tumbling windows and snapshots, a hop's share for hopping windows, one instant for sliding and session
windows. The first step aggregates the rows of each partition and pane (`panes`). The second puts these partial
aggregates into windows and merges them (`windows`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from recapture.query.generate.aggregates import AggregateSql
from recapture.query.generate.select_items import SqlItem, column
from recapture.query.lower.spark import render
from recapture.query.plan.grouping import Grouping


@dataclass(frozen=True)
class GroupingSql:
    """A GROUP BY in Spark SQL."""

    grouping: Grouping

    @property
    def key_columns(self) -> list[SqlItem]:
        """Columns of the keys: `_k0`, …"""
        return [column(name) for name in self.grouping.key_names]

    @cached_property
    def inputs(self) -> list[SqlItem]:
        """Items over a row: the keys, and the prepared arguments `_a0`, … of the aggregates."""
        keys = (SqlItem(f"_k{number}", render(key)) for number, key in enumerate(self.grouping.keys))
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
        return any(AggregateSql(aggregate).collects for aggregate in self.grouping.aggregates)

    def _items(self, of: Callable[[AggregateSql, int], list[SqlItem]]) -> list[SqlItem]:
        return [
            item
            for number, aggregate in enumerate(self.grouping.aggregates)
            for item in of(AggregateSql(aggregate), number)
        ]
