"""Compare the archive with what the published slices of a range read."""

from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import load_pipeline
from recapture.keep.check import check


def run(stderr: Console, *, file: Path, start: datetime, end: datetime, json: bool) -> dict[str, Any]:
    """Return the slices whose blobs have changed."""
    result = check(load_pipeline(file, stderr), start, end)
    if not json:
        printing.print_check(printing.console(), result)
    return result
