"""Partial aggregates that the tasks of an input compute, as values: the first step of a GROUP BY, on Arrow.

A task has all events of a partition that a slice needs, in arrival order. So it can aggregate them itself, and far
fewer rows leave it. It computes only what means the same on Arrow as in Spark SQL: the functions of `ScalarFunction`
and `Fold` (docs/time-model.md, section 6).
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa


class ScalarFunction(StrEnum):
    """The functions of a scalar. Without a text of its own, a function of NULL is NULL."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    AND = "AND"
    """Logic with three values: FALSE AND NULL is FALSE."""
    OR = "OR"
    """Logic with three values: TRUE OR NULL is TRUE."""
    NOT = "NOT"
    IS_NULL = "IS NULL"
    """Whether the argument is NULL; never NULL itself."""
    COALESCE = "COALESCE"
    """The first argument that is not NULL."""
    CASE = "CASE"
    """Conditions and values by turns, then the default: the value after the first condition that is true.

    A condition that is NULL is not true.
    """
    TO_FLOAT = "CAST AS FLOAT"
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    MOVE = "DATEADD"
    """A time and a number of ticks: the time so much later. Outside the years 1 to 9999 it stops the run."""


@dataclass(frozen=True)
class Column:
    """A column of a row: an ordered event, or a group of events."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A constant."""

    value: bool | int | float | str | None
    type: pa.DataType


@dataclass(frozen=True)
class Call:
    """A function of scalars."""

    function: ScalarFunction
    arguments: tuple["Scalar", ...]


Scalar: TypeAlias = Column | Constant | Call
"""An expression over one row."""


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
    value: Scalar
    type: pa.DataType


@dataclass(frozen=True)
class Partial:
    """One partial aggregate."""

    name: str
    """Name of its column."""
    fold: Fold
    argument: Scalar
    type: pa.DataType
    """Type of the result."""


@dataclass(frozen=True)
class PaneAggregation:
    """The partial aggregates of one window's panes, per slice, partition and group."""

    length: int
    """Length of a pane in ticks."""
    offset: int
    """Shift of the ends of the panes from the multiples of their length; ticks."""
    conditions: tuple[Scalar, ...]
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
