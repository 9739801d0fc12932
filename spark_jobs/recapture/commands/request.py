"""Request slices: an update computes them, whether they are up to date or not."""

from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import load_pipeline
from recapture.keep.requests import NewRequest, make_request


def run(
    stderr: Console,
    *,
    file: Path,
    start: datetime,
    end: datetime,
    at: datetime | None,
    by: str,
    reason: str | None,
    json: bool,
) -> dict[str, Any]:
    """Make a request, and return it."""
    request = make_request(load_pipeline(file, stderr), NewRequest(start, end, by, at, reason))
    if not json:
        printing.print_requests(printing.console(), [request])
    return request
