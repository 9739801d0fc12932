"""The rows that the groups of a GROUP BY are made of (docs/time-model.md, section 4)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.sessions import sessions_of
from recapture.ordering.keys import key_codes, partition_ranks
from recapture.query.plan.aggregates import Aggregate
from recapture.query.plan.grouping import Grouping
from recapture.time_model.windows import HoppingWindow, SessionWindow, SlidingWindow
from recapture.tools.events.deciding import argument_columns, deciding
from recapture.tools.events.roles import Role

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
_TIME = "_system_timestamp"


def row_key(number: int) -> str:
    """Return the name of the column with a key of the rows."""
    return f"@key {number}"


@dataclass(frozen=True)
class Groups:
    """Groups that matter."""

    ends: Int64s
    """Ends of their windows."""
    keys: Sequence[pa.ChunkedArray]
    """Values of each key."""
    roles: NDArray[np.int8]


@dataclass
class Members:
    """The rows that a GROUP BY with one window aggregates."""

    rows: pa.Table
    """Rows that meet WHERE, with their keys and the columns of `deciding.input_items`."""
    grouping: Grouping
    needed: Mapping[int, Aggregate]
    """Aggregates that matter, by number."""
    bounds: SliceBounds

    @cached_property
    def times(self) -> Int64s:
        times: Int64s = self.rows[_TIME].to_numpy()
        return times

    @cached_property
    def streams(self) -> Int64s:
        """Number of the stream of each row: the rows of a stream share sessions."""
        keys = [self.rows[row_key(number)] for number in self.grouping.windows[0].partition_by]
        return key_codes(keys) if keys else np.zeros(len(self.rows), np.int64)

    @cached_property
    def sessions(self) -> Int64s:
        """End of the session of each row."""
        window = self.grouping.windows[0].window
        assert isinstance(window, SessionWindow)
        return sessions_of(self.streams, self.times, window).ends

    def roles(self, groups: Groups) -> NDArray[np.int8]:
        """Return the role of each row for some groups."""
        roles = np.zeros(len(self.rows), np.int8)
        codes, codes_of_groups = self._codes(groups)
        arrivals, partitions = self.rows["_arrival"].to_numpy(), partition_ranks(self.rows["_partition"])
        order = np.lexsort((partitions, arrivals, self.times, codes))
        starts = np.searchsorted(codes[order], codes_of_groups)
        ends = np.searchsorted(codes[order], codes_of_groups, side="right")
        for number, (start, stop) in enumerate(zip(starts, ends, strict=True)):
            group_roles = self._roles(order[start:stop], int(groups.ends[number]))
            for rows, role in group_roles:
                roles[rows] = np.maximum(roles[rows], min(role, groups.roles[number]))
        return roles

    def _codes(self, groups: Groups) -> tuple[Int64s, Int64s]:
        """Return a number for the key of each row and of each group."""
        count = len(self.rows)
        if not groups.keys:
            return np.zeros(count, np.int64), np.zeros(len(groups.ends), np.int64)
        both = [
            pa.chunked_array([*self.rows[row_key(number)].chunks, *keys.chunks], keys.type)
            for number, keys in enumerate(groups.keys)
        ]
        codes = key_codes(both)
        return codes[:count], codes[count:]

    def _roles(self, rows: Int64s, end: int) -> Iterable[tuple[Int64s, Role]]:
        """Yield rows and their roles for the group of a window; `rows` have its keys, in order of time."""
        times = self.times[rows]
        match self.grouping.windows[0].window:
            case SessionWindow() as window:
                is_member = self.sessions[rows] == end
                yield from self._of_session(int(rows[is_member][0]), window)
            case HoppingWindow(size=size) | SlidingWindow(size=size):
                is_member = (times > end - size) & (times <= end)
            case _:
                is_member = times == end
        members = rows[is_member]
        decides = self._decides(members)
        yield members[decides], Role.DECIDING
        yield members[~decides], Role.CONSIDERED
        if isinstance(self.grouping.windows[0].window, SlidingWindow):
            # The window ends where a row enters it or leaves it.
            size = self.grouping.windows[0].window.size
            entered, left = rows[times == end], rows[times == end - size]
            yield (entered if len(entered) else left)[:1], Role.TIMING

    def _decides(self, members: Int64s) -> Bools:
        """Return which rows of a group decide what its aggregates are."""
        taken = self.rows.take(pa.array(members))
        decides = np.zeros(len(members), np.bool_)
        for number, aggregate in self.needed.items():
            decides |= deciding(aggregate, taken, argument_columns(number, aggregate), self.bounds)
        if not decides.any():
            decides[0] = True  # the group exists as long as it has a row
        return decides

    def _of_session(self, member: int, window: SessionWindow) -> Iterable[tuple[Int64s, Role]]:
        """Yield the rows of a row's session, whatever their keys, and rows around it on which its bounds depend."""
        stream = np.flatnonzero(self.streams == self.streams[member])
        stream = stream[np.argsort(self.times[stream], kind="stable")]
        times = self.times[stream]
        is_inside = self.sessions[stream] == self.sessions[member]
        yield stream[is_inside], Role.TIMING
        alone = sessions_of(np.zeros(int(is_inside.sum()), np.int64), times[is_inside], window).ends
        if (alone == self.sessions[member]).all():
            return
        first, last = np.flatnonzero(is_inside)[[0, -1]]
        pauses = np.diff(times) > window.timeout
        begins = int(np.flatnonzero(np.append(True, pauses)[: first + 1])[-1])
        later = np.flatnonzero(times > times[begins])[:1]
        earlier = (
            [begins - 1] if begins and times[begins] - times[begins - 1] <= window.timeout + window.max_duration else []
        )
        yield stream[[*earlier, *range(begins, last + 1), *later.tolist()]], Role.TIMING
