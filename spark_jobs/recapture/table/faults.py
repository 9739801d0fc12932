"""Compare what a table holds with what is published, without reading any file.

The table's snapshot and a listing of its files show what an interrupted change, a vacuum or another program did.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from recapture.table.delta import OpenTable
from recapture.table.files import is_for_input, is_written_by_recapture
from recapture.table.publications import ShownEntry
from recapture.table.snapshot import HeldFile
from recapture.table.stored import fault_of, find

DELETED = "lacks rows that another program deleted"
UNPUBLISHED = "holds rows, but nothing is published"


def faults_of(table: OpenTable, digests: Mapping[str, str | None], *, has_empty_slices: bool = False) -> dict[str, str]:
    """Return what is wrong with slices of a table, by slice_start and in order.

    `digests` are those of the inputs after which the files of the published slices are named; None if the files may
    have any name. With `has_empty_slices`, a published slice may hold nothing.
    """
    held = table.held()
    faults = {start: _fault(held.get(start, ()), digest, has_empty_slices) for start, digest in digests.items()}
    faults |= {start: UNPUBLISHED for start in held if start not in digests}
    sound = {start: held[start][0] for start, fault in faults.items() if fault is None and start in held}
    if sound:
        faults |= {start: fault_of(sound[start], blob) for start, blob in find(table.table.url, sound).items()}
    return {start: fault for start, fault in sorted(faults.items()) if fault is not None}


def lagging_slices(table: OpenTable, name: str, entries: Mapping[str, ShownEntry]) -> Iterator[str]:
    """Yield the slices that do not hold what is published, as a change that was interrupted leaves them.

    `name` is that of the table in `Publication.files`, and `entries` are those of the publications' snapshot. Only the
    table's snapshot is looked at. Slices with files or deletions of other programs are left out, and those of runs that
    did not publish the table, because the query did not have this output yet.
    """
    held = table.held()
    published = {entry.tables for entry in entries.values() if entry.tables is not None}
    without_table = {text for text in published if name not in json.loads(text)}
    texts = {entry.empty for entry in entries.values() if entry.empty is not None}
    without_rows = {text for text in texts if name in json.loads(text)}
    for start, entry in entries.items():
        files = held.get(start, ())
        if any(file.has_deletions or not is_written_by_recapture(file.path) for file in files):
            continue
        if entry.tables in without_table:
            continue
        may_be_empty = entry.empty is None
        if entry.run is None or entry.empty in without_rows:
            is_lagging = bool(files)
        else:
            is_lagging = _fault(files, entry.input_of(name), may_be_empty) is not None
        if is_lagging:
            yield start


def _fault(held: Sequence[HeldFile], digest: str | None, may_be_empty: bool) -> str | None:
    """Return what is wrong with the files that a slice holds; None if nothing is."""
    if not held:
        return None if may_be_empty else "holds nothing"
    is_published = [digest is None or is_for_input(file.path, digest) for file in held]
    if not any(is_published):
        return "holds other rows"
    if len(held) > 1:
        return "holds rows that another program added"
    return DELETED if held[0].has_deletions else None
