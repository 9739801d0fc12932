"""Which outputs need no Spark: their rows are groups of panes that tasks compute, and scalars of such groups.

SELECT k, AVG(t) AS a FROM input GROUP BY k, Tumbling(minute, 1) HAVING COUNT(*) > 2
=> groups of panes: key k, sum of t / count of t where the count of rows is greater than 2
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from recapture.model import TYPES, OutputColumn
from recapture.query.generate.aggregates import SPREADS, Function
from recapture.query.generate.grouping import Grouping
from recapture.query.generate.in_tasks import SYSTEM, Assignment, FilteredRow, InTasks, Selected, conditions_of
from recapture.query.generate.scalars import NotInTasksError, Typed, refuse
from recapture.query.generate.statements import CommonTable, Selection
from recapture.query.generate.values import unquoted_name
from recapture.query.merges import WINDOW_END, MergedSelect, MergedWindow, Result, SpreadResult, group_schema
from recapture.query.partials import Column, Constant, PaneAggregation, Partial, Scalar
from recapture.time_model.windows import HoppingWindow


@dataclass(frozen=True)
class _Group:
    """A group as the row of a select list."""

    columns: pa.Schema
    conditions: tuple[Scalar, ...] = ()

    def column(self, name: str) -> Typed:
        if name in SYSTEM:
            name = WINDOW_END
        type_ = self.columns.field(name).type
        return Typed(Column(name), type_, finite=type_ != pa.float64())


@dataclass(frozen=True)
class Merger:
    """Decides how the rows of outputs are computed from panes."""

    assignment: Assignment
    in_tasks: Mapping[str, InTasks]
    """What the tasks compute, by the name of the table of the input's view."""

    def selects(self, output: CommonTable, columns: Sequence[OutputColumn]) -> tuple[MergedSelect, ...]:
        """Return the SELECTs of an output. Raise NotInTasksError, which says why, if it needs Spark."""
        for table, computed in self.in_tasks.items():
            if not computed.aggregations:
                raise NotInTasksError(f"tasks pass the events of {unquoted_name(table)} on")
        try:
            return tuple(self._select(selection, columns) for selection in output.selections)
        except RecursionError:
            raise NotInTasksError("the steps are nested too deeply") from None

    def _select(self, selection: Selection, columns: Sequence[OutputColumn]) -> MergedSelect:
        grouped, row = self._groups(selection)
        return replace(
            grouped,
            conditions=row.conditions,
            columns=tuple((column, _published(column, row.column(column.name))) for column in columns),
        )

    def _groups(self, selection: Selection) -> tuple[MergedSelect, FilteredRow]:
        """Return the GROUP BY that the rows of a selection come from, without columns, and a row of the selection."""
        if selection.grouping is not None:
            grouped = self._grouped(selection, selection.grouping)
            group = _Group(group_schema(grouped))
            having = conditions_of(group, "HAVING", selection.grouping.having)
            return grouped, Selected(replace(group, conditions=having), replace(selection, where=None))
        step = self.assignment.steps.get(selection.table)
        if selection.analytics or selection.laterals or not isinstance(step, CommonTable) or len(step.selections) > 1:
            raise NotInTasksError("a SELECT reads a JOIN, a UNION or an APPLY, or has an analytic function")
        grouped, row = self._groups(step.selections[0])
        return grouped, Selected(row, selection)

    def _grouped(self, selection: Selection, grouping: Grouping) -> MergedSelect:
        table, aggregations = self.assignment.aggregated(selection)
        computed = self.in_tasks[table].aggregations
        windows = []
        for of_grouping, aggregation in zip(grouping.windows, aggregations, strict=True):
            assert isinstance(of_grouping.window, HoppingWindow)
            window = of_grouping.window
            place = computed.index(aggregation)
            windows.append(MergedWindow(window, of_grouping.id, unquoted_name(table), place, aggregation))
        return MergedSelect(tuple(windows), tuple(_results(grouping, aggregations[0])), (), ())


def _results(grouping: Grouping, aggregation: PaneAggregation) -> Iterator[Result | SpreadResult]:
    partials: dict[str, Partial] = {partial.name: partial for partial in aggregation.partials}
    for number, aggregate in enumerate(grouping.aggregates):
        name, partial, function = f"_r{number}", partials[f"_p{number}"], aggregate.function
        if function in SPREADS:
            count, m2 = partials[f"{partial.name}_n"], partials[f"{partial.name}_m2"]
            of_population = function in (Function.STDEVP, Function.VARP)
            root = function in (Function.STDEV, Function.STDEVP)
            yield SpreadResult(name, partial, count, m2, of_population, root)
        else:
            yield Result(name, partial, partials[f"{partial.name}_n"] if function is Function.AVG else None)


def _published(column: OutputColumn, value: Typed) -> Scalar:
    """Return the value of a published column. A constant NULL gets the type of the column."""
    type_ = TYPES[column.type].view
    if value.type == pa.null():
        return Constant(None, type_)
    if value.type != type_:
        refuse(f"column {column.name}")
    return value.scalar
