"""Aggregates in two steps whose result does not depend on how Spark shuffles.

First per input partition, whose events are in one task in arrival order; then over the partitions. Sums of floats are
folded in the order of partition ids, because adding floats in another order gives other last bits.
"""

from dataclasses import dataclass
from enum import StrEnum

from spark_jobs.query.model import AsaType


class Function(StrEnum):
    """The aggregates of ASAQL that are supported."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a query. `argument` is Spark SQL over an event; None is the star of COUNT(*)."""

    function: Function
    argument: str | None
    argument_type: AsaType | None

    @property
    def type(self) -> AsaType:
        """The type of the result (time model, section 6)."""
        if self.function is Function.COUNT:
            return AsaType.BIGINT
        if self.function is Function.AVG or self.argument_type is None:
            return AsaType.FLOAT
        return self.argument_type

    def prepared(self) -> str:
        """The argument as it enters the partial aggregates. MIN and MAX tell no zeros apart: 0.0 stands for -0.0."""
        if self.argument is None:
            return "1"
        if self.function is Function.AVG:
            return f"CAST({self.argument} AS DOUBLE)"
        if self.function in (Function.MIN, Function.MAX) and self.argument_type is AsaType.FLOAT:
            return f"({self.argument} + 0.0D)"
        return self.argument

    def partials(self, argument: str, name: str) -> list[str]:
        """The select items of the first step, over the prepared argument."""
        if self.function is Function.AVG:
            return [f"sum({argument}) AS `{name}`", f"count({argument}) AS `{name}_n`"]
        return [f"{self.function}({argument}) AS `{name}`"]

    def merged(self, name: str) -> str:
        """The result of the second step, over the partials."""
        if self.function is Function.AVG:
            return f"({_fold(name)} / nullif(CAST(sum(`{name}_n`) AS DOUBLE), 0.0D))"
        if self.function is Function.SUM and self.type is AsaType.FLOAT:
            return _fold(name)
        if self.function in (Function.COUNT, Function.SUM):
            return f"sum(`{name}`)"
        return f"{self.function}(`{name}`)"


def _fold(name: str) -> str:
    partials = f"array_sort(collect_list(named_struct('p', `_partition`, 's', `{name}`)))"
    return (
        f"aggregate(filter({partials}, x -> x.s IS NOT NULL), CAST(NULL AS DOUBLE),"
        " (total, x) -> coalesce(total + x.s, x.s))"
    )
