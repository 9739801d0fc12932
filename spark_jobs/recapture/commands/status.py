"""Show the states of published and blocked slices."""

from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import load_pipeline, require_whole_range
from recapture.errors import DefinitionError
from recapture.run.slice_state import State
from recapture.run.status import status


def run(
    stderr: Console, *, file: Path, start: datetime | None, end: datetime | None, states: list[str], json: bool
) -> dict[str, Any]:
    """Return the states of slices, only of those in `states` if any. Raise DefinitionError for an unknown state."""
    pipeline = load_pipeline(file, stderr)
    require_whole_range(start, end, "all slices")
    known = {str(state): state for state in State}
    for name in states:
        if name not in known:
            raise DefinitionError(f"--state {name}: the states are {', '.join(known)}")
    result = status(pipeline, start, end, [known[name] for name in states])
    if not json:
        printing.print_status(printing.console(), result)
    return result
