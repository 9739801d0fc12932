"""Runs that their audits stopped: one small file each, next to the run files, so that one listing finds all of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recapture.run.tables import tables_of
from recapture.run_files.files import FOLDER, range_of_run
from recapture.run_files.planned import PlannedRun
from recapture.storage import Container
from recapture.table.delta import OpenTable
from recapture.time_model import ticks

_FILES = f"{FOLDER}/blocked/"


@dataclass(frozen=True)
class Block:
    """A run that its audit stopped."""

    run: str
    start: int
    """Start of the run's range, in ticks."""
    end: int
    at: datetime
    """Time of the run's last failed audit, in UTC."""


def record_block(run: PlannedRun) -> None:
    """Record that the audit stopped the run."""
    run.files.container.write(f"{_FILES}{run.id}", b"stopped by its audit: see audit.json in the run files\n")


def blocks_in(container: Container) -> list[Block]:
    """Return the runs that their audits stopped, oldest first; `container` is the first output's table."""
    blocks = []
    for blob in container.list(_FILES):
        run = blob.name.removeprefix(_FILES)
        if range_ := range_of_run(run):
            blocks.append(Block(run, *range_, blob.last_modified))
    return sorted(blocks, key=lambda block: block.at)


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
