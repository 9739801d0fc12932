"""Infer CREATE TABLE of each input."""

from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from recapture import printing
from recapture.commands.arguments import require_whole_range
from recapture.definition.pipeline import load_without_query
from recapture.printable import printable
from recapture.tools.infer import inference


def run(
    stderr: Console, *, file: Path, start: datetime | None, end: datetime | None, write: bool, json: bool
) -> dict[str, Any]:
    """Print the statements, `write` them into the pipeline file, and return what they were inferred from."""
    pipeline = load_without_query(file)
    require_whole_range(start, end, "the newest hour")
    if write:
        inference.require_no_create_table(pipeline)
    inferred = inference.infer(pipeline, start, end)
    if not json:
        print(printable(inferred.statement), end="")
    if write:
        inference.write(pipeline, inferred)
    printing.print_warnings(stderr, inferred.warnings)
    if write:
        for table in inferred.inputs:
            stderr.print(f"{escape(str(pipeline.file))}: CREATE TABLE {escape(table.alias)} is written")
    return inferred.summary | {"written": write}
