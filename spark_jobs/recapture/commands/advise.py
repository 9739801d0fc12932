"""Show which tolerances keep how many events of a range unchanged."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from recapture import printing
from recapture.commands.arguments import load_pipeline
from recapture.errors import DefinitionError
from recapture.pages.page import require_installed
from recapture.run.progress import storage_time
from recapture.tools.advise.advice import advise
from recapture.tools.advise.page import page

_OTHER_PAGE = "choose another file with --out"


def run(stderr: Console, *, file: Path, start: datetime, end: datetime, out: Path | None, json: bool) -> dict[str, Any]:
    """Print the advice, write its page to `out`, and return it. Raise DefinitionError if the page is not written."""
    pipeline = load_pipeline(file, stderr)
    if out is not None:
        require_installed()
        if not out.parent.is_dir():
            raise DefinitionError(f"{out}: there is no folder {out.parent}: {_OTHER_PAGE}")
    advice = advise(pipeline, start, end, storage_time(pipeline, datetime.now(UTC)))
    if out is not None:
        try:
            out.write_bytes(page(advice))
        except OSError as error:
            raise DefinitionError(f"{out} cannot be written ({error.strerror}): {_OTHER_PAGE}") from error
    if not json:
        printing.print_advice(printing.console(), advice)
    printing.print_warnings(stderr, advice.warnings)
    if out is not None:
        stderr.print(f"{escape(str(out))}: the page is written")
    return advice.summary
