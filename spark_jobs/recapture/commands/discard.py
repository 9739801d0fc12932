"""Discard a run that waits for a person."""

from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import load_pipeline
from recapture.keep.waiting import Waiting


def run(stderr: Console, *, file: Path, run: str, json: bool) -> dict[str, Any]:
    """Discard a run, and return which one."""
    pipeline = load_pipeline(file, stderr)
    discarded = Waiting(pipeline).discard(run)
    if not json:
        printing.console().print(f"run {discarded.run} discarded; recapture clean removes its staged rows later")
    return {"pipeline": pipeline.name, "run": discarded.run}
