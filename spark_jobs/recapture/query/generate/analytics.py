"""Analytic functions in Spark SQL: what a row takes from the rows before it (docs/time-model.md, section 4.3).

Spark's window functions do all of it, and they spill to disk. So a key may have any number of rows.
"""

from dataclasses import dataclass

from recapture.query.generate.aggregates import Aggregate
from recapture.query.generate.histories import History, with_aggregates
from recapture.query.generate.select_items import SelectItem, SqlItem, column, select_list
from recapture.query.lower.spark import render
from recapture.query.plan.expressions import Expr, bigint, struct
from recapture.query.plan.expressions import column as plan_column

ROW = column("_row")
"""Column that numbers the rows of a partition in arrival order, with gaps."""


@dataclass(frozen=True)
class EarlierValue:
    """LAG or LAST."""

    history: History
    value: Expr
    steps: int
    """How many rows back; 0 for LAST, which may take the row itself."""
    default: Expr


@dataclass(frozen=True)
class IsFirst:
    """ISFIRST; the length of its history is that of its intervals."""

    history: History


@dataclass(frozen=True)
class HistoryAggregate:
    """An aggregate with LIMIT DURATION: COUNT, SUM, AVG, MIN or MAX."""

    history: History
    aggregate: Aggregate


AnalyticFunction = EarlierValue | IsFirst | HistoryAggregate


def result_name(number: int) -> str:
    """Return the name of the column that holds the result of an analytic function."""
    return f"@f{number}"


@dataclass(frozen=True)
class Analytics:
    """The analytic functions of a SELECT."""

    functions: tuple[AnalyticFunction, ...]
    ties: tuple[SelectItem, ...] | None
    """Columns that order the rows of one partition that arrived at the same time; None if the rows come in order."""

    @property
    def look_back(self) -> int:
        """How long before a row another row can matter to it; ticks."""
        return max(function.history.length for function in self.functions)

    @property
    def has_row_column(self) -> bool:
        """Whether its rows have the column `_row`."""
        return self.ties is None or ROW in self.ties

    def sql(self, table: str, extra_look_back: int) -> str:
        """Return the statement of a table's rows, each with the results `@f0`, … of the functions.

        LAG(x) OVER (LIMIT DURATION(second, 1))
        => SELECT *, CASE WHEN `@@found0`.t > … THEN `@@found0`.v END AS `@f0` FROM (…)

        Rows at or before slice start - `extra_look_back` ticks are left out, because their history was not read
        completely.
        """
        rows = f"SELECT *\nFROM {table}"
        if self.ties is None:
            rows = f"SELECT *, monotonically_increasing_id() AS {ROW.value}\nFROM {table}"
        for number, (history, aggregates) in enumerate(self._aggregates.items()):
            rows = with_aggregates(rows, number, history, aggregates, self._order)
        others = [
            (number, function)
            for number, function in enumerate(self.functions)
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
        for number, function in enumerate(self.functions):
            if isinstance(function, HistoryAggregate):
                grouped.setdefault(function.history, {})[result_name(number)] = function.aggregate
        return grouped

    @property
    def _order(self) -> list[SelectItem]:
        """Columns that order the rows of all partitions."""
        ties = [ROW] if self.ties is None else self.ties
        return [column("_system_timestamp"), column("_arrival"), column("_partition"), *ties]

    def _found(self, function: EarlierValue | IsFirst) -> str:
        """Return what is found in the rows up to a row: the time and the value of one, or how many meet the condition.

        LAG(x) => lag(named_struct('t', `_system_timestamp`, 'v', `x`), 1) IGNORE NULLS OVER (…)
        """
        history = function.history
        by, order = history.by, select_list(self._order)
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
