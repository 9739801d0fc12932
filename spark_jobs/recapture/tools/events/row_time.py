"""Which columns of an output are the System.Timestamp of its rows."""

from recapture.query.plan.expressions import column
from recapture.query.plan.grouping import WINDOW_END
from recapture.query.plan.joins import JoinedTable, side_column
from recapture.query.plan.matches import MatchedTable
from recapture.query.plan.relations import OutputPlan, Selection

_TIME = "_system_timestamp"


def is_time(tables: OutputPlan, name: str) -> bool:
    """Return whether a published column is the System.Timestamp of the rows, as far as it is passed on unchanged."""
    return all(_selects_time(tables, selection, name) for selection in tables.output.selections)


def _selects_time(tables: OutputPlan, selection: Selection, name: str) -> bool:
    value = next((item.expression for item in selection.items if item.name == name), None)
    if value is None:
        return False
    if selection.grouping is not None:
        return value == column(WINDOW_END)
    return value == column(_TIME) or (value.is_column and _has_time(tables, selection.table, value.name))


def _has_time(tables: OutputPlan, table: str, name: str) -> bool:
    """Return whether a column of a step, or of its rows joined with reference data, is the time of the rows."""
    step = next((step for step in tables.steps if step.name == table), None)
    if step is None:
        return False
    if isinstance(step, JoinedTable):
        first, *others = step.sides
        inner = name.removeprefix(side_column(0, ""))
        is_passed_on = inner != name and all(side.is_reference for side in others)
        return is_passed_on and (inner == _TIME or _has_time(tables, first.table, inner))
    if isinstance(step, MatchedTable):
        return name == _TIME
    return all(_selects_time(tables, selection, name) for selection in step.selections)
