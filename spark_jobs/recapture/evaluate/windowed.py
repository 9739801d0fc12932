"""The rows of a GROUP BY, in the windows that hold them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.evaluate.panes import KeyedRows, Panes, starts_of
from recapture.evaluate.ranking import RowRanges
from recapture.evaluate.ranks import ranks
from recapture.evaluate.windows import Windows
from recapture.ordering.radix import sorted_order
from recapture.query.plan.expressions import Expr

Columns: TypeAlias = Callable[[Expr], pa.Array]
"""Returns the value of an expression for each row."""


@dataclass(frozen=True)
class Halves:
    """Sliding windows as two halves, in the two blocks of time that a window touches; a block is as long as a window.

    The half in the earlier block runs from the end of the block down to the first instant of the window. The half in
    the later block runs from its start up to the last instant.
    """

    instants: NDArray[np.int64]
    """First pane of each instant of a key, whatever its partition; at the end, the number of panes."""
    blocks: NDArray[np.int64]
    """First instant of each block of a key; at the end, the number of instants."""
    first: NDArray[np.int64]
    """First instant of each window."""
    last: NDArray[np.int64]
    """Last instant of each window."""
    has_earlier: NDArray[np.bool_]
    """Which windows have an instant in the earlier block."""
    has_later: NDArray[np.bool_]
    """Which windows have an instant in the later block, in which they end."""


@dataclass(frozen=True)
class WindowedRows:
    """The rows of a GROUP BY, in the windows of one kind that hold them."""

    rows: KeyedRows
    arrivals: NDArray[np.int64]
    """Arrival of each row, in ticks."""
    panes: Panes
    windows: Windows
    block: int | None
    """Size of sliding windows whose float sums are merged from two halves; None if they are merged pane by pane."""

    @cached_property
    def halves(self) -> Halves | None:
        """Halves of sliding windows; None if float sums are merged pane by pane."""
        if self.block is None:
            return None
        panes, windows = self.panes, self.windows
        instants = starts_of(panes.codes, panes.times)
        blocks = panes.times[instants[:-1]] // self.block
        instant_of_pane = np.repeat(np.arange(len(blocks)), np.diff(instants))
        first, last, own = instant_of_pane[windows.first], instant_of_pane[windows.last - 1], windows.ends // self.block
        starts = starts_of(panes.codes[instants[:-1]], blocks)
        return Halves(instants, starts, first, last, blocks[first] < own, blocks[last] == own)

    @cached_property
    def ranges(self) -> RowRanges:
        """Places in `panes.rows` of the rows of each window."""
        return RowRanges(self.panes.starts[self.windows.first], self.panes.starts[self.windows.last])

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """Number of the key of each row, in the order of `panes.rows`."""
        return np.repeat(self.panes.codes, np.diff(self.panes.starts))

    @cached_property
    def panes_of_rows(self) -> NDArray[np.int64]:
        """Pane of each row, in the order of `panes.rows`."""
        return np.repeat(np.arange(len(self.panes.codes)), np.diff(self.panes.starts))


def counted(is_counted: NDArray[np.bool_], ranges: RowRanges) -> RowRanges:
    """Return the ranges among the rows that are counted, of ranges among all rows."""
    before = np.concatenate([[0], np.cumsum(is_counted)])
    return RowRanges(before[ranges.first], before[ranges.last])


def order_by_value(column: pa.Array, windowed: WindowedRows) -> NDArray[np.int64]:
    """Return the places of rows in the order of their panes and, in a pane, of their values."""
    return sorted_order([ranks(column)[0], windowed.panes_of_rows])
