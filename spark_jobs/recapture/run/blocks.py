"""The slices that a stopped run blocks."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from recapture.run.tables import tables_of
from recapture.run_files.blocks import Block, blocks_in
from recapture.run_files.planned import PlannedRun
from recapture.table.delta import OpenTable
from recapture.table.publications import NOTHING_SHOWN, ShownEntry, shown_entries
from recapture.time_model import ticks


def blocked_slices(entries: Mapping[str, ShownEntry], blocks: Iterable[Block], length: int) -> dict[str, str]:
    """Return the slices that are blocked, each with the last run that its audit stopped; `length` is that of a slice.

    `entries` are those of the publications' snapshot, by slice_start. A slice is blocked until something is published
    for it. A run that was published or rolled back in spite of an earlier audit does not block.
    """
    blocked: dict[str, str] = {}
    for block in blocks:
        for instant in range(block.start, block.end, length):
            start = ticks.to_text(instant)
            entry = entries.get(start, NOTHING_SHOWN)
            if block.run in (entry.run, entry.taken_back):
                blocked.pop(start, None)
            elif entry.published is None or datetime.fromisoformat(entry.published) < block.at:
                blocked[start] = block.run
    return blocked


def blocked_slices_of(run: PlannedRun) -> list[str]:
    """Return the slices of a run that are blocked now."""
    entries = shown_entries(OpenTable(tables_of(run.pipeline).publications))
    lengths = {run_slice.slice.end - run_slice.slice.start for run_slice in run.manifest.slices}
    blocked = blocked_slices(entries, blocks_in(run.files.container), lengths.pop())
    return [start for start in run.slices if start in blocked]
