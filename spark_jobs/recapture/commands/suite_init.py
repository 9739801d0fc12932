"""Propose a suite for an output from what is published of it."""

from datetime import datetime, timedelta
from json import dumps
from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import load_pipeline, require_whole_range
from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Output
from recapture.errors import DefinitionError, RunError
from recapture.quality import suites
from recapture.run.published import metrics_of, published_files, rows_of, with_columns
from recapture.run.slices import require_whole_slices, slices_of
from recapture.run.tables import metrics_key, tables_of
from recapture.table.delta import OpenTable
from recapture.table.schema import SLICE_COLUMN
from recapture.time_model import ticks

DEFAULT_DAYS = 28
"""Number of days, up to the newest published slice, from which a suite is proposed without a range."""


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
    """Print a suite that the published slices of a range pass, or write it to `out`, and return it.

    Without a range, they are those of the DEFAULT_DAYS up to the newest one. `alias` names the output if there are
    several. Raise DefinitionError for an unknown output, a range that is not whole slices, or an `out` that exists.
    Raise RunError if nothing is published in the range.
    """
    pipeline = load_pipeline(file, stderr)
    require_whole_range(start, end, "the last 28 days")
    suites.require_installed()
    output = _output(pipeline, alias)
    if start is not None and end is not None:
        require_whole_slices(pipeline, start, end)
    tables = tables_of(pipeline).others
    starts = _starts(pipeline, OpenTable(tables[output.alias]), start, end)
    columns = [column.name for column in pipeline.compiled(output).columns]
    files = published_files(tables[output.alias], starts)
    metrics = published_files(tables[metrics_key(output)], starts)
    if not files or not metrics:
        raise RunError(f"nothing is published in this range of {output.table}: see recapture status")
    rows = with_columns(files, columns)
    if not rows:
        raise RunError(f"all slices of {output.table} in this range lack columns of the query: backfill some first")
    from recapture.quality import proposal

    published = proposal.published_slices(rows_of(rows, columns), metrics_of(metrics), list(rows), pipeline.slice_hours)
    suite = proposal.propose(output.alias, published)
    text = dumps(suite, indent=2, ensure_ascii=False) + "\n"
    if out is not None:
        _write(text, out)
        suites.load(out, [*columns, SLICE_COLUMN])
    result = {"output": output.alias, "slices": len(rows), "rows": len(published.rows), "suite": suite}
    result["left_out"] = len(files) - len(rows)
    result["written"] = None if out is None else str(out)
    if not json:
        printing.print_proposal(stderr, text, result)
    return result


def _write(text: str, path: Path) -> None:
    """Write the suite file. Raise DefinitionError if it exists, or cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise DefinitionError(f"{path} already exists and is not overwritten: choose another file with --out") from None
    except OSError as error:
        raise DefinitionError(f"{path} cannot be written ({error.strerror}): choose another with --out") from error


def _output(pipeline: Pipeline, alias: str | None) -> Output:
    by_alias = {output.alias: output for output in pipeline.outputs}
    if alias is None and len(by_alias) == 1:
        return pipeline.outputs[0]
    if alias not in by_alias:
        asked = "there are several outputs" if alias is None else f"there is no output {alias}"
        raise DefinitionError(f"{asked}: choose one with --alias, of {', '.join(by_alias)}")
    return by_alias[alias]


def _starts(pipeline: Pipeline, table: OpenTable, start: datetime | None, end: datetime | None) -> list[int]:
    if start is not None and end is not None:
        return [slice_.start for slice_ in slices_of(pipeline, start, end)]
    published = [datetime.fromisoformat(text) for text in table.slices()]
    oldest = max(published) - timedelta(DEFAULT_DAYS) if published else None
    return [ticks.from_datetime(instant) for instant in published if oldest is not None and instant > oldest]
