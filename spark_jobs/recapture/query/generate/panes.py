"""The first step of a GROUP BY: rows to the partial aggregates of panes."""

from dataclasses import dataclass
from functools import cached_property

from recapture.query.generate.grouping import GroupingSql
from recapture.query.generate.select_items import SLICE_BOUNDS, UNANCHORED, SqlItem, column, columns, select_list
from recapture.query.plan.grouping import Grouping
from recapture.query.plan.in_tasks import pane_length
from recapture.time_model.windows import HoppingWindow, SessionWindow, Window


@dataclass(frozen=True)
class PaneStatement:
    """The partial aggregates per slice, partition, pane and group, for one window of a GROUP BY."""

    source: str
    """FROM … [WHERE …] of the rows."""
    source_unanchored: bool
    """Whether the rows, and therefore the panes, have the column `_unanchored`."""
    grouping: Grouping
    window: Window
    extra_look_back: int
    """How long before the slice a window that is needed may end; ticks."""

    @cached_property
    def sql_grouping(self) -> GroupingSql:
        """The GROUP BY in Spark SQL."""
        return GroupingSql(self.grouping)

    @property
    def columns(self) -> list[SqlItem]:
        """Columns of a pane, without `_unanchored`."""
        return [*self._by, *columns(self.sql_grouping.partials)]

    @cached_property
    def sql(self) -> str:
        """Statement that computes the panes.

        keys [`k`], aggregates [COUNT(*)] => SELECT …, `_k0`, COUNT(`_a0`) AS `_p0` FROM (…) GROUP BY …, `_k0`
        """
        flag = [UNANCHORED] if self.source_unanchored else []
        system = [*SLICE_BOUNDS, *map(column, ("_partition", "_system_timestamp", "_arrival")), *flag]
        rows = (
            f"SELECT {select_list([*system, SqlItem('_pane', self._pane), *self.sql_grouping.inputs])}\n{self.source}"
        )
        counts = [SqlItem("_events", "count(*)")] if isinstance(self.window, SessionWindow) else []
        items = [*self._by, *self.sql_grouping.partials, *counts, *any_unanchored(self.source_unanchored)]
        return f"SELECT {select_list(items)}\nFROM (\n{rows}\n) AS `rows`\nGROUP BY {select_list(self._by)}"

    @property
    def _by(self) -> list[SqlItem]:
        return [*SLICE_BOUNDS, column("_partition"), column("_pane"), *self.sql_grouping.key_columns]

    @property
    def _pane(self) -> str:
        """End of the pane that holds a row."""
        if not isinstance(self.window, HoppingWindow):
            return "`_system_timestamp`"
        length = pane_length(self.window)
        offset = self.window.offset % length
        return f"(`_system_timestamp` + pmod({offset}L - `_system_timestamp`, {length}L))"


def any_unanchored(has: bool) -> list[SqlItem]:
    """Return the item of `_unanchored` for groups of rows that have it: whether one of them is."""
    return [SqlItem(UNANCHORED.name, f"bool_or({UNANCHORED.value})")] if has else []
