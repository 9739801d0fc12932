"""Compare the output of a live job with what is published, and give each difference a reason."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from recapture import printing
from recapture.commands.arguments import load_pipeline
from recapture.commands.diff import compute_on, require_writable_page, write_page
from recapture.commands.progress import ProgressBar
from recapture.errors import DefinitionError, RunError
from recapture.process import log
from recapture.run.slices import require_whole_slices, slices_of
from recapture.storage.scratch import remove_abandoned, scratch_folder
from recapture.table.row_changes import comparisons
from recapture.time_model import ticks
from recapture.tools.compare.document import Comparison, compare, output_of, time_column
from recapture.tools.compare.live import parse_columns
from recapture.tools.compare.page import page
from recapture.tools.compare.trials import Trials
from recapture.tools.diff.document import published_entries
from recapture.tools.diff.tried import Tried


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Arguments of the command, apart from the pipeline file and what the live job may have had."""

    live: str
    """Address of the live job's output."""
    start: datetime
    end: datetime
    alias: str | None
    columns: str | None
    time: str | None
    downtimes: list[str]
    """Times between which the live job did not run, each as FROM/TO."""
    master: str
    out: Path | None
    json: bool


def run(
    stderr: Console,
    *,
    file: Path,
    query: Path | None,
    late_seconds: int | None,
    out_of_order_seconds: int | None,
    policy: str | None,
    **options: Any,
) -> dict[str, Any]:
    """Print the reasons of all differences, write their page, and return them. Publish nothing."""
    import duckdb

    arguments, tried = Arguments(**options), Tried(query, late_seconds, out_of_order_seconds, policy)
    pipeline = load_pipeline(file, stderr)
    require_writable_page(arguments.out)
    require_whole_slices(pipeline, arguments.start, arguments.end)
    output = output_of(pipeline, arguments.alias)
    slices = slices_of(pipeline, arguments.start, arguments.end)
    names = parse_columns(arguments.columns, pipeline.compiled(output).columns)
    time = time_column(pipeline, output, arguments.time)
    downtimes = [_interval(written) for written in arguments.downtimes]
    entries = published_entries(pipeline, slices)
    comparison = Comparison(pipeline, output, slices, entries, names, time, downtimes, late_seconds)
    live = _address(arguments.live)
    name = f"compare-{hashlib.sha256(output.table.encode()).hexdigest()[:12]}"
    remove_abandoned(name)
    with (
        scratch_folder(name) as folder,
        comparisons(f"{name}-rows") as connection,
        ProgressBar(stderr, hidden=log.enabled()) as bar,
    ):
        bar.begin("compare")
        compute = partial(compute_on, master=arguments.master, bar=bar)
        trials = Trials(pipeline, output.alias, (slices, comparison.entries), tried, folder)
        try:
            result = compare(connection, comparison, live, trials, compute, folder)
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            raise RunError(
                f"cannot compare the rows with {live}: {reason}; correct the file, or free memory"
            ) from error
    if arguments.out is not None:
        write_page(arguments.out, page(result))
    if not arguments.json:
        printing.print_comparison(printing.console(), result)
    printing.print_warnings(stderr, result["warnings"])
    if arguments.out is not None:
        stderr.print(f"{escape(str(arguments.out))}: the page is written")
    return result


def _interval(written: str) -> tuple[datetime, datetime]:
    """Return the start and the end of FROM/TO. Raise DefinitionError for another form."""
    try:
        start, end = map(ticks.parse_utc, written.split("/"))
    except ValueError:
        start = end = datetime.max
    if start >= end:
        raise DefinitionError(f"--down {written}: write two ISO 8601 times as FROM/TO, the earlier one first")
    return start, end


def _address(live: str) -> str:
    """Return the address of a container, or of a local folder that is given as a path."""
    return live if "://" in live else Path(live).resolve().as_uri()
