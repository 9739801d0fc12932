"""The relations of a query as values: SELECTs, JOINs and matches, from the inputs to the rows of an output.

A table has a name, by which other tables read it: a view of events or of reference data, the rows of SELECTs, those of
the JOINs of a FROM, or the matches of a MATCH_RECOGNIZE. Every row has `_system_timestamp` and `_arrival`, in ticks,
and `_partition`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from recapture.query.plan.analytics import Analytics, look_back_of
from recapture.query.plan.expressions import Expr, call, column, columns_of
from recapture.query.plan.grouping import WINDOW_END, WINDOW_ID, Grouping
from recapture.query.plan.joins import JoinedTable
from recapture.query.plan.matches import MatchedTable
from recapture.query.plan.operations import Op
from recapture.query.plan.panes import GroupsView
from recapture.time_model.windows import Reach, SnapshotWindow, Window

SLICE_START = "slice_start"
"""Published column that holds the start of a row's slice."""


@dataclass(frozen=True)
class Item:
    """An expression under a name."""

    name: str
    expression: Expr


@dataclass(frozen=True)
class Lateral:
    """The elements that an APPLY adds to the rows of a FROM."""

    number: int
    """Number of APPLYs before it."""
    array: Expr
    """Array whose elements it adds, over a row."""
    outer: bool
    """Whether a row without elements stays."""

    @property
    def column(self) -> str:
        """Name of the column that holds an element."""
        return f"@@e{self.number}"


@dataclass(frozen=True)
class Selection:
    """One SELECT. Its analytic functions come first, then APPLY, WHERE, GROUP BY with HAVING, and the select list."""

    table: str
    """What it reads: the view of events, or the table of a step or of a JOIN."""
    analytics: Analytics | None
    """Its analytic functions, over a row before APPLY."""
    laterals: tuple[Lateral, ...]
    """Its APPLYs."""
    where: Expr | None
    grouping: Grouping | None
    items: tuple[Item, ...]
    """Select list, over a row, or over a group's `_k0`, …, `_r0`, …, `_window_id` and `_window_end`."""
    groups_view: GroupsView | None = None
    """View of the groups of `grouping`, if they are merged from panes; it does not read `table` then."""

    @property
    def windows(self) -> list[Window]:
        """Windows of its GROUP BY; without one each row stands for its own time."""
        return [grouped.window for grouped in self.grouping.windows] if self.grouping else [SnapshotWindow()]

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Columns that are keys of its GROUP BY."""
        keys = [] if self.grouping is None else [column(name) for name in self.grouping.key_names]
        published = {*keys, *(call(Op.TOKEN_TEXT, key) for key in keys)}
        return tuple(item.name for item in self.items if item.expression in published)

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Columns that depend on nothing but the window and the keys of a group."""
        if self.grouping is None:
            return ()
        names = {WINDOW_END, WINDOW_ID, *self.grouping.key_names}
        read = {item.name: columns_of(item.expression).keys() for item in self.items}
        return tuple(name for name, columns in read.items() if columns and columns <= names)


@dataclass(frozen=True)
class SelectedTable:
    """The rows of one SELECT, or of the SELECTs of a UNION, under a name."""

    name: str
    selections: tuple[Selection, ...]

    @property
    def windows(self) -> tuple[Window, ...]:
        """Windows of its SELECTs."""
        return tuple(window for selection in self.selections for window in selection.windows)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Columns that are keys of GROUP BY in every SELECT."""
        return _in_all(selection.key_columns for selection in self.selections)

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Columns that depend on nothing but the window and the keys of a group in every SELECT."""
        return _in_all(selection.group_columns for selection in self.selections)

    def reads(self, extra_look_back: int) -> Iterator[tuple[str, Reach]]:
        """Yield each table that its rows come from, and the reach of its rows."""
        for selection in self.selections:
            for window in selection.windows:
                yield selection.table, Reach(window, extra_look_back, look_back_of(selection.analytics))

    @property
    def sources(self) -> list[str]:
        """Tables that it reads."""
        return [selection.table for selection in self.selections if selection.groups_view is None]


Table = SelectedTable | JoinedTable | MatchedTable
"""A table that other tables read by its name."""


@dataclass(frozen=True)
class OutputPlan:
    """The tables from which the rows of an output are computed."""

    steps: tuple[Table, ...]
    """Steps, JOINs and matches that it needs, each after those that it reads."""
    output: SelectedTable
    look_backs: Mapping[str, int]
    """How long before the slice the rows of each table must begin, by the name of the table; ticks."""


def _in_all(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names of the first tuple that all others have, too."""
    first, *others = names
    return tuple(name for name in first if all(name in other for other in others))
