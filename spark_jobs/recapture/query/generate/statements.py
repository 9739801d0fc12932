"""The Spark SQL statement of an output: its tables as common table expressions."""

from collections.abc import Sequence

from recapture.model import AsaType, OutputColumn
from recapture.query.generate.analytics import analysed
from recapture.query.generate.joins import joined
from recapture.query.generate.select_items import (
    ROW,
    SLICE_BOUNDS,
    UNANCHORED,
    SqlItem,
    column,
    rendered,
    select_list,
    unanchored_items,
)
from recapture.query.generate.windows import groups
from recapture.query.lower.spark import render
from recapture.query.lower.spark_text import quoted_name
from recapture.query.plan.expressions import Expr
from recapture.query.plan.relations import SLICE_START, Lateral, OutputPlan, SelectedTable, Selection, Table
from recapture.time_model.ticks import TICKS_PER_MICROSECOND, UNIX_EPOCH


def output_sql(plan: OutputPlan, columns: Sequence[OutputColumn]) -> str:
    """Return the statement of an output.

    [`step 0`], `output`, [("x", a float)] => WITH `step 0` AS (…), `output` AS (…) SELECT `x`, … FROM `output` WHERE …
    """
    with_ = ",\n".join(
        f"{quoted_name(table.name)} AS (\n{_table(table, plan.look_backs[table.name])}\n)"
        for table in [*plan.steps, plan.output]
    )
    published = [_published(column.name, column.type) for column in columns]
    published.append(SqlItem(SLICE_START, _timestamp(SLICE_BOUNDS[0].value)))
    if plan.output.unanchored:
        published.append(UNANCHORED)
    return (
        f"WITH {with_}\nSELECT {select_list(published)}\nFROM {quoted_name(plan.output.name)}\n"
        "WHERE `_system_timestamp` > `_slice_start` AND `_system_timestamp` <= `_slice_end`"
    )


def _table(table: Table, extra_look_back: int) -> str:
    """Return SQL of the rows after slice start - `extra_look_back` ticks, and maybe of some earlier ones."""
    if isinstance(table, SelectedTable):
        return "\nUNION ALL\n".join(_selection(selection, extra_look_back, table) for selection in table.selections)
    return joined(table, extra_look_back)


def _lateral(lateral: Lateral) -> str:
    """Return a LATERAL VIEW clause."""
    rows = f"{'OUTER ' if lateral.outer else ''}explode({render(lateral.array)})"
    return f"LATERAL VIEW {rows} `@@l{lateral.number}` AS {quoted_name(lateral.column)}"


def _selection(selection: Selection, extra_look_back: int, table: SelectedTable) -> str:
    items = [*unanchored_items(table.unanchored, selection.unanchored), *rendered(selection.items)]
    rows = quoted_name(selection.table)
    if selection.analytics:
        window_look_back = max(window.look_back for window in selection.windows)
        rows = (
            f"(\n{analysed(selection.analytics, selection.table, extra_look_back + window_look_back)}\n) AS `analysed`"
        )
    source = "\n".join([f"FROM {rows}", *map(_lateral, selection.laterals)])
    source += _where(selection.where)
    if selection.grouping is None:
        numbers = [ROW] if table.has_row_column else []
        of_row = [*SLICE_BOUNDS, column("_partition"), column("_system_timestamp"), column("_arrival"), *numbers]
        return f"SELECT {select_list([*of_row, *items])}\n{source}"
    times = [SqlItem(name, "`_window_end`") for name in ("_system_timestamp", "_arrival")]
    system = [*SLICE_BOUNDS, SqlItem("_partition", "''"), *times]
    if selection.groups_view is None:
        grouped = groups(source, selection.source_unanchored, selection.grouping, extra_look_back)
        rows = f"(\n{grouped}\n)"
    else:
        rows = quoted_name(selection.groups_view.name)
    having = _where(selection.grouping.having)
    return f"SELECT {select_list([*system, *items])}\nFROM {rows} AS `groups`{having}"


def _where(condition: Expr | None) -> str:
    return f"\nWHERE {render(condition)}" if condition is not None else ""


def _published(name: str, type_: AsaType | None) -> SqlItem:
    return SqlItem(name, _timestamp(quoted_name(name))) if type_ is AsaType.DATETIME else column(name)


def _timestamp(ticks: str) -> str:
    """Return ticks as a Spark timestamp, truncated to microseconds."""
    epoch = UNIX_EPOCH // TICKS_PER_MICROSECOND
    return f"timestamp_micros({ticks} div {TICKS_PER_MICROSECOND}L - {epoch}L)"
