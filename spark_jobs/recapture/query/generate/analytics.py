"""Analytic functions in Spark SQL: what a row takes from the rows before it (docs/time-model.md, section 4.3).

Spark's window functions do all of it, and they spill to disk. So a key may have any number of rows.
"""

from dataclasses import dataclass

from recapture.query.generate.histories import shared_by, with_aggregates
from recapture.query.generate.select_items import ROW, SqlItem, column, select_list
from recapture.query.lower.spark import render
from recapture.query.lower.spark_text import quoted_name
from recapture.query.plan.aggregates import Aggregate
from recapture.query.plan.analytics import Analytics, EarlierValue, History, HistoryAggregate, IsFirst, result_name
from recapture.query.plan.expressions import bigint, struct
from recapture.query.plan.expressions import column as plan_column


def analysed(analytics: Analytics, table: str, extra_look_back: int) -> str:
    """Return the statement of a table's rows, each with the results of its analytic functions."""
    return _AnalyticsSql(analytics).sql(table, extra_look_back)


@dataclass(frozen=True)
class _AnalyticsSql:
    analytics: Analytics

    def sql(self, table: str, extra_look_back: int) -> str:
        """Return the statement of a table's rows, each with the results `@f0`, … of the functions.

        LAG(x) OVER (LIMIT DURATION(second, 1))
        => SELECT *, CASE WHEN `@@found0`.t > … THEN `@@found0`.v END AS `@f0` FROM (…)

        Rows at or before slice start - `extra_look_back` ticks are left out, because their history was not read
        completely.
        """
        table = quoted_name(table)
        rows = f"SELECT *\nFROM {table}"
        if self.analytics.ties is None:
            rows = f"SELECT *, monotonically_increasing_id() AS {ROW.value}\nFROM {table}"
        for number, (history, aggregates) in enumerate(self._aggregates.items()):
            rows = with_aggregates(rows, number, history, aggregates, self._order)
        others = [
            (number, function)
            for number, function in enumerate(self.analytics.functions)
            if not isinstance(function, HistoryAggregate)
        ]
        found = [SqlItem(f"@@found{number}", self._found(function)) for number, function in others]
        results = [SqlItem(result_name(number), _result(number, function)) for number, function in others]
        rows = _extended(_extended(f"FROM (\n{rows}\n)", found), results)
        return f"SELECT *\n{rows}\nWHERE `_system_timestamp` > `_slice_start` - {extra_look_back}L"

    @property
    def _aggregates(self) -> dict[History, dict[str, Aggregate]]:
        """Aggregates by history, each under the name of its result."""
        grouped: dict[History, dict[str, Aggregate]] = {}
        for number, function in enumerate(self.analytics.functions):
            if isinstance(function, HistoryAggregate):
                grouped.setdefault(function.history, {})[result_name(number)] = function.aggregate
        return grouped

    @property
    def _order(self) -> list[SqlItem]:
        """Columns that order the rows of all partitions."""
        ties = [ROW] if self.analytics.ties is None else map(column, self.analytics.ties)
        return [column("_system_timestamp"), column("_arrival"), column("_partition"), *ties]

    def _found(self, function: EarlierValue | IsFirst) -> str:
        """Return what is found in the rows up to a row: the time and the value of one, or how many meet the condition.

        LAG(x) => lag(named_struct('t', `_system_timestamp`, 'v', `x`), 1) IGNORE NULLS OVER (…)
        """
        history = function.history
        by, order = shared_by(history), select_list(self._order)
        if isinstance(function, IsFirst):
            interval = f"(`_system_timestamp` + {history.length - 1}L) div {history.length}L"
            over = f"OVER (PARTITION BY {by}, {interval} ORDER BY {order} ROWS UNBOUNDED PRECEDING)"
            return f"count({render(history.met(bigint(1)))}) {over}"
        row = render(history.met(struct([("t", plan_column("_system_timestamp")), ("v", function.value)])))
        over = f"OVER (PARTITION BY {by} ORDER BY {order}"
        if function.steps == 0:
            return f"last({row}, true) {over} ROWS UNBOUNDED PRECEDING)"
        return f"lag({row}, {function.steps}) IGNORE NULLS {over})"


def _extended(source: str, items: list[SqlItem]) -> str:
    """Return the FROM of rows that have more columns.

    FROM (…), x + 1 AS y => FROM (SELECT *, x + 1 AS y FROM (…))
    """
    return f"FROM (\nSELECT {', '.join(['*', *(select_list([item]) for item in items)])}\n{source}\n)"


def _result(number: int, function: EarlierValue | IsFirst) -> str:
    found, length = f"`@@found{number}`", function.history.length
    if isinstance(function, IsFirst):
        is_first, when = f"({found} = 1L)", function.history.when
        first = is_first if when is None else f"({render(when)} AND {is_first})"
        return f"(CASE WHEN {first} THEN 1L ELSE 0L END)"
    within, default = f"{found}.t > `_system_timestamp` - {length}L", render(function.default)
    return f"(CASE WHEN {within} THEN {found}.v ELSE {default} END)"
