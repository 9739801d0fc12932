"""Cancel a request that has not started."""

from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import load_pipeline
from recapture.keep.requests import cancel_request


def run(stderr: Console, *, file: Path, id: str, by: str, json: bool) -> dict[str, Any]:
    """Cancel a request, and return it."""
    request = cancel_request(load_pipeline(file, stderr), id, by)
    if not json:
        printing.print_requests(printing.console(), [request])
    return request
