"""How much memory a worker may take, and how many events fit into it."""

import os
from pathlib import Path

from recapture.query.generate.joins import JoinedTable
from recapture.query.generate.statements import CommonTable
from recapture.query.model import CompiledQuery
from recapture.time_model.windows import SlidingWindow

_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Files in which Linux keeps the limit of a container: bytes, or `max`."""
_USED = 0.7
"""Share of the memory that the events of slices take; the rest is for all else."""
_PROCESS = 200 << 20
"""Memory of a worker without events, in bytes."""
_LEAST = 64 << 20

_SELECTED, _COLUMN, _ANALYTIC, _GROUPED, _JOINED, _SLIDING = 60, 30, 190, 230, 400, 770
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
        assert output.tables is not None
        most = max(most, _SELECTED + _COLUMN * len(output.columns))
        for table in (*output.tables.steps, output.tables.output):
            most = max(most, _JOINED if isinstance(table, JoinedTable) else _of_table(table))
    return most


def _of_table(table: CommonTable) -> int:
    kinds = [0]
    for selection in table.selections:
        if selection.analytics is not None:
            kinds.append(_ANALYTIC)
        if selection.grouping is not None:
            kinds.append(_GROUPED)
            kinds += [_SLIDING for grouped in selection.grouping.windows if isinstance(grouped.window, SlidingWindow)]
    return max(kinds)
