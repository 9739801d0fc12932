"""The tables of an output in one slice, each row with where it comes from.

The SELECTs of a query get columns more: the number of the row that they read, or the window and the keys of the group.
The rows themselves are those of a run, because the same code computes them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.joins import joined
from recapture.evaluate.matches import Matches, matches_in, measured
from recapture.evaluate.statement import SliceEvaluation
from recapture.query.plan import expressions
from recapture.query.plan.expressions import bigint
from recapture.query.plan.grouping import WINDOW_END
from recapture.query.plan.joins import JoinedTable, side_column
from recapture.query.plan.matches import MatchedTable
from recapture.query.plan.panes import GroupsView
from recapture.query.plan.relations import Item, OutputPlan, SelectedTable, Selection, Table

PLACE = "@place"
"""Column with the number of a row in its table, or in the table that it comes from."""
PLACES = "@places"
"""Column with the numbers of the rows of a match."""
PART = "@part"
"""Column with the number of the SELECT that made a row, as `divided` counts them."""
END = "@end"
"""Column with the end of a group's window."""


def key_column(part: int, number: int) -> str:
    """Return the name of the column with a key of a group that a SELECT made."""
    return f"@key {part}.{number}"


@dataclass(frozen=True)
class TracedTable:
    """The rows of a table, and where they come from."""

    rows: pa.Table
    """Rows, with the column PLACE."""
    origins: pa.Table
    """For each row, columns that say where it comes from; none for the rows of a view."""


@dataclass
class TracedTables:
    """The tables of an output in one slice, from its ordered events."""

    tables: OutputPlan
    bounds: SliceBounds
    read_rows: Callable[[str], pa.Table]
    """Returns the rows of an input's view or of reference data, by the name of the view."""
    _traced: dict[str, TracedTable] = field(default_factory=dict)

    @property
    def all(self) -> Sequence[Table]:
        """Steps, JOINs, matches and the output; each reads tables before it."""
        return (*self.tables.steps, self.tables.output)

    def of(self, name: str) -> TracedTable:
        """Return a table by the name that other tables read it with. Raise RunError if the query fails for a value."""
        if name not in self._traced:
            table = next((table for table in self.all if table.name == name), None)
            if table is None:
                rows = self.read_rows(name)
                self._traced[name] = TracedTable(_numbered(rows), pa.table({}))
            else:
                self._traced[name] = self._evaluated(table)
        return self._traced[name]

    def entering(self, selection: Selection, items: Sequence[Item]) -> pa.Table:
        """Return what a SELECT with GROUP BY aggregates: the rows that meet WHERE, with PLACE and these items."""
        plain = replace(selection, grouping=None, groups_view=None, items=(_passed(PLACE), *items))
        table = SelectedTable("entering", (plain,))
        window_look_back = max(window.look_back for window in selection.windows)
        return self._rows(table, self._look_back_of(selection) + window_look_back)

    def _look_back_of(self, selection: Selection) -> int:
        names = (table.name for table in self.all if isinstance(table, SelectedTable) and selection in divided(table))
        return max(self.tables.look_backs[name] for name in names)

    def _evaluated(self, table: Table) -> TracedTable:
        look_back = self.tables.look_backs[table.name]
        if isinstance(table, MatchedTable):
            matches = matches_in(table, self.of(table.source).rows, self.bounds, look_back)
            return TracedTable(_numbered(measured(table, matches, self.bounds)), _origins_of_matches(matches))
        if isinstance(table, JoinedTable):
            sides = tuple(replace(side, columns=(*side.columns, PLACE)) for side in table.sides)
            rows = joined(replace(table, sides=sides), lambda name: self.of(name).rows, self.bounds, look_back)
            added = [side_column(number, PLACE) for number in range(len(sides))]
        else:
            selections = divided(table)
            items = [_origin_items(selection, part) for part, selection in enumerate(selections)]
            parts = (
                replace(selection, items=(*selection.items, *more))
                for selection, more in zip(selections, items, strict=True)
            )
            rows = self._rows(replace(table, selections=tuple(parts)), look_back)
            added = list(dict.fromkeys(item.name for more in items for item in more))
        return TracedTable(_numbered(rows.drop_columns(added)), rows.select(added))

    def _rows(self, table: SelectedTable, look_back: int) -> pa.Table:
        """Return the rows of a table whose sources are traced."""
        evaluation = SliceEvaluation(self.bounds, lambda name: self.of(name).rows, _no_groups)
        return evaluation.table_rows(OutputPlan((), table, {table.name: look_back}))


def divided(table: SelectedTable) -> list[Selection]:
    """Return the SELECTs of a table: one for each window of a GROUP BY, over rows and not over panes."""
    return [part for selection in table.selections for part in _divided(selection)]


def _divided(selection: Selection) -> Iterator[Selection]:
    if selection.grouping is None:
        yield selection
    else:
        for window in selection.grouping.windows:
            yield replace(selection, groups_view=None, grouping=replace(selection.grouping, windows=(window,)))


def _origin_items(selection: Selection, part: int) -> list[Item]:
    """Return the columns that say where the rows of a SELECT come from."""
    if selection.grouping is None:
        return [Item(PART, bigint(part)), _passed(PLACE)]
    keys = enumerate(selection.grouping.key_names)
    return [
        Item(PART, bigint(part)),
        Item(END, expressions.column(WINDOW_END)),
        *(Item(key_column(part, number), expressions.column(key)) for number, key in keys),
    ]


def _origins_of_matches(matches: Matches) -> pa.Table:
    """Return the rows of each match."""
    lengths = matches.last - matches.first + 1
    offsets = np.append(0, np.cumsum(lengths))
    rows = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - matches.first, lengths)
    places = matches.rows[PLACE].combine_chunks().take(pa.array(rows))
    return pa.table({PLACES: pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), places)})


def _passed(name: str) -> Item:
    """Return a column of the rows, under its own name."""
    return Item(name, expressions.column(name))


def _numbered(rows: pa.Table) -> pa.Table:
    return rows.append_column(PLACE, pa.array(np.arange(len(rows))))


def _no_groups(view: GroupsView) -> pa.Table:
    raise AssertionError(f"{view.name}: groups are computed from rows")
