"""A compiled query: the columns and times that it reads of an event, and the plan of its rows."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recapture.model import (
    InputColumn,
    JavaScriptFunction,
    MetadataColumn,
    OutputColumn,
    ShapeComparison,
    TimeExpression,
    dateadd_fields,
)
from recapture.query.plan.panes import GroupsView, MergedSelect, PaneAggregation
from recapture.query.plan.relations import OutputPlan
from recapture.time_model.windows import HoppingWindow, JoinedSide, Reach, SessionWindow, Window

UNANCHORED_COLUMN = "_unanchored"
"""Column that marks the rows of sessions cut by the rule for sparse streams; rows without sessions do not have it."""


def input_view(alias: str) -> str:
    """Return the name of the view of an input's ordered events."""
    return f"input {alias}"


def reference_view(alias: str) -> str:
    """Return the name of the view of reference data."""
    return f"reference {alias}"


@dataclass(frozen=True)
class CompiledOutput:
    """What the SELECTs INTO one output publish."""

    alias: str
    """Name after INTO."""
    columns: tuple[OutputColumn, ...]
    """Published columns, in order."""
    plan: OutputPlan = field(compare=False, repr=False)
    """Tables from which the rows are computed.

    They read the views of the inputs (`CompiledInput.view`): an input's `columns` and `metadata` under their names,
    `_partition`, and `_system_timestamp` and `_arrival` in ticks. A datetime in a view is a bigint of ticks; a record
    or an array is its JSON text. Views of reference data have `columns`, `_valid_from` (inclusive) and `_valid_until`
    (exclusive), both in ticks, which bound the System.Timestamps at which a row is in force.

    The rows have `columns`. A query with sessions adds `_unanchored`: the row's session is cut by the rule for sparse
    streams (docs/time-model.md, section 4.2).
    """
    selects: tuple[MergedSelect, ...] = ()
    """SELECTs that give the same rows from panes alone; none if that is not possible."""
    not_merged_because: str | None = None
    """Why there are no `selects`; None if there are, or if tasks were not asked to aggregate."""
    keys: tuple[str, ...] = ()
    """Published columns that are keys of GROUP BY in every SELECT that writes to the output."""
    group_columns: tuple[str, ...] = ()
    """Published columns that depend on nothing but the window and the keys of GROUP BY in every such SELECT."""


@dataclass(frozen=True)
class CompiledInput:
    """What a query reads of an input, and how the input is ordered in time."""

    alias: str
    """Name after FROM, as the pipeline spells it."""
    columns: tuple[InputColumn, ...]
    """Fields of the body that the rows need."""
    columns_to_check: tuple[InputColumn, ...]
    """Fields that CREATE TABLE declares: an event without one, or with a value of another type, is malformed."""
    metadata: tuple[MetadataColumn, ...]
    """Metadata that the rows need."""
    timestamp_by: TimeExpression | None
    """Application time after TIMESTAMP BY; None for the arrival time."""
    over: tuple[InputColumn | MetadataColumn, ...]
    """Keys after OVER, each with a timeline of its own."""
    keys: tuple[InputColumn | MetadataColumn, ...]
    """What tells the senders apart: the keys after OVER, or else those after GROUP BY; none if they are no columns."""
    reaches: tuple[Reach, ...]
    """Reaches of the windows and of the JOINs over the input: the events that each needs."""
    aggregations: tuple[PaneAggregation, ...] = ()
    """What its tasks aggregate; nothing if they return the ordered events."""
    not_aggregated_because: str | None = None
    """Why its tasks return the ordered events; None if they aggregate, or if they were not asked to."""

    @property
    def view(self) -> str:
        """Name of the view of its ordered events."""
        return input_view(self.alias)

    @property
    def look_back(self) -> int:
        """Longest time before a slice at which an event can matter to a row of the slice; ticks."""
        return max(reach.look_back for reach in self.reaches)

    def needs(self, time: NDArray[np.int64], start: int, end: int) -> NDArray[np.bool_]:
        """Return whether each event, by its System.Timestamp, matters to a row of (start, end]; all in ticks."""
        return np.logical_or.reduce([reach.holds(time, start, end) for reach in self.reaches])

    @property
    def body_columns(self) -> tuple[InputColumn, ...]:
        """All fields of the body that are read: for the rows, for OVER and for TIMESTAMP BY."""
        over = [column for column in self.over if isinstance(column, InputColumn)]
        return tuple(dict.fromkeys([*self.columns, *over, *dateadd_fields(self.timestamp_by)]))


@dataclass(frozen=True)
class CompiledReference:
    """What a query reads of reference data."""

    alias: str
    """Name after JOIN, as the pipeline spells it."""
    columns: tuple[InputColumn, ...]
    """Fields that the rows need."""
    columns_to_check: tuple[InputColumn, ...]
    """Fields that CREATE TABLE declares: a row without one, or with a value of another type, stops the run."""

    @property
    def body_columns(self) -> tuple[InputColumn, ...]:
        """Fields to read."""
        return tuple(dict.fromkeys([*self.columns, *self.columns_to_check]))

    @property
    def view(self) -> str:
        """Name of the view of its rows."""
        return reference_view(self.alias)


@dataclass(frozen=True)
class CompiledQuery:
    """An ASAQL query, ready to run."""

    inputs: tuple[CompiledInput, ...]
    """Inputs of events that it reads."""
    windows: tuple[Window | JoinedSide, ...]
    """Windows, and sides of JOINs, over the events and over steps."""
    outputs: tuple[CompiledOutput, ...]
    canonical: str
    """Query in one spelling, whatever its white space and the case of its keywords."""
    groups: tuple[GroupsView, ...] = ()
    """Views of groups that the plans of the outputs read."""
    rewrites: tuple[str, ...] = ()
    """How the relations of the query were rewritten, for readers (see plan.rewrites)."""
    references: tuple[CompiledReference, ...] = ()
    """Reference data that it reads."""
    functions: tuple[JavaScriptFunction, ...] = ()
    """JavaScript functions that it calls."""
    geography: tuple[ShapeComparison, ...] = ()
    """Geospatial functions that compare shapes and that it calls."""

    @property
    def python_functions(self) -> tuple[JavaScriptFunction | ShapeComparison, ...]:
        """Functions in Python that it calls."""
        return (*self.functions, *self.geography)

    def ends_windows_every(self, length: int) -> bool:
        """Return whether every window, those over steps included, ends in each stretch of `length` ticks with events.

        Sessions may not, and neither may hops longer than `length` or than their window. A JOIN may have no rows.
        """
        return not any(
            isinstance(window, SessionWindow | JoinedSide)
            or (isinstance(window, HoppingWindow) and window.hop > min(length, window.size))
            for window in self.windows
        )
