"""The rows of windows in another order than that of time, by their ranks in it.

The rows of a key have the ranks from its first row on. So a rank is also a place in the list of all rows in that order.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recapture.evaluate.panes import starts_of
from recapture.ordering.radix import sorted_order
from recapture.process.compilation import compiled, inlined


class RowRanges(NamedTuple):
    """The rows of windows; both ends of the ranges only grow."""

    first: NDArray[np.int64]
    """First row of each window."""
    last: NDArray[np.int64]
    """The row after the last one of each window."""


class Picks(NamedTuple):
    """The places that are asked for in the order of each window's rows."""

    starts: NDArray[np.int64]
    """Where the places of each window start; at the end, the number of places."""
    places: NDArray[np.int64]
    """Places, from 0; each is less than the number of the window's rows."""


class Ranking:
    """The order of the rows of each window, in the windows of a GROUP BY.

    Where windows share rows, a tree counts the rows that a window holds, by rank: each row enters and leaves it once.
    Otherwise, or in an order of time, the rows of each window are next to each other once all rows are sorted.
    """

    def __init__(
        self, sort_keys: Sequence[NDArray[np.int64]], codes: NDArray[np.int64], windows: RowRanges, by_time: bool
    ) -> None:
        """Sort the rows by `sort_keys`, of which the last comes first.

        `codes` are the numbers of the rows' keys; the rows are in the order of key and time. `by_time` says that the
        last of `sort_keys` is the time.
        """
        self._codes = codes
        share_rows = np.any(windows.first[1:] < windows.last[:-1])
        self._needs_tree = bool(share_rows) and not by_time
        if not share_rows and not by_time:
            is_edge = np.zeros(len(codes) + 1, np.int64)
            is_edge[windows.first] = is_edge[windows.last] = 1
            codes = np.cumsum(is_edge[:-1])
        self._rows = sorted_order([*sort_keys, codes])

    def picked(self, windows: RowRanges, picks: Picks) -> NDArray[np.int64]:
        """Return the row at each place that is asked for, in the order of the rows of each window."""
        if not self._needs_tree:
            return self._rows[np.repeat(windows.first, np.diff(picks.starts)) + picks.places]
        picked = np.empty(len(picks.places), np.int64)
        _pick(self._ranks, self._rows_of_key(windows), windows, picks, picked)
        return self._rows[picked]

    @cached_property
    def _ranks(self) -> NDArray[np.int64]:
        ranks = np.empty(len(self._rows), np.int64)
        ranks[self._rows] = np.arange(len(self._rows))
        return ranks

    def _rows_of_key(self, windows: RowRanges) -> RowRanges:
        """Return the rows of the key of each window."""
        edges = starts_of(self._codes)
        key = np.searchsorted(edges, windows.first, side="right")
        return RowRanges(edges[key - 1], edges[key])


@compiled
def _pick(
    ranks: NDArray[np.int64], rows_of_key: RowRanges, windows: RowRanges, picks: Picks, picked: NDArray[np.int64]
) -> None:
    """Write the rank of the row at each place that is asked for. The tree is a Fenwick tree."""
    tree = np.zeros(len(ranks) + 1, np.int64)
    start = stop = base = size = 0
    for window in range(len(windows.first)):
        while start < min(windows.first[window], stop):
            _count(tree, size, ranks[start] - base, -1)
            start += 1
        start, stop = max(start, windows.first[window]), max(stop, windows.first[window])
        base, size = rows_of_key.first[window], rows_of_key.last[window] - rows_of_key.first[window]
        while stop < windows.last[window]:
            _count(tree, size, ranks[stop] - base, 1)
            stop += 1
        top = 1
        while 2 * top <= size:
            top *= 2
        for number in range(picks.starts[window], picks.starts[window + 1]):
            rank, before, step = 0, picks.places[number], top
            while step:
                if rank + step <= size and tree[rank + step] <= before:
                    rank += step
                    before -= tree[rank]
                step //= 2
            picked[number] = base + rank


@inlined
def _count(tree: NDArray[np.int64], size: int, rank: int, change: int) -> None:
    """Add to the count of a rank."""
    node = rank + 1
    while node <= size:
        tree[node] += change
        node += node & -node
