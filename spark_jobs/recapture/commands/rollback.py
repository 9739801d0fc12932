"""Restore what slices held before their last publication."""

from dataclasses import dataclass
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import RangeArguments
from recapture.run.rollback import rollback


@dataclass(frozen=True, kw_only=True)
class Arguments(RangeArguments):
    """Arguments of the command."""

    run: str | None
    """The run that every slice must hold now; None for any."""


def run(arguments: Arguments, stderr: Console) -> dict[str, Any]:
    """Roll back the slices of the range, and return what was restored."""
    result = rollback(arguments.load_pipeline(stderr), arguments.start, arguments.end, arguments.run)
    if not arguments.json:
        printing.print_rollback(printing.console(), result)
    return result
