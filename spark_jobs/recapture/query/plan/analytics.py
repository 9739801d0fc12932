"""Analytic functions as values: what a row takes from the rows before it (docs/time-model.md, section 4.3)."""

from dataclasses import dataclass

from recapture.query.plan.aggregates import Aggregate
from recapture.query.plan.expressions import NULL, Expr, case_when

ROW = "_row"
"""Column that numbers the rows of a partition in arrival order, with gaps."""


@dataclass(frozen=True)
class History:
    """The rows that a row looks at: itself and rows before it."""

    keys: tuple[Expr, ...]
    """Keys of PARTITION BY, over a row."""
    length: int
    """How far it goes back, in ticks."""
    when: Expr | None
    """Condition of WHEN, over a row."""

    @property
    def inputs(self) -> tuple[Expr, ...]:
        """Expressions over a row that decide which rows there are."""
        return self.keys if self.when is None else (*self.keys, self.when)

    def met(self, value: Expr) -> Expr:
        """Return the value, or NULL if the row does not meet the condition."""
        return value if self.when is None else case_when([(self.when, value)], NULL)


@dataclass(frozen=True)
class EarlierValue:
    """LAG or LAST."""

    history: History
    value: Expr
    steps: int
    """How many rows back; 0 for LAST, which may take the row itself."""
    default: Expr

    @property
    def inputs(self) -> tuple[Expr, ...]:
        """Expressions over a row whose values it gives."""
        return self.value, self.default


@dataclass(frozen=True)
class IsFirst:
    """ISFIRST; the length of its history is that of its intervals."""

    history: History

    @property
    def inputs(self) -> tuple[Expr, ...]:
        """Expressions over a row that decide whether it is the first."""
        return self.history.inputs


@dataclass(frozen=True)
class HistoryAggregate:
    """An aggregate with LIMIT DURATION: COUNT, SUM, AVG, MIN, MAX, Collect, TopOne or CollectTop."""

    history: History
    aggregate: Aggregate

    @property
    def inputs(self) -> tuple[Expr, ...]:
        """Expressions over a row that it aggregates."""
        return self.aggregate.inputs


AnalyticFunction = EarlierValue | IsFirst | HistoryAggregate


def result_name(number: int) -> str:
    """Return the name of the column that holds the result of an analytic function."""
    return f"@f{number}"


@dataclass(frozen=True)
class Analytics:
    """The analytic functions of a SELECT. They add the columns `@f0`, … to the rows that it reads."""

    functions: tuple[AnalyticFunction, ...]
    ties: tuple[str, ...] | None
    """Columns that order the rows of one partition that arrived at the same time; None if the rows come in order."""


def look_back_of(analytics: Analytics | None) -> int:
    """Return how long before a row another row can matter to its analytic functions; ticks."""
    return max((function.history.length for function in analytics.functions), default=0) if analytics else 0
