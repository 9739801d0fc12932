"""How groups are merged from the panes that tasks compute, and which outputs are scalars of such groups.

SELECT k, AVG(t) AS a FROM input GROUP BY k, Tumbling(minute, 1) HAVING COUNT(*) > 2
=> groups of panes: key k, sum of t / count of t where the count of rows is greater than 2

The rows of these outputs need no Spark. For other outputs, Spark SQL reads the groups.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from recapture.model import TYPES, OutputColumn
from recapture.query.merges import (
    WINDOW_END,
    GroupsView,
    MergedGroups,
    MergedSelect,
    MergedWindow,
    Result,
    SpreadResult,
)
from recapture.query.partials import PaneAggregation, Partial
from recapture.query.plan.aggregates import SPREADS, AggregateFunction
from recapture.query.plan.expressions import Expr, cast_as, column
from recapture.query.plan.grouping import Grouping
from recapture.query.plan.in_tasks import SYSTEM, Assignment, InTasks, Selected, conditions_of
from recapture.query.plan.relations import SelectedTable, Selection
from recapture.query.plan.scalars import NotInTasksError, Row, Typed, refuse
from recapture.time_model.windows import HoppingWindow


@dataclass(frozen=True)
class _Group:
    """A group as the row of a select list."""

    columns: pa.Schema
    conditions: tuple[Expr, ...] = ()

    def column(self, name: str) -> Typed:
        if name in SYSTEM:
            name = WINDOW_END
        type_ = self.columns.field(name).type
        return Typed(column(name), type_, finite=type_ != pa.float64())


@dataclass(frozen=True)
class Merger:
    """Decides how groups and the rows of outputs are computed from panes."""

    assignment: Assignment
    in_tasks: Mapping[str, InTasks]
    """What the tasks compute, by the name of the table of the input's view."""

    def reading_groups(self, table: SelectedTable, name: str) -> SelectedTable:
        """Return a table whose SELECTs read groups that are merged from panes, in views that `name` tells apart."""
        selections = (
            replace(selection, groups_view=self._view(selection, f"{name} groups {number}"))
            for number, selection in enumerate(table.selections)
        )
        return replace(table, selections=tuple(selections))

    def selects(
        self, output: SelectedTable, columns: Sequence[OutputColumn]
    ) -> tuple[tuple[MergedSelect, ...], str | None]:
        """Return the SELECTs that give the rows of an output from panes, or none and why."""
        for table, computed in self.in_tasks.items():
            if not computed.aggregations:
                return (), f"tasks do not aggregate the events of {table}"
        try:
            return tuple(self._select(selection, columns) for selection in output.selections), None
        except NotInTasksError as error:
            return (), str(error)
        except RecursionError:
            return (), "the steps are nested too deeply"

    def _select(self, selection: Selection, columns: Sequence[OutputColumn]) -> MergedSelect:
        groups, row = self._read(selection)
        values = tuple((output, _published(output, row.column(output.name))) for output in columns)
        return MergedSelect(groups, row.conditions, values)

    def _read(self, selection: Selection) -> tuple[MergedGroups, Row]:
        """Return the groups that the rows of a selection come from, and a row of the selection."""
        if selection.grouping is not None:
            groups = self._groups(selection, selection.grouping)
            group = _Group(groups.schema)
            having = conditions_of(group, "HAVING", selection.grouping.having)
            return groups, Selected(replace(group, conditions=having), replace(selection, where=None))
        step = self.assignment.steps.get(selection.table)
        if selection.analytics or selection.laterals or not isinstance(step, SelectedTable) or len(step.selections) > 1:
            raise NotInTasksError("a SELECT reads a JOIN, a UNION or an APPLY, or has an analytic function")
        groups, row = self._read(step.selections[0])
        return groups, Selected(row, selection)

    def _view(self, selection: Selection, name: str) -> GroupsView | None:
        """Return the view of the groups of a selection; None if they are not merged from panes."""
        if selection.grouping is None:
            return None
        try:
            return GroupsView(name, self._groups(selection, selection.grouping))
        except NotInTasksError:
            return None

    def _groups(self, selection: Selection, grouping: Grouping) -> MergedGroups:
        """Return the groups of a GROUP BY. Raise NotInTasksError if tasks do not compute its panes."""
        table, aggregations = self.assignment.aggregated(selection)
        computed = self.in_tasks[table].aggregations
        if not set(computed) >= set(aggregations):
            raise NotInTasksError(f"tasks do not aggregate the events of {table}")
        windows = []
        for grouped, aggregation in zip(grouping.windows, aggregations, strict=True):
            assert isinstance(grouped.window, HoppingWindow)
            place = computed.index(aggregation)
            windows.append(MergedWindow(grouped.window, grouped.id, table, place, aggregation))
        return MergedGroups(tuple(windows), tuple(_results(grouping, aggregations[0])))


def _results(grouping: Grouping, aggregation: PaneAggregation) -> Iterator[Result | SpreadResult]:
    partials: dict[str, Partial] = {partial.name: partial for partial in aggregation.partials}
    for number, aggregate in enumerate(grouping.aggregates):
        name, partial, function = f"_r{number}", partials[f"_p{number}"], aggregate.function
        if function in SPREADS:
            count, m2 = partials[f"{partial.name}_n"], partials[f"{partial.name}_m2"]
            of_population = function in (AggregateFunction.STDEVP, AggregateFunction.VARP)
            root = function in (AggregateFunction.STDEV, AggregateFunction.STDEVP)
            yield SpreadResult(name, partial, count, m2, of_population, root)
        else:
            yield Result(name, partial, partials[f"{partial.name}_n"] if function is AggregateFunction.AVG else None)


def _published(output: OutputColumn, value: Typed) -> Expr:
    """Return the value of a published column. A literal NULL gets the type of the column."""
    if value.type == pa.null():
        return cast_as(value.expression, output.type)
    if value.type != TYPES[output.type].view:
        refuse(f"column {output.name}")
    return value.expression
