"""List the requests for slices of a pipeline."""

from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import load_pipeline
from recapture.keep.requests import requests_of


def run(stderr: Console, *, file: Path, json: bool) -> dict[str, Any]:
    """Return the requests, in the order in which they were made."""
    pipeline = load_pipeline(file, stderr)
    requests = requests_of(pipeline)
    if not json:
        printing.print_requests(printing.console(), requests)
    return {"pipeline": pipeline.name, "requests": requests}
