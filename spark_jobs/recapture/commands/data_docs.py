"""Write Great Expectations' Data Docs of a run's audit."""

from pathlib import Path
from typing import Any

from rich.console import Console

from recapture.commands.arguments import load_pipeline
from recapture.run.data_docs import write_data_docs


def run(stderr: Console, *, file: Path, run: str, out: Path, json: bool) -> dict[str, Any]:
    """Write the pages of a run into a new or empty folder, and return the address of the first one."""
    page = write_data_docs(load_pipeline(file, stderr), run, out).absolute().as_uri()
    if not json:
        print(page)
    return {"run": run, "page": page}
