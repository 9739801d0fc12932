"""Show which tolerances keep how many events of a range unchanged."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from recapture import printing
from recapture.commands.arguments import RangeArguments
from recapture.errors import DefinitionError
from recapture.pages.page import require_installed
from recapture.run.progress import storage_time
from recapture.tools.advise.advice import advise
from recapture.tools.advise.page import page

_OTHER_PAGE = "choose another file with --out"


@dataclass(frozen=True, kw_only=True)
class Arguments(RangeArguments):
    """Arguments of the command."""

    out: Path | None
    """The page to write; None for none."""


def run(arguments: Arguments, stderr: Console) -> dict[str, Any]:
    """Print the advice, write its page if asked to, and return it. Raise DefinitionError if the page is not written."""
    pipeline = arguments.load_pipeline(stderr)
    if arguments.out is not None:
        require_installed()
        if not arguments.out.parent.is_dir():
            raise DefinitionError(f"{arguments.out}: there is no folder {arguments.out.parent}: {_OTHER_PAGE}")
    advice = advise(pipeline, arguments.start, arguments.end, storage_time(pipeline, datetime.now(UTC)))
    if arguments.out is not None:
        try:
            arguments.out.write_bytes(page(advice))
        except OSError as error:
            raise DefinitionError(f"{arguments.out} cannot be written ({error.strerror}): {_OTHER_PAGE}") from error
    if not arguments.json:
        printing.print_advice(printing.console(), advice)
    printing.print_warnings(stderr, advice.warnings)
    if arguments.out is not None:
        stderr.print(f"{escape(str(arguments.out))}: the page is written")
    return advice.summary
