"""A compiled query: what it reads of an event, which times it asks for, and the Spark SQL that computes its rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recapture.model import InputColumn, MetadataColumn, OutputColumn, Time, amounts
from recapture.time_model.windows import HoppingWindow, Reach, SessionWindow


@dataclass(frozen=True)
class CompiledOutput:
    """What one SELECT … INTO publishes.

    `sql` reads the view `events`, whose columns are those of the query's `columns` and `metadata` under their names,
    and `_partition` (string), `_slice_start`, `_slice_end`, `_system_timestamp` (bigint, ticks). A datetime there is a
    bigint of ticks; a record or an array is its JSON text.
    It yields the columns of `columns`, in which a datetime is a timestamp, then `slice_start` (timestamp, UTC), and for
    a query with sessions `_unanchored` (boolean): whether the row is one that may have begun before what was read.
    """

    alias: str
    columns: tuple[OutputColumn, ...]
    sql: str


@dataclass(frozen=True)
class CompiledQuery:
    """An ASAQL query, ready to run."""

    columns: tuple[InputColumn, ...]
    metadata: tuple[MetadataColumn, ...]
    timestamp_by: Time | None
    over: tuple[InputColumn | MetadataColumn, ...]
    reaches: tuple[Reach, ...]
    """Which events the windows need."""
    outputs: tuple[CompiledOutput, ...]
    canonical: str
    """The query in one spelling, whatever its white space and its keywords' letter case."""

    @property
    def look_back(self) -> int:
        """How far before a slice an event may lie and still matter to a row of it; ticks."""
        return max(reach.look_back for reach in self.reaches)

    def needs(self, time: NDArray[np.int64], start: int, end: int) -> NDArray[np.bool_]:
        """Which events, by their System.Timestamp, matter to a row of (start, end]; all in ticks."""
        return np.logical_or.reduce([reach.holds(time, start, end) for reach in self.reaches])

    def ends_windows_every(self, length: int) -> bool:
        """Return whether events that are read in so many ticks always have a window that ends in them."""
        windows = [reach.window for reach in self.reaches]
        return not any(
            isinstance(window, SessionWindow) or (isinstance(window, HoppingWindow) and window.hop > length)
            for window in windows
        )

    @property
    def body_columns(self) -> tuple[InputColumn, ...]:
        """All that is read of a body: for the rows, for OVER and for TIMESTAMP BY."""
        over = [column for column in self.over if isinstance(column, InputColumn)]
        return tuple(dict.fromkeys([*self.columns, *over, *amounts(self.timestamp_by)]))
