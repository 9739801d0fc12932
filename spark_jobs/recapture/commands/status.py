"""Show the states of published and blocked slices."""

from dataclasses import dataclass
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import OptionalRangeArguments
from recapture.errors import DefinitionError
from recapture.run.slice_state import State
from recapture.run.status import status


@dataclass(frozen=True, kw_only=True)
class Arguments(OptionalRangeArguments):
    """Arguments of the command."""

    states: list[str]
    """States of the slices to show; empty for all."""


def run(arguments: Arguments, stderr: Console) -> dict[str, Any]:
    """Return the states of the slices. Raise DefinitionError for an unknown state."""
    pipeline = arguments.load_pipeline(stderr)
    arguments.require_whole_range("all slices")
    known = {str(state): state for state in State}
    for name in arguments.states:
        if name not in known:
            raise DefinitionError(f"--state {name}: the states are {', '.join(known)}")
    states = [known[name] for name in arguments.states]
    result = status(pipeline, arguments.start, arguments.end, states)
    if not arguments.json:
        printing.print_status(printing.console(), result)
    return result
