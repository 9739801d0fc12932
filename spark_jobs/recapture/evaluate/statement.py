"""The rows of the outputs of a compiled query in one slice, from the rows of its inputs.

A step that several outputs read is evaluated once. Each table is kept under its name and the look-backs that its rows
depend on: its own, and those of the tables that it reads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from recapture.evaluate.analytics import analysed
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.expressions import project
from recapture.evaluate.groups import groups, inputs
from recapture.evaluate.joins import joined
from recapture.evaluate.laterals import applied
from recapture.evaluate.matches import matched
from recapture.model import TYPES, AsaType, OutputColumn, published_schema
from recapture.query.model import UNANCHORED_COLUMN, CompiledOutput
from recapture.query.plan import expressions
from recapture.query.plan.analytics import ROW
from recapture.query.plan.expressions import Expr, columns_of
from recapture.query.plan.grouping import WINDOW_END, Grouping
from recapture.query.plan.joins import JoinedTable
from recapture.query.plan.panes import GroupsView
from recapture.query.plan.relations import Item, OutputPlan, SelectedTable, Selection, Table
from recapture.time_model.ticks import TICKS_PER_MICROSECOND, UNIX_EPOCH

ReadRows = Callable[[str], pa.Table]
"""Returns the rows of an input's view or of reference data, by the name of the view."""
ReadGroups = Callable[[GroupsView], pa.Table]
"""Returns the groups that are merged from panes."""

_TIMES = ("_system_timestamp", "_arrival")


@dataclass
class SliceEvaluation:
    """The rows of one slice, as far as they have been computed."""

    bounds: SliceBounds
    read_rows: ReadRows
    read_groups: ReadGroups
    _tables: dict[object, pa.Table] = field(default_factory=dict)
    """Rows of steps and JOINs."""

    def rows(self, output: CompiledOutput) -> pa.Table:
        """Return the published columns of an output's rows, and `_unanchored` if its query has sessions.

        Raise RunError if the query fails for a value.
        """
        rows = self.table_rows(output.plan)
        times = rows["_system_timestamp"]
        is_within = pc.and_(pc.greater(times, self.bounds.start), pc.less_equal(times, self.bounds.end))
        rows = rows if pc.all(is_within).as_py() else rows.filter(is_within)
        published = published_rows(rows, output.columns)
        if UNANCHORED_COLUMN in rows.column_names:
            published = published.append_column(UNANCHORED_COLUMN, rows[UNANCHORED_COLUMN])
        return published

    def table_rows(self, tables: OutputPlan) -> pa.Table:
        """Return the rows of `tables.output` with all columns that were added, and maybe some from before the slice."""
        return _OutputEvaluation(self, tables).output()


@dataclass(frozen=True)
class _OutputEvaluation:
    """The tables of one output in a slice."""

    slice: SliceEvaluation
    plan: OutputPlan

    def output(self) -> pa.Table:
        """Return the rows of the output, and maybe some from before the slice."""
        return self._united(self.plan.output)

    def _table(self, name: str) -> pa.Table:
        """Return the rows of a view, a step or a JOIN, by its name."""
        table = next((table for table in self.plan.steps if table.name == name), None)
        if table is None:
            return self.slice.read_rows(name)
        kept, key = self.slice._tables, self._key(table)
        if key not in kept:
            kept[key] = self._evaluated(table)
        return kept[key]

    def _evaluated(self, table: Table) -> pa.Table:
        match table:
            case SelectedTable():
                return self._united(table)
            case JoinedTable():
                return self._joined(table)
        return matched(table, self._table(table.source), self.slice.bounds, self.plan.look_backs[table.name])

    def _key(self, table: Table) -> object:
        """Return what the rows of a table depend on: its name, and the look-backs of what it reads and its own."""
        read, todo = {table.name}, [table]
        while todo:
            sources = set(todo.pop().sources)
            todo += [step for step in self.plan.steps if step.name in sources - read]
            read |= sources
        return table.name, frozenset((name, self.plan.look_backs.get(name)) for name in read)

    def _joined(self, table: JoinedTable) -> pa.Table:
        return joined(table, self._table, self.slice.bounds, self.plan.look_backs[table.name])

    def _united(self, table: SelectedTable) -> pa.Table:
        """Return the rows of the SELECTs of a table, one after another."""
        parts = [self._selected(selection, table) for selection in table.selections]
        rows = pa.concat_tables(parts, promote_options="default")
        if UNANCHORED_COLUMN in rows.column_names:
            place, marks = rows.column_names.index(UNANCHORED_COLUMN), rows[UNANCHORED_COLUMN]
            rows = rows.set_column(place, UNANCHORED_COLUMN, pc.fill_null(marks, False))
        return rows

    def _selected(self, selection: Selection, table: SelectedTable) -> pa.Table:
        look_back = self.plan.look_backs[table.name]
        if selection.grouping is not None:
            return self._of_groups(selection, selection.grouping, look_back)
        rows = self._source(selection, look_back)
        numbers = [ROW] if ROW in rows.column_names and len(table.selections) == 1 else []
        system = [*map(_passed, ["_partition", *_TIMES, *numbers]), *_marks(rows)]
        return self._project(rows, [*system, *selection.items], selection.where)

    def _of_groups(self, selection: Selection, grouping: Grouping, look_back: int) -> pa.Table:
        if selection.groups_view is not None:
            rows = self.slice.read_groups(selection.groups_view)
        else:
            rows = self._source(selection, look_back)
            if selection.where is not None:
                rows = self._project(rows, _read_of(rows, grouping), selection.where)
            rows = groups(rows, grouping, self.slice.bounds, look_back)
        times = (Item(name, expressions.column(WINDOW_END)) for name in _TIMES)
        system = [Item("_partition", expressions.string("")), *times, *_marks(rows)]
        return self._project(rows, [*system, *selection.items], grouping.having)

    def _source(self, selection: Selection, look_back: int) -> pa.Table:
        """Return the rows that a SELECT reads, with the results of its analytic functions and its APPLYs."""
        rows = self._table(selection.table)
        if selection.analytics:
            window_look_back = max(window.look_back for window in selection.windows)
            rows = analysed(rows, selection.analytics, self.slice.bounds, look_back + window_look_back)
        return applied(rows, selection.laterals, self.slice.bounds) if selection.laterals else rows

    def _project(self, rows: pa.Table, items: Sequence[Item], where: Expr | None) -> pa.Table:
        return project(rows, [(item.name, item.expression) for item in items], where, self.slice.bounds)


def _passed(name: str) -> Item:
    """Return a column of the rows, under its own name."""
    return Item(name, expressions.column(name))


def _marks(rows: pa.Table) -> list[Item]:
    """Return the column `_unanchored` if the rows have it: they, or what they come from, are sessions."""
    return [_passed(UNANCHORED_COLUMN)] if UNANCHORED_COLUMN in rows.column_names else []


def _read_of(rows: pa.Table, grouping: Grouping) -> list[Item]:
    """Return the columns of rows that a GROUP BY reads."""
    read = {name for expression in inputs(grouping) for name in columns_of(expression)}
    return [_passed(name) for name in rows.column_names if name.startswith("_") or name in read]


def published_rows(rows: pa.Table, columns: Sequence[OutputColumn]) -> pa.Table:
    """Return the published columns of rows of an output's table."""
    return pa.table([_published(column, rows[column.name]) for column in columns], schema=published_schema(columns))


def _published(column: OutputColumn, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as it is published: ticks become a timestamp, truncated to microseconds."""
    if column.type is AsaType.DATETIME:
        values = pc.subtract(pc.divide(values, TICKS_PER_MICROSECOND), UNIX_EPOCH // TICKS_PER_MICROSECOND)
    return values.cast(TYPES[column.type].published)
