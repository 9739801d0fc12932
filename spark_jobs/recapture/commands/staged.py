"""List the runs that wait for a person, and what keeps them from being published."""

from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import load_pipeline
from recapture.keep.waiting import Waiting


def run(stderr: Console, *, file: Path, json: bool) -> dict[str, Any]:
    """Return the runs, oldest first."""
    pipeline = load_pipeline(file, stderr)
    waiting = Waiting(pipeline)
    result = {"pipeline": pipeline.name, "runs": [run.to_dict(waiting.now) for run in waiting.runs()]}
    if not json:
        printing.print_waiting(printing.console(), result, asks_for_approval=pipeline.approval is not None)
    return result
