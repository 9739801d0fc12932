"""Propose a suite from published slices."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import OptionalRangeArguments
from recapture.run.propose import propose, write


@dataclass(frozen=True, kw_only=True)
class Arguments(OptionalRangeArguments):
    """Arguments of the command."""

    alias: str | None
    """The output; None if the pipeline has only one."""
    out: Path | None
    """The suite file to write; None to print the suite."""


def run(arguments: Arguments, stderr: Console) -> dict[str, Any]:
    """Print or write the proposed suite, and return it."""
    pipeline = arguments.load_pipeline(stderr)
    arguments.require_whole_range("the last 28 days")
    proposal = propose(pipeline, arguments.alias, arguments.start, arguments.end)
    if arguments.out is not None:
        write(pipeline, proposal, arguments.out)
    if not arguments.json:
        printing.print_proposal(proposal, arguments.out, stderr)
    summary = {"output": proposal.output, "slices": proposal.slices, "rows": proposal.rows, "suite": proposal.suite}
    return summary | {"written": None if arguments.out is None else str(arguments.out)}
