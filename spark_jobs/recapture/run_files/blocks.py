"""Runs that their audits stopped: one small file each, next to the run files, so that one listing finds all of them."""

from dataclasses import dataclass
from datetime import datetime

from recapture.run_files.files import FOLDER, RunFiles, range_of_run
from recapture.storage import Container

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


def record_block(files: RunFiles) -> None:
    """Record that the audit stopped a run."""
    files.container.write(f"{_FILES}{files.id}", b"stopped by its audit: see audit.json in the run files\n")


def blocks_in(container: Container) -> list[Block]:
    """Return the runs that their audits stopped, oldest first; `container` is the first output's table."""
    blocks = []
    for blob in container.list(_FILES):
        run = blob.name.removeprefix(_FILES)
        if range_ := range_of_run(run):
            blocks.append(Block(run, *range_, blob.last_modified))
    return sorted(blocks, key=lambda block: block.at)
