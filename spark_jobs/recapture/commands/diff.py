"""Show what differs between what is published and a run, or what another query or other tolerances would give."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from recapture import printing
from recapture.commands.arguments import load_pipeline, require_whole_range
from recapture.commands.compute import compute_in_processes, compute_with_spark
from recapture.commands.progress import ProgressBar
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.execute.engine import Engine, cores_of, engine_of
from recapture.pages.page import require_installed
from recapture.process import log
from recapture.run.slices import require_whole_slices, slices_of
from recapture.run_files.computed import Computed
from recapture.run_files.planned import PlannedRun
from recapture.storage.scratch import remove_abandoned, scratch_folder
from recapture.table.publications import Entry
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from recapture.tools.diff.document import (
    bounds_of,
    difference,
    document,
    published_entries,
    sampled,
    staged_by,
    trial_warnings,
)
from recapture.tools.diff.page import page
from recapture.tools.diff.tried import Tried, tried_pipeline, try_slices

_OTHER_PAGE = "choose another file with --out"


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Arguments of the command, apart from the pipeline file and what is tried."""

    start: datetime | None
    """Start of the range, exclusive."""
    end: datetime | None
    """End of the range, inclusive."""
    against: str | None
    """Run whose staged rows are compared with what is published."""
    sample: int | None
    """Number of slices to compare; None for all of the range."""
    master: str
    out: Path | None
    """Page to write."""
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
    """Print what differs, write its page, and return it. Publish nothing."""
    arguments, tried = Arguments(**options), Tried(query, late_seconds, out_of_order_seconds, policy)
    pipeline = load_pipeline(file, stderr)
    _require_one_side(arguments, tried)
    require_writable_page(arguments.out)
    in_range = _slices(pipeline, arguments)
    slices = in_range if arguments.sample is None else sampled(in_range, arguments.sample)
    entries = published_entries(pipeline, slices)
    if arguments.against is not None:
        after: dict[str, Any] = {"run": arguments.against}
        warnings: list[str] = []
        outputs = difference(pipeline, entries, staged_by(pipeline, arguments.against))
    else:
        after = tried.settings
        outputs, warnings = _tried(pipeline, tried, slices, entries, arguments, stderr)
    result = document(pipeline, slices, len(in_range), after, outputs, warnings)
    if arguments.out is not None:
        write_page(arguments.out, page(result))
    if not arguments.json:
        printing.print_difference(printing.console(), result)
    printing.print_warnings(stderr, warnings)
    if arguments.out is not None:
        stderr.print(f"{escape(str(arguments.out))}: the page is written")
    return result


def _require_one_side(arguments: Arguments, tried: Tried) -> None:
    """Raise DefinitionError unless there is one thing to compare with, and a range."""
    if arguments.against is not None and tried.settings:
        raise DefinitionError("--against compares with a run: leave out --query, --late, --out-of-order and --policy")
    if arguments.against is None and not tried.settings:
        raise DefinitionError(
            "say what to compare with: a run (--against), another query (--query), or other tolerances (--late, "
            "--out-of-order, --policy)"
        )
    require_whole_range(arguments.start, arguments.end, "the range of the run that --against names")
    if arguments.against is None and arguments.start is None:
        raise DefinitionError("give a range with --from and --to; only with --against, you can leave out both")
    if arguments.sample is not None and arguments.sample < 1:
        raise DefinitionError(f"--sample {arguments.sample}: compare at least one slice")


def require_writable_page(out: Path | None) -> None:
    """Raise DefinitionError unless a page can be made and its folder exists; None is no page."""
    if out is not None:
        require_installed()
        if not out.parent.is_dir():
            raise DefinitionError(f"{out}: there is no folder {out.parent}: {_OTHER_PAGE}")


def _slices(pipeline: Pipeline, arguments: Arguments) -> list[Slice]:
    """Return the slices of the range, or those of the run to compare with."""
    start, end = arguments.start, arguments.end
    if arguments.against is not None:
        bounds = bounds_of(arguments.against)
        start, end = start or ticks.to_datetime(bounds[0]), end or ticks.to_datetime(bounds[1])
    assert start is not None
    assert end is not None
    require_whole_slices(pipeline, start, end)
    return slices_of(pipeline, start, end)


def _tried(
    pipeline: Pipeline,
    tried: Tried,
    slices: Sequence[Slice],
    entries: dict[str, Entry],
    arguments: Arguments,
    stderr: Console,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Compute the slices with what is tried; return the difference of each output, and warnings."""
    name = f"diff-tried-{hashlib.sha256(pipeline.outputs[0].table.encode()).hexdigest()[:12]}"
    remove_abandoned(name)
    with scratch_folder(name) as folder:
        changed = tried_pipeline(pipeline, tried, folder)
        with ProgressBar(stderr, hidden=log.enabled()) as bar:
            bar.begin("compute what is tried")
            other = try_slices(changed, slices, compute_on(changed, arguments.master, bar))
        return difference(pipeline, entries, other), [*trial_warnings(pipeline, slices, entries)]


def compute_on(pipeline: Pipeline, master: str, bar: ProgressBar) -> Callable[[PlannedRun], Computed]:
    """Return the function that stages the rows of a run. Raise DefinitionError if the master is not on this machine."""
    if cores_of(master) is None:
        raise DefinitionError(f"--master {master}: what is tried is computed on this machine: use local[N]")
    engine = engine_of(pipeline.engine, master)
    compute = {Engine.PROCESSES: compute_in_processes, Engine.SPARK: compute_with_spark}[engine]
    return partial(compute, master=master, check=lambda: None, bar=bar)


def write_page(file: Path, content: bytes) -> None:
    """Write a page. Raise DefinitionError if the file cannot be written."""
    try:
        file.write_bytes(content)
    except OSError as error:
        raise DefinitionError(f"{file} cannot be written ({error.strerror}): {_OTHER_PAGE}") from error
