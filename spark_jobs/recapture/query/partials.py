"""Partial aggregates that the tasks of an input compute, as values: the first step of a GROUP BY, on Arrow.

A task has all events of a partition that a slice needs, in arrival order. So it can aggregate them itself, and far
fewer rows leave it. It computes only the operations of
`ordering.scalars` and the folds of `Fold` (docs/time-model.md, section 6).
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import pyarrow as pa

from recapture.query.plan.expressions import Expr


class Fold(StrEnum):
    """How the values of a group become one, in arrival order; NULL counts for nothing."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    SPREAD = "spread"
    """Sum of the squared differences from the mean, by Welford's algorithm; NULL without values."""


@dataclass(frozen=True)
class Key:
    """One key of a group."""

    name: str
    """Name of its column."""
    value: Expr
    type: pa.DataType


@dataclass(frozen=True)
class Partial:
    """One partial aggregate."""

    name: str
    """Name of its column."""
    fold: Fold
    argument: Expr
    type: pa.DataType
    """Type of the result."""


@dataclass(frozen=True)
class PaneAggregation:
    """The partial aggregates of one window's panes, per slice, partition and group."""

    length: int
    """Length of a pane in ticks."""
    offset: int
    """Shift of the ends of the panes from the multiples of their length; ticks."""
    conditions: tuple[Expr, ...]
    """Conditions that an event has to meet."""
    keys: tuple[Key, ...]
    partials: tuple[Partial, ...]

    @cached_property
    def columns(self) -> pa.Schema:
        """Columns of the panes within a slice: the end of the pane, in ticks, the keys and the partial aggregates."""
        keys = [(key.name, key.type) for key in self.keys]
        partials = [(partial.name, partial.type) for partial in self.partials]
        return pa.schema([("_pane", pa.int64()), *keys, *partials])

    @property
    def schema(self) -> pa.Schema:
        """Columns of the panes, those of their slice and partition included; the bounds of the slice are in ticks."""
        places = [("_slice_start", pa.int64()), ("_slice_end", pa.int64()), ("_partition", pa.string())]
        return pa.schema([*places, *self.columns])
