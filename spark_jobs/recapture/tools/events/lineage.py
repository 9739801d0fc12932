"""Which rows of a query's inputs made rows of its output: a pass from the output back to the inputs.

Each table says which rows of the tables that it reads matter to some of its rows, and which of their columns. What no
column that matters depends on is left out: a LAG in a step, for example, if the row does not show it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.evaluate.analytics import Histories
from recapture.evaluate.values import valid
from recapture.query.plan.analytics import Analytics, result_name
from recapture.query.plan.expressions import Expr, columns_of
from recapture.query.plan.joins import Join, JoinedTable, side_column
from recapture.query.plan.matches import MatchedTable
from recapture.query.plan.relations import Item, SelectedTable, Selection
from recapture.tools.events.absences import Absence, of_history, of_join
from recapture.tools.events.deciding import input_items
from recapture.tools.events.histories import LookedAt, columns_of_function
from recapture.tools.events.members import Groups, Members, row_key
from recapture.tools.events.roles import Role
from recapture.tools.events.traced_tables import END, PART, PLACE, PLACES, TracedTables, divided, key_column

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
_TIME = "_system_timestamp"


@dataclass
class _Marks:
    """The rows of a table that matter, and the columns of them."""

    roles: NDArray[np.int8]
    columns: set[str] = field(default_factory=set)

    @property
    def places(self) -> Int64s:
        return np.flatnonzero(self.roles)

    def add(self, places: Int64s, roles: NDArray[np.int8]) -> None:
        np.maximum.at(self.roles, places, roles)


def roles_of_sources(traced: TracedTables, rows: Int64s, columns: Iterable[str]) -> dict[str, NDArray[np.int8]]:
    """Return the roles of the rows of each view for columns of some rows of the output, by the name of the view."""
    return sources_of(traced, rows, columns)[0]


def sources_of(
    traced: TracedTables, rows: Int64s, columns: Iterable[str]
) -> tuple[dict[str, NDArray[np.int8]], list[Absence]]:
    """Return what `roles_of_sources` does, and what the query looked for and did not find."""
    walk = _Pass(traced)
    return walk.run(rows, columns), walk.absences


@dataclass
class _Pass:
    """A pass from the output back to the inputs."""

    traced: TracedTables
    marks: dict[str, _Marks] = field(default_factory=dict)
    absences: list[Absence] = field(default_factory=list)

    def run(self, rows: Int64s, columns: Iterable[str]) -> dict[str, NDArray[np.int8]]:
        names = [table.name for table in self.traced.all]
        self._mark(names[-1], rows, np.full(len(rows), Role.DECIDING, np.int8), columns)
        for table in reversed(self.traced.all):
            if table.name in self.marks:
                match table:
                    case SelectedTable():
                        self._through_selects(table, self.marks[table.name])
                    case JoinedTable():
                        self._through_join(table, self.marks[table.name])
                    case MatchedTable():
                        self._through_matches(table, self.marks[table.name])
        return {name: marks.roles for name, marks in self.marks.items() if name not in names}

    def _mark(self, name: str, places: Int64s, roles: NDArray[np.int8], columns: Iterable[str]) -> None:
        if name not in self.marks:
            self.marks[name] = _Marks(np.zeros(len(self.traced.of(name).rows), np.int8))
        self.marks[name].add(places, roles)
        self.marks[name].columns.update(columns)

    def _through_join(self, table: JoinedTable, marks: _Marks) -> None:
        """Mark the rows of the sides that are paired in the rows that matter."""
        conditions = [join.condition for join in table.joins]
        conditions += [join.latest_match for join in table.joins if isinstance(join, Join) and join.latest_match]
        names = marks.columns.union(*map(columns_of, conditions))
        origins = self.traced.of(table.name).origins
        self._note_unmatched(table, marks)
        for number, side in enumerate(table.sides):
            prefix = side_column(number, "")
            columns = {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
            places = origins[side_column(number, PLACE)].take(pa.array(marks.places))
            has_row = valid(places)
            rows = places.filter(pa.array(has_row)).to_numpy()
            self._mark_read(side.table, rows, marks.roles[marks.places[has_row]], columns, side.analytics)

    def _note_unmatched(self, table: JoinedTable, marks: _Marks) -> None:
        """Note the sides without a row in rows that matter."""
        origins = self.traced.of(table.name).origins
        sides = [self.traced.of(side.table).rows for side in table.sides]
        for row in marks.places.tolist():
            places = [origins[side_column(number, PLACE)][row].as_py() for number in range(len(sides))]
            missing = [number for number, place in enumerate(places) if place is None]
            self.absences += [of_join(table, number, sides, places, self.traced.bounds) for number in missing]

    def _through_matches(self, table: MatchedTable, marks: _Marks) -> None:
        """Mark the rows of the matches that matter."""
        places = self.traced.of(table.name).origins[PLACES].take(pa.array(marks.places))
        roles = np.repeat(marks.roles[marks.places], pc.list_value_length(places).to_numpy())
        columns = {name for read in (*table.inputs, *table.conditions) for name in columns_of(read)}
        self._mark(table.source, pc.list_flatten(places).to_numpy(), roles, columns)

    def _through_selects(self, table: SelectedTable, marks: _Marks) -> None:
        """Mark the rows that the SELECTs of a table read for the rows that matter."""
        origins = self.traced.of(table.name).origins
        parts = origins[PART].to_numpy()
        for part, selection in enumerate(divided(table)):
            rows = marks.places[parts[marks.places] == part]
            if not len(rows):
                continue
            items = [item.expression for item in selection.items if item.name in marks.columns]
            if selection.grouping is None:
                places = origins[PLACE].take(pa.array(rows)).to_numpy()
                self._mark_selected(selection, places, marks.roles[rows], items)
            else:
                ends = origins[END].take(pa.array(rows)).to_numpy()
                names = [key_column(part, number) for number in range(len(selection.grouping.keys))]
                keys = origins.select(names).take(pa.array(rows)).columns
                self._through_groups(selection, Groups(ends, keys, marks.roles[rows]), items)

    def _through_groups(self, selection: Selection, groups: Groups, items: Sequence[Expr]) -> None:
        """Mark the rows of groups, of which the items and HAVING matter."""
        grouping = selection.grouping
        assert grouping is not None
        read = set[str]().union(*map(columns_of, [*items, *([grouping.having] if grouping.having else [])]))
        needed = {number: aggregate for number, aggregate in enumerate(grouping.aggregates) if f"_r{number}" in read}
        keys = [Item(row_key(number), key) for number, key in enumerate(grouping.keys)]
        entering = self.traced.entering(selection, [*keys, *input_items(needed)])
        members = Members(entering, grouping, needed, self.traced.bounds)
        roles = members.roles(groups)
        rows = np.flatnonzero(roles)
        places = entering[PLACE].take(pa.array(rows)).to_numpy()
        inputs = [*grouping.keys, *(item.expression for item in input_items(needed))]
        self._mark_selected(selection, places, roles[rows], inputs)

    def _mark_selected(
        self, selection: Selection, places: Int64s, roles: NDArray[np.int8], read: Iterable[Expr]
    ) -> None:
        """Mark rows that a SELECT reads, of which these expressions, WHERE and the APPLYs matter."""
        where = [] if selection.where is None else [selection.where]
        arrays = [lateral.array for lateral in selection.laterals]
        columns = set[str]().union(*map(columns_of, [*read, *where, *arrays]))
        self._mark_read(selection.table, places, roles, columns, selection.analytics)

    def _mark_read(
        self, name: str, places: Int64s, roles: NDArray[np.int8], columns: set[str], analytics: Analytics | None
    ) -> None:
        """Mark rows of a table, and those that their analytic functions look at."""
        self._mark(name, places, roles, columns)
        if analytics is None:
            return
        functions = [call for number, call in enumerate(analytics.functions) if result_name(number) in columns]
        if not functions:
            return
        histories = Histories.of(self.traced.of(name).rows, analytics, self.traced.bounds)
        for function in functions:
            looked_at = LookedAt(histories, function)
            for place, role in zip(places.tolist(), roles.tolist(), strict=True):
                absence = of_history(looked_at, place, name, self.traced.of(name).rows, self.traced.bounds)
                self.absences += [] if absence is None else [absence]
                for rows, own in looked_at.by(place):
                    self._mark(name, rows, np.full(len(rows), min(role, own), np.int8), ())
            self.marks[name].columns |= columns_of_function(function)
