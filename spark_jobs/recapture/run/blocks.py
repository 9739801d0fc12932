"""The slices that a stopped run blocks."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from recapture.run.tables import tables_of
from recapture.run_files.blocks import Block, blocks_in
from recapture.run_files.planned import PlannedRun
from recapture.table.delta import OpenTable
from recapture.time_model import ticks


def blocked_slices(entries: Mapping[str, Mapping[str, Any]], blocks: Iterable[Block], length: int) -> dict[str, str]:
    """Return the slices that are blocked, each with the last run that its audit stopped; `length` is that of a slice.

    `entries` are those of the publications' snapshot, by slice_start. A slice is blocked until something is published
    for it. A run that was published or rolled back in spite of an earlier audit does not block.
    """
    blocked: dict[str, str] = {}
    for block in blocks:
        for instant in range(block.start, block.end, length):
            start = ticks.to_text(instant)
            entry = entries.get(start, {})
            published = entry.get("published")
            if block.run in (entry.get("run"), entry.get("taken_back")):
                blocked.pop(start, None)
            elif published is None or datetime.fromisoformat(published) < block.at:
                blocked[start] = block.run
    return blocked


def blocked_slices_of(run: PlannedRun) -> list[str]:
    """Return the slices of a run that are blocked now."""
    entries = OpenTable(tables_of(run.pipeline).publications).slices()
    lengths = {run_slice.slice.end - run_slice.slice.start for run_slice in run.manifest.slices}
    blocked = blocked_slices(entries, blocks_in(run.files.container), lengths.pop())
    return [start for start in run.slices if start in blocked]
