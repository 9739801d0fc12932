"""Write the report of published slices."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import OptionalRangeArguments
from recapture.tools.reports.write import write_range_report


@dataclass(frozen=True, kw_only=True)
class Arguments(OptionalRangeArguments):
    """Arguments of the command."""

    out: Path | None
    """The page to write; None for a file in this folder whose name has the range."""


def run(arguments: Arguments, stderr: Console) -> dict[str, Any]:
    """Write the report, and return its files and its verdict."""
    pipeline = arguments.load_pipeline(stderr)
    arguments.require_whole_range("the newest 744 published slices")
    result = write_range_report(pipeline, arguments.start, arguments.end, arguments.out)
    if not arguments.json:
        printing.print_report(printing.console(), result)
    return result
