"""Find events in the archive, whatever became of them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from recapture import printing
from recapture.commands.arguments import load_pipeline
from recapture.run.progress import storage_time
from recapture.tools.events import files
from recapture.tools.events.find import find


def run(
    stderr: Console,
    *,
    file: Path,
    start: datetime,
    end: datetime,
    where: Sequence[str],
    alias: str | None,
    out: Path | None,
    json: bool,
) -> dict[str, Any]:
    """Print the events, or write them to `out`, and return them. Raise DefinitionError if they cannot be written."""
    pipeline = load_pipeline(file, stderr)
    if out is not None:
        files.require_writable(pipeline, alias, out)
    result = find(pipeline, where, alias, start, end, storage_time(pipeline, datetime.now(UTC)))
    if out is not None:
        files.write(result, out)
    if not json:
        printing.print_found(printing.console(), result, shows_events=out is None)
    printing.print_warnings(stderr, result.warnings)
    if out is not None:
        stderr.print(f"{escape(str(out))}: the events are written")
    return result.summary(with_events=out is None) | ({} if out is None else {"out": str(out)})
