"""How groups are merged from the panes that tasks compute, and which outputs are scalars of such groups.

SELECT k, AVG(t) AS a FROM input GROUP BY k, Tumbling(minute, 1) HAVING COUNT(*) > 2
=> groups of panes: key k, sum of t / count of t where the count of rows is greater than 2

Other outputs are evaluated over the groups, or over the events.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from recapture.model import TYPES, OutputColumn
from recapture.query.plan.aggregates import SPREADS, AggregateFunction
from recapture.query.plan.expressions import Expr, cast_as, column
from recapture.query.plan.grouping import Grouping
from recapture.query.plan.in_tasks import Assignment, InTasks, conditions_of
from recapture.query.plan.panes import (
    GroupsView,
    MergedGroups,
    MergedSelect,
    MergedWindow,
    PaneAggregation,
    Partial,
    Result,
    SpreadResult,
)
from recapture.query.plan.relations import SelectedTable, Selection
from recapture.query.plan.rewrites import through
from recapture.query.plan.scalars import NotInTasksError, Row, Typed, refuse, scalar
from recapture.time_model.windows import HoppingWindow


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

    def _select(self, selection: Selection, columns: Sequence[OutputColumn]) -> MergedSelect:
        while selection.grouping is None:
            selection = self._through_step(selection)
        groups = self._groups(selection, selection.grouping)
        group, values = _row_of(groups.schema), {item.name: item.expression for item in selection.items}
        having = conditions_of(group, "HAVING", selection.grouping.having)
        typed = ((output, scalar(f"column {output.name}", values[output.name], group)) for output in columns)
        return MergedSelect(groups, having, tuple((output, _published(output, value)) for output, value in typed))

    def _through_step(self, selection: Selection) -> Selection:
        """Return a SELECT that reads through a step to the groups that tasks compute in part."""
        step = self.assignment.steps.get(selection.table)
        is_single = isinstance(step, SelectedTable) and len(step.selections) == 1
        reading = through(selection, step.selections[0]) if isinstance(step, SelectedTable) and is_single else None
        if reading is None or reading.analytics or reading.laterals:
            raise NotInTasksError("a SELECT reads a JOIN, a UNION or an APPLY, or has an analytic function")
        return reading

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
            is_population = function in (AggregateFunction.STDEVP, AggregateFunction.VARP)
            root = function in (AggregateFunction.STDEV, AggregateFunction.STDEVP)
            yield SpreadResult(name, partial, count, m2, is_population, root)
        else:
            yield Result(name, partial, partials[f"{partial.name}_n"] if function is AggregateFunction.AVG else None)


def _row_of(groups: pa.Schema) -> Row:
    """Return a group as the row of a select list. An aggregate may be a float that is not finite."""
    types = dict(zip(groups.names, groups.types, strict=True))
    return lambda name: Typed(column(name), types[name], finite=types[name] != pa.float64())


def _published(output: OutputColumn, value: Typed) -> Expr:
    """Return the value of a published column. A literal NULL gets the type of the column."""
    if value.type == pa.null():
        return cast_as(value.expression, output.type)
    if value.type != TYPES[output.type].view:
        refuse(f"column {output.name}")
    return value.expression
