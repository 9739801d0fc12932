"""Compare the output of a live job with what is published, and give each difference a reason."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from recapture import printing
from recapture.archive.definitions import ArrivalTime
from recapture.commands.arguments import load_pipeline
from recapture.commands.diff import compute_on, require_writable_page, write_page
from recapture.commands.progress import ProgressBar
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, RunError
from recapture.process import log
from recapture.run.slices import require_whole_slices, slices_of
from recapture.storage.scratch import remove_abandoned, scratch_folder
from recapture.table.row_changes import comparisons
from recapture.time_model.slices import Slice
from recapture.tools.compare.document import Assumption, Comparison, compare, output_of, time_column
from recapture.tools.compare.live import parse_columns
from recapture.tools.compare.page import page
from recapture.tools.diff.document import published_entries
from recapture.tools.diff.files import StoredFile
from recapture.tools.diff.tried import Tried, tried_pipeline, try_slices

_WORDS = {
    "query": "the query in {}",
    "late_seconds": "a late tolerance of {} s",
    "out_of_order_seconds": "an out-of-order tolerance of {} s",
    "policy": "the policy {}",
}


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

    arguments, given = Arguments(**options), Tried(query, late_seconds, out_of_order_seconds, policy)
    pipeline = load_pipeline(file, stderr)
    require_writable_page(arguments.out)
    require_whole_slices(pipeline, arguments.start, arguments.end)
    output = output_of(pipeline, arguments.alias)
    slices = slices_of(pipeline, arguments.start, arguments.end)
    names = parse_columns(arguments.columns, pipeline.compiled(output).columns)
    time = time_column(pipeline, output, arguments.time)
    comparison = Comparison(pipeline, output, slices, published_entries(pipeline, slices), names, time)
    live = _address(arguments.live)
    name = f"compare-{hashlib.sha256(output.table.encode()).hexdigest()[:12]}"
    remove_abandoned(name)
    with (
        scratch_folder(name) as folder,
        comparisons(f"{name}-rows") as connection,
        ProgressBar(stderr, hidden=log.enabled()) as bar,
    ):
        bar.begin("compare")
        assumptions = _assumptions(pipeline, output.alias, given, folder, arguments.master, bar)
        try:
            result = compare(connection, comparison, live, assumptions, folder)
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


def _assumptions(
    pipeline: Pipeline, alias: str, given: Tried, folder: Path, master: str, bar: ProgressBar
) -> Iterator[Assumption]:
    """Yield what the live job may have done: used each given setting, all of them, or the enqueued time."""
    settings = [field.name for field in fields(given) if getattr(given, field.name) is not None]
    tried = [(_WORDS[name].format(getattr(given, name)), Tried(**{name: getattr(given, name)})) for name in settings]
    if len(settings) > 1:
        tried.append((", ".join(reason for reason, _ in tried), given))
    if any(section.arrival_time is ArrivalTime.BLOB_LAST_MODIFIED for section in pipeline.inputs):
        enqueued = Tried(arrival_time=ArrivalTime.EVENT_ENQUEUED)
        tried.append(("arrival by enqueued time", enqueued))
        if settings:
            reasons = ", ".join(_WORDS[name].format(getattr(given, name)) for name in settings)
            tried.append(
                (f"{reasons}, arrival by enqueued time", replace(given, arrival_time=ArrivalTime.EVENT_ENQUEUED))
            )
    for number, (reason, changes) in enumerate(tried):
        place = folder / f"run-{number}"
        try:
            changed = tried_pipeline(pipeline, changes, place)
        except DefinitionError:
            if changes.arrival_time is None:
                raise
            continue  # this format has no enqueued time

        def files(slices: Sequence[Slice], changed: Pipeline = changed, reason: str = reason) -> Iterator[StoredFile]:
            bar.begin(f"compute with {reason}")
            computed = try_slices(changed, slices, compute_on(changed, master, bar)).files
            yield from (stored for (output, _), stored in computed.items() if output == alias)

        yield Assumption(reason, files)


def _address(live: str) -> str:
    """Return the address of a container, or of a local folder that is given as a path."""
    return live if "://" in live else Path(live).resolve().as_uri()
