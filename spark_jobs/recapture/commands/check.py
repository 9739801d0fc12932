"""Compare the archive with what the published slices of a range read."""

from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import RangeArguments
from recapture.run.changed import check

Arguments = RangeArguments


def run(arguments: Arguments, stderr: Console) -> dict[str, Any]:
    """Return the slices whose blobs have changed."""
    result = check(arguments.load_pipeline(stderr), arguments.start, arguments.end)
    if not arguments.json:
        printing.print_check(printing.console(), result)
    return result
