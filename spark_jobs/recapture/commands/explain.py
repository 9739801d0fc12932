"""Explain what became of events, or which events made a row."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from recapture import printing
from recapture.commands.arguments import load_pipeline
from recapture.commands.diff import require_writable_page, write_page
from recapture.errors import DefinitionError
from recapture.query.model import CompiledInput
from recapture.run.progress import storage_time
from recapture.tools.events.conditions import Selection, condition
from recapture.tools.events.explain import Explainer, event_selection
from recapture.tools.events.find import inputs_of, range_of
from recapture.tools.events.page import explain_page
from recapture.tools.events.row import lineage


def run(
    stderr: Console,
    *,
    file: Path,
    start: datetime | None,
    end: datetime | None,
    event: str | None,
    where: Sequence[str],
    row: str | None,
    alias: str | None,
    output: str | None,
    run_id: str | None,
    out: Path | None,
    json: bool,
) -> dict[str, Any]:
    """Print and return what became of the events, or which events made the row."""
    if (event is not None) + bool(where) + (row is not None) != 1:
        raise DefinitionError("give one of --event PARTITION/SEQUENCE, --where KEY=VALUE and --row NAME=VALUE,…")
    require_writable_page(out)
    pipeline = load_pipeline(file, stderr)
    explainer = Explainer(pipeline, storage_time(pipeline, datetime.now(UTC)), run_id)
    console = printing.console()
    if row is not None:
        if start is not None or end is not None:
            raise DefinitionError("--row names the time of the row: leave out --from and --to")
        made = lineage(explainer, row, output)
        if not json:
            printing.print_lineage(console, made.summary)
        printing.print_warnings(stderr, made.warnings)
        if out is not None:
            write_page(out, explain_page(made.summary))
            stderr.print(f"{escape(str(out))}: the page is written")
        return made.summary
    if out is not None or run_id is not None:
        raise DefinitionError("--out and --run need --row: add it, or remove them")
    if start is None or end is None:
        raise DefinitionError("give the range in which the event arrived, with --from and --to")
    chosen = None if event is None else event_selection(event)

    def select(compiled: CompiledInput) -> Selection:
        if chosen is not None:
            return chosen
        return Selection([condition(text, pipeline.section(compiled.alias).metadata) for text in where])

    inputs = inputs_of(pipeline, alias)
    if event is not None and len(inputs) > 1:
        known = ", ".join(compiled.alias for compiled in inputs)
        raise DefinitionError(f"the query reads several inputs: choose the event's input with --input: {known}")
    explanation = explainer.explain(inputs, select, range_of(start, end))
    if not json:
        printing.print_explanation(console, explanation.summary)
    printing.print_warnings(stderr, explanation.warnings)
    return explanation.summary
