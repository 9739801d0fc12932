"""Write Great Expectations' Data Docs of a run's audit."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from recapture.commands.arguments import PipelineArguments
from recapture.run.data_docs import write_data_docs


@dataclass(frozen=True, kw_only=True)
class Arguments(PipelineArguments):
    """Arguments of the command."""

    run: str
    """Name of the run."""
    out: Path
    """The folder to write, new or empty."""


def run(arguments: Arguments, stderr: Console) -> dict[str, Any]:
    """Write the pages, and return the address of the first one."""
    pipeline = arguments.load_pipeline(stderr)
    page = write_data_docs(pipeline, arguments.run, arguments.out).absolute().as_uri()
    if not arguments.json:
        print(page)
    return {"run": arguments.run, "page": page}
