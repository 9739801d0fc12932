"""Panes as values: the partial aggregates that tasks compute of events, and how they are merged into groups.

A task has all events of a partition that a slice needs, in arrival order. So it can aggregate them itself, and
returns far fewer rows. It computes only the operations of `ordering.scalars` and the folds of `Fold`.

Each window of a GROUP BY takes the panes that it holds, and their partial aggregates are merged by group. The select
list is then computed for each group (docs/time-model.md, section 6).
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import pyarrow as pa

from recapture.model import OutputColumn
from recapture.query.plan.expressions import Expr
from recapture.query.plan.grouping import WINDOW_END, WINDOW_ID
from recapture.time_model.windows import HoppingWindow


class Fold(StrEnum):
    """How the values of a group are combined, in arrival order. NULL is ignored."""

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


@dataclass(frozen=True)
class MergedWindow:
    """A window of a GROUP BY, and the panes that it takes."""

    window: HoppingWindow
    id: str | None
    """Its name in Windows(Window('id', …), …)."""
    view: str
    """View of the input whose tasks compute the panes."""
    number: int
    """Place of their aggregation among those of the input."""
    aggregation: PaneAggregation


@dataclass(frozen=True)
class Result:
    """An aggregate of a group: partial aggregates merged by their fold, in the order of pane and partition."""

    name: str
    """Name of its column in a group."""
    partial: Partial
    count: Partial | None = None
    """Partial count by which the merged value is divided, for AVG; NULL if there are no values."""

    @property
    def type(self) -> pa.DataType:
        """Type of its column."""
        return self.partial.type if self.count is None else pa.float64()


@dataclass(frozen=True)
class SpreadResult:
    """A variance of a group, or a standard deviation: spreads added in the order of pane and partition."""

    name: str
    """Name of its column in a group."""
    total: Partial
    """Sum of the values."""
    count: Partial
    m2: Partial
    """Sum of the squared differences from the mean, with Fold.SPREAD."""
    of_population: bool
    """Whether m2 is divided by the number of values, otherwise by one less; NULL if the divisor is not positive."""
    root: bool
    """Whether the result is the square root of the variance."""

    @property
    def type(self) -> pa.DataType:
        """Type of its column."""
        return pa.float64()


@dataclass(frozen=True)
class MergedGroups:
    """The groups of a GROUP BY whose panes tasks compute."""

    windows: tuple[MergedWindow, ...]
    results: tuple[Result | SpreadResult, ...]
    look_back: int = 0
    """How long before a slice the windows may end whose groups a later step needs, in ticks."""

    @property
    def schema(self) -> pa.Schema:
        """Columns of a group."""
        keys = [(key.name, key.type) for key in self.windows[0].aggregation.keys]
        results = [(result.name, result.type) for result in self.results]
        return pa.schema([(WINDOW_END, pa.int64()), (WINDOW_ID, pa.string()), *keys, *results])

    @property
    def spreads(self) -> tuple[SpreadResult, ...]:
        """Results that are computed from spreads."""
        return tuple(result for result in self.results if isinstance(result, SpreadResult))

    @property
    def partials(self) -> tuple[Partial, ...]:
        """All partial aggregates that are merged by their own folds."""
        results = [result for result in self.results if isinstance(result, Result)]
        counts = (result.count for result in results if result.count is not None)
        spreads = (spread.m2 for spread in self.spreads)
        return tuple(dict.fromkeys([*(result.partial for result in results), *counts, *spreads]))


@dataclass(frozen=True)
class GroupsView:
    """The view in which a plan reads groups."""

    name: str
    groups: MergedGroups


@dataclass(frozen=True)
class MergedSelect:
    """A SELECT whose rows are groups of panes."""

    groups: MergedGroups
    conditions: tuple[Expr, ...]
    """Conditions that a group has to meet: HAVING, and WHERE of what reads the GROUP BY."""
    columns: tuple[tuple[OutputColumn, Expr], ...]
    """Published columns, with their values over a group. A datetime is in ticks."""
