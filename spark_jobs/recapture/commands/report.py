"""Write the report of published slices."""

from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import load_pipeline, require_whole_range
from recapture.tools.reports.write import write_range_report, write_trend


def run(
    stderr: Console,
    *,
    file: Path,
    start: datetime | None,
    end: datetime | None,
    trend: bool,
    out: Path | None,
    json: bool,
) -> dict[str, Any]:
    """Write the report, or the trend, to `out` or to a file in this folder; return its files and its verdict."""
    pipeline = load_pipeline(file, stderr)
    require_whole_range(start, end, "the newest 92 days" if trend else "the newest 744 published slices")
    result = (write_trend if trend else write_range_report)(pipeline, start, end, out)
    if not json:
        (printing.print_trend if trend else printing.print_report)(printing.console(), result)
    return result
