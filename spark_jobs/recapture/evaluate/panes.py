"""Rows in the order of their panes. A pane is a time range that every window contains completely or not at all.

A pane holds rows of one key and one partition: those of a tumbling window, of a hop's share of a hopping window, or of
one instant.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recapture.ordering.radix import sorted_order
from recapture.time_model.windows import HoppingWindow, Window


class KeyedRows(NamedTuple):
    """The rows of a GROUP BY, as numbers."""

    codes: NDArray[np.int64]
    """Number of each row's key (see `keys.key_codes`)."""
    partitions: NDArray[np.int64]
    """Rank of each row's partition."""
    times: NDArray[np.int64]
    """System.Timestamp of each row, in ticks."""


class Panes(NamedTuple):
    """The panes of rows, in the order of key, time and partition."""

    rows: NDArray[np.int64]
    """The rows in the order of their panes; within a pane in the order in which they came."""
    starts: NDArray[np.int64]
    """Place in `rows` of the first row of each pane; at the end, the number of rows."""
    codes: NDArray[np.int64]
    """Number of each pane's key."""
    times: NDArray[np.int64]
    """End of each pane, inclusive, in ticks."""


def panes_of(rows: KeyedRows, window: Window) -> Panes:
    """Return the panes of rows for a window."""
    times = rows.times
    if isinstance(window, HoppingWindow):
        length = math.gcd(window.size, window.hop)
        times = times + (window.offset - times) % length
    order = sorted_order([rows.partitions, times, rows.codes])
    codes, times = rows.codes[order], times[order]
    starts = starts_of(codes, times, rows.partitions[order])
    return Panes(order, starts, codes[starts[:-1]], times[starts[:-1]])


def starts_of(*columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each run of rows with equal values starts; at the end, the number of rows."""
    count = len(columns[0])
    is_first = np.ones(count, np.bool_)
    if count:
        is_first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.append(np.flatnonzero(is_first), count)
