"""Aggregates as values."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from recapture.model import AsaType
from recapture.query.plan.expressions import Expr, call, cast_as, double
from recapture.query.plan.operations import Op


class AggregateFunction(StrEnum):
    """The aggregates of ASAQL."""

    COUNT = "COUNT"
    COUNT_DISTINCT = "COUNT DISTINCT"
    SUM = "SUM"
    AVG = "AVG"
    MIN = "MIN"
    MAX = "MAX"
    STDEV = "STDEV"
    STDEVP = "STDEVP"
    VAR = "VAR"
    VARP = "VARP"
    PERCENTILE_CONT = "PERCENTILE_CONT"
    PERCENTILE_DISC = "PERCENTILE_DISC"
    COLLECT = "COLLECT"
    COLLECTTOP = "COLLECTTOP"
    TOPONE = "TOPONE"
    USER_DEFINED = "USER DEFINED"
    """The events that a JavaScript aggregate takes, in order."""


SPREADS = (AggregateFunction.STDEV, AggregateFunction.STDEVP, AggregateFunction.VAR, AggregateFunction.VARP)
PERCENTILES = (AggregateFunction.PERCENTILE_CONT, AggregateFunction.PERCENTILE_DISC)
RANKED = (AggregateFunction.COLLECTTOP, AggregateFunction.TOPONE)
"""Those that take rows in the order of an ORDER BY."""
COLLECTIONS = (AggregateFunction.COLLECT, *RANKED, AggregateFunction.USER_DEFINED)
AGGREGATES = {function.value for function in AggregateFunction if " " not in function.value}
"""Names of the aggregates; COUNT DISTINCT is a form of COUNT, and each USER DEFINED one has its own name."""
RUNNING = (
    AggregateFunction.COUNT,
    AggregateFunction.SUM,
    AggregateFunction.AVG,
    AggregateFunction.MIN,
    AggregateFunction.MAX,
)
"""Those whose results of several panes merge into a result of the same form."""
OF_HISTORY = (*RUNNING, AggregateFunction.COLLECT, *RANKED)
"""Those that take LIMIT DURATION."""


@dataclass(frozen=True)
class Ordering:
    """One expression of an ORDER BY; NULL is the smallest."""

    value: Expr
    descending: bool


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a query, over the rows of a relation."""

    function: AggregateFunction
    argument: Expr | None = None
    """Argument, over a row: what it collects, or what it folds. None for whole rows, as in COUNT(*)."""
    argument_type: AsaType | None = None
    """Type of the argument; None for whole rows, and for the record that a JavaScript aggregate takes."""
    orderings: tuple[Ordering, ...] = ()
    share: Fraction = Fraction(0)
    """Share of a percentile, from 0 to 1."""
    limit: int = 0
    """Number of events that CollectTop collects; 0 for all."""
    ordered: bool = True
    """Whether the rows of a partition come in arrival order."""

    @property
    def type(self) -> AsaType:
        """Type of the result."""
        match self.function:
            case AggregateFunction.COUNT | AggregateFunction.COUNT_DISTINCT:
                return AsaType.BIGINT
            case AggregateFunction.AVG | AggregateFunction.PERCENTILE_CONT:
                return AsaType.FLOAT
            case AggregateFunction.COLLECT | AggregateFunction.COLLECTTOP:
                return AsaType.ARRAY
        if self.function in SPREADS or self.argument_type is None:
            return AsaType.FLOAT
        return self.argument_type

    @property
    def inputs(self) -> tuple[Expr, ...]:
        """Expressions over a row that it reads: its argument, if it has one, and what orders the rows."""
        argument = () if self.argument is None else (self.argument,)
        return (*argument, *(ordering.value for ordering in self.orderings))

    def prepared(self) -> Expr:
        """Return the argument as it is folded or collected.

        AVG(i) => cast(i) to a float. For functions that compare floats, -0.0 becomes 0.0.
        """
        if self.argument is None:
            return call(Op.ROW)
        if self.function in COLLECTIONS:
            return self.argument
        if self.function in (AggregateFunction.AVG, *SPREADS):
            return cast_as(self.argument, AsaType.FLOAT)
        if self.argument_type is AsaType.FLOAT and self.function not in (
            AggregateFunction.COUNT,
            AggregateFunction.SUM,
        ):
            return call(Op.ADD, self.argument, double(0.0))
        return self.argument
