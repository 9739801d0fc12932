"""Propose a suite from published slices."""

from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import load_pipeline, require_whole_range
from recapture.run.propose import propose, write


def run(
    stderr: Console,
    *,
    file: Path,
    start: datetime | None,
    end: datetime | None,
    alias: str | None,
    out: Path | None,
    json: bool,
) -> dict[str, Any]:
    """Print the suite that is proposed for an output, or write it to `out`, and return it."""
    pipeline = load_pipeline(file, stderr)
    require_whole_range(start, end, "the last 28 days")
    proposal = propose(pipeline, alias, start, end)
    if out is not None:
        write(pipeline, proposal, out)
    if not json:
        printing.print_proposal(proposal, out, stderr)
    summary = {"output": proposal.output, "slices": proposal.slices, "rows": proposal.rows, "suite": proposal.suite}
    return summary | {"written": None if out is None else str(out)}
