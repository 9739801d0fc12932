"""Infer CREATE TABLE of each input."""

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape

from recapture import printing
from recapture.commands.arguments import OptionalRangeArguments
from recapture.definition.pipeline import load_without_query
from recapture.printable import printable
from recapture.tools.infer.inference import infer, require_no_create_table, write


@dataclass(frozen=True, kw_only=True)
class Arguments(OptionalRangeArguments):
    """Arguments of the command."""

    write: bool
    """Whether the statements are written into the pipeline file."""


def run(arguments: Arguments, stderr: Console) -> dict[str, Any]:
    """Print the statements, write them if asked to, and return what they were inferred from."""
    pipeline = load_without_query(arguments.pipeline)
    arguments.require_whole_range("the newest hour")
    if arguments.write:
        require_no_create_table(pipeline)
    inference = infer(pipeline, arguments.start, arguments.end)
    if not arguments.json:
        print(printable(inference.statement), end="")
    if arguments.write:
        write(pipeline, inference)
    printing.print_warnings(stderr, inference.warnings)
    if arguments.write:
        for inferred in inference.inputs:
            stderr.print(f"{escape(str(pipeline.file))}: CREATE TABLE {escape(inferred.alias)} is written")
    return inference.summary | {"written": arguments.write}
