"""GROUP BY: the groups of the rows of one slice.

Rows become panes, panes become windows (docs/time-model.md, section 4), and each aggregate is computed in all windows
at once. Memory is proportional to the rows and to the groups: a window is a range of panes, and panes are not repeated
for the windows that hold them. Most aggregates take a time proportional to the rows and the groups, too. PERCENTILE,
TopOne and CollectTop take longer by the logarithm of the rows. In windows that overlap, the float sums of a hopping
window, STDEV, VAR and their forms take a time proportional to the panes of all windows: floats must be added in Spark's
order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.evaluate.aggregates import Results, result_type
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.expressions import project
from recapture.evaluate.panes import KeyedRows, panes_of
from recapture.evaluate.sessions import sessions_of
from recapture.evaluate.windowed import Columns, WindowedRows, counted
from recapture.evaluate.windows import hopping, runs, sliding
from recapture.formats.duckdb_sql import one_array
from recapture.ordering.keys import key_codes, partition_ranks
from recapture.query.model import UNANCHORED_COLUMN
from recapture.query.plan.aggregates import RUNNING
from recapture.query.plan.expressions import Expr
from recapture.query.plan.grouping import WINDOW_END, WINDOW_ID, GroupedWindow, Grouping
from recapture.time_model.windows import HoppingWindow, SessionWindow, SlidingWindow

GROUPS_AT_ONCE = 1 << 18
"""Number of groups that are computed at once, so that the memory for their computation is small."""


def groups(rows: pa.Table, grouping: Grouping, bounds: SliceBounds, extra_look_back: int) -> pa.Table:
    """Return the groups of rows that end after slice start - `extra_look_back` ticks and in the slice.

    Rows have `_system_timestamp`, `_arrival` and `_partition`, what the GROUP BY reads, and maybe `_unanchored`. Those
    of a partition come in arrival order, unless an aggregate says otherwise (`Aggregate.ordered`).

    Groups have the columns `_window_id`, `_window_end`, the keys `_k0`, …, the results `_r0`, …, and `_unanchored` if
    the rows have it or there are sessions. The result of a JavaScript aggregate is the list of the events it takes.

    Raise RunError if a sum leaves the bigints.
    """
    columns = _projected(rows, list(dict.fromkeys(inputs(grouping))), bounds)
    if not len(rows):
        return _schema(grouping, columns, UNANCHORED_COLUMN in rows.column_names).empty_table()
    key_columns = [columns(key) for key in grouping.keys]
    times = rows["_system_timestamp"].to_numpy()
    keyed = KeyedRows(_codes(key_columns, len(rows)), partition_ranks(rows["_partition"]), times)
    is_unanchored = rows[UNANCHORED_COLUMN].to_numpy() if UNANCHORED_COLUMN in rows.column_names else None
    grouped_rows = _Rows(grouping, columns, keyed, rows["_arrival"].to_numpy(), is_unanchored)
    after = bounds.start - extra_look_back
    return pa.concat_tables([grouped_rows.groups(grouped, after, bounds.end) for grouped in grouping.windows])


def inputs(grouping: Grouping) -> Iterator[Expr]:
    """Yield the expressions over a row that a GROUP BY needs."""
    yield from grouping.keys
    for aggregate in grouping.aggregates:
        yield from aggregate.inputs


def _schema(grouping: Grouping, columns: Columns, source_unanchored: bool) -> pa.Schema:
    """Return the columns of groups."""
    fields = [(WINDOW_ID, pa.string()), (WINDOW_END, pa.int64())]
    fields += [(f"_k{number}", columns(key).type) for number, key in enumerate(grouping.keys)]
    for number, aggregate in enumerate(grouping.aggregates):
        argument = next((columns(node).type for node in aggregate.inputs), pa.int64())
        fields.append((f"_r{number}", result_type(aggregate, argument)))
    return pa.schema(fields + ([(UNANCHORED_COLUMN, pa.bool_())] if source_unanchored or grouping.unanchored else []))


def _projected(rows: pa.Table, nodes: Sequence[Expr], bounds: SliceBounds) -> Columns:
    """Return a function that gives the values of these expressions over the rows."""
    names = {node: f"{number}" for number, node in enumerate(nodes)}
    projected = project(rows, [(name, node) for node, name in names.items()], None, bounds).combine_chunks()
    return lambda node: one_array(projected[names[node]])


@dataclass(frozen=True)
class _Rows:
    """The rows of a GROUP BY."""

    grouping: Grouping
    columns: Columns
    keyed: KeyedRows
    arrivals: NDArray[np.int64]
    """Arrival of each row, in ticks."""
    is_unanchored: NDArray[np.bool_] | None
    """The column `_unanchored`, if the rows have it."""

    def codes(self, keys: Sequence[int]) -> NDArray[np.int64]:
        """Return a number for each row that tells the values of some keys apart."""
        return _codes([self.columns(self.grouping.keys[key]) for key in keys], len(self.arrivals))

    def groups(self, grouped: GroupedWindow, after: int, until: int) -> pa.Table:
        """Return the groups of a window that end in (after, until]."""
        window, panes = grouped.window, panes_of(self.keyed, grouped.window)
        is_unanchored = self.is_unanchored
        match window:
            case HoppingWindow():
                windows = hopping(panes, window, after, until)
            case SlidingWindow():
                windows = sliding(panes, window, after, until)
            case SessionWindow():
                sessions = sessions_of(self.codes(grouped.partition_by), self.keyed.times, window)
                windows = runs(panes, sessions.ends[panes.rows[panes.starts[:-1]]]).ending_in(after, until)
                is_unanchored = sessions.ruled if is_unanchored is None else is_unanchored | sessions.ruled
            case _:
                windows = runs(panes, panes.times).ending_in(after, until)
        is_running = all(aggregate.function in RUNNING for aggregate in self.grouping.aggregates)
        block = window.size if isinstance(window, SlidingWindow) and is_running else None
        parts = (
            WindowedRows(self.keyed, self.arrivals, panes, part, block) for part in windows.divided(GROUPS_AT_ONCE)
        )
        return pa.concat_tables([self._groups(grouped.id, part, is_unanchored) for part in parts])

    def _groups(self, id: str | None, windowed: WindowedRows, is_unanchored: NDArray[np.bool_] | None) -> pa.Table:
        """Return a row for each window."""
        ends = windowed.windows.ends
        return pa.table(
            {
                WINDOW_ID: pa.repeat(pa.scalar(id, pa.string()), len(ends)),
                WINDOW_END: ends,
                **self._keys(windowed),
                **self._results(windowed),
                **self._unanchored(windowed, is_unanchored),
            }
        )

    def _keys(self, windowed: WindowedRows) -> dict[str, pa.Array]:
        """Return the keys of the groups, in which -0.0 is 0.0."""
        rows = pa.array(windowed.panes.rows[windowed.ranges.first])
        keys = {f"_k{number}": self.columns(key).take(rows) for number, key in enumerate(self.grouping.keys)}
        return {name: pc.add(key, 0.0) if pa.types.is_floating(key.type) else key for name, key in keys.items()}

    def _results(self, windowed: WindowedRows) -> dict[str, pa.ChunkedArray]:
        results = Results(self.columns, windowed)
        return {f"_r{number}": results.of(aggregate) for number, aggregate in enumerate(self.grouping.aggregates)}

    def _unanchored(self, windowed: WindowedRows, is_marked: NDArray[np.bool_] | None) -> dict[str, pa.Array]:
        """Return whether a row of each group is unanchored, if rows or some groups can be."""
        if is_marked is not None:
            marked = counted(is_marked[windowed.panes.rows], windowed.ranges)
            return {UNANCHORED_COLUMN: pa.array(marked.first < marked.last)}
        return {UNANCHORED_COLUMN: pa.repeat(False, len(windowed.windows.ends))} if self.grouping.unanchored else {}


def _codes(keys: Sequence[pa.Array], rows: int) -> NDArray[np.int64]:
    return key_codes(keys) if keys else np.zeros(rows, np.int64)
