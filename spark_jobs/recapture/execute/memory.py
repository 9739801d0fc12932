"""How much memory a worker may take, and how many events fit into it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.filesize import decimal

from recapture.execute.shared_keys import shared_keys
from recapture.process.wording import counted
from recapture.query.model import CompiledQuery
from recapture.query.plan.joins import JoinedTable
from recapture.query.plan.relations import SelectedTable, Table
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from recapture.time_model.windows import SlidingWindow

_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Files in which Linux keeps the limit of a container: bytes, or `max`."""
_USED = 0.7
"""Share of the memory that the events of slices take; the rest is for all else."""
_PROCESS = 200 << 20
"""Memory of a worker without events, in bytes."""
_LEAST = 64 << 20

_SELECTED, _COLUMN, _ANALYTIC, _GROUPED, _JOINED, _MATCHED, _SLIDING = 60, 45, 190, 230, 250, 310, 770
"""Bytes that an event takes, at its peak, in each kind of query: measured (docs/operating.md)."""


def available_memory() -> int:
    """Return the memory that this process may use, which a container may limit; bytes."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    texts = [path.read_text().strip() for path in _LIMITS if path.exists()]
    return min([physical, *(int(text) for text in texts if text.isdigit())])


def share_of_worker(workers: int) -> int:
    """Return the memory that the events of a slice may take in one of some workers; bytes."""
    return max(_LEAST, int(available_memory() * _USED) // workers - _PROCESS)


def bytes_per_event(query: CompiledQuery) -> int:
    """Return about how much memory an event of a slice takes while the rows of the slice are computed."""
    most = 0
    for output in query.outputs:
        most = max(most, _SELECTED + _COLUMN * len(output.columns))
        for table in (*output.plan.steps, output.plan.output):
            most = max(most, _of_table(table))
    return most


def _of_table(table: Table) -> int:
    if not isinstance(table, SelectedTable):
        return _JOINED if isinstance(table, JoinedTable) else _MATCHED
    kinds = [0]
    for selection in table.selections:
        if selection.analytics is not None:
            kinds.append(_ANALYTIC)
        if selection.grouping is not None:
            kinds.append(_GROUPED)
            kinds += [_SLIDING for grouped in selection.grouping.windows if isinstance(grouped.window, SlidingWindow)]
    return max(kinds)


def least_memory(query: CompiledQuery, slice_: Slice, events: int) -> int:
    """Return about how much memory the rows of a slice need at least, however the slice is divided; bytes.

    Without shared keys, the events of a look-back cannot be divided. With shared keys, this is 0: how the events are
    distributed over the keys is not known before the run, so a key with most of them is not foreseen.
    """
    if shared_keys(query) is not None:
        return 0
    look_back = max(read.look_back for read in query.inputs)
    share = look_back / (look_back + slice_.end - slice_.start)
    return int(events * share) * bytes_per_event(query)


def memory_warnings(query: CompiledQuery, events_by_slice: Mapping[Slice, int], workers: int) -> Iterator[str]:
    """Yield a line if slices need more memory than a worker may take, given about how many events each has."""
    share = share_of_worker(workers)
    needs = {slice_: least_memory(query, slice_, events) for slice_, events in events_by_slice.items()}
    large = {slice_: need for slice_, need in needs.items() if need > share}
    if large:
        largest = max(large, key=large.__getitem__)
        event_count, need = f"{events_by_slice[largest]:,} events", decimal(large[largest])
        yield (
            f"{counted(len(large), 'slice')} may not fit into memory: slice {ticks.to_text(largest.start)} with about "
            f"{event_count} needs {need}, and each of {counted(workers, 'worker')} may take {decimal(share)}; "
            "the steps of the query share no key, and look back too far to be computed piece by piece: add a key to "
            "GROUP BY, PARTITION BY or JOIN, use fewer workers, or more memory"
        )
