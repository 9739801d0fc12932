"""Restore what slices held before their last publication."""

from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import load_pipeline
from recapture.run.rollback import rollback


def run(stderr: Console, *, file: Path, start: datetime, end: datetime, run: str | None, json: bool) -> dict[str, Any]:
    """Roll back the slices of the range, which must hold this `run` if it is given; return what was restored."""
    result = rollback(load_pipeline(file, stderr), start, end, run)
    if not json:
        printing.print_rollback(printing.console(), result)
    return result
