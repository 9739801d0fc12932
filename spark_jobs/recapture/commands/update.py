"""Bring the tables of a pipeline up to date: compute the slices that are due."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import PipelineArguments
from recapture.definition.pipeline import Pipeline
from recapture.errors import AuditError, DefinitionError, RunError
from recapture.keep.due import DueRange, Tick, tick
from recapture.keep.state import read_state, sources_of
from recapture.keep.summary import tick_summary
from recapture.run.tables import tables_of
from recapture.table.publish import bring_in_line
from recapture.time_model import ticks


@dataclass(frozen=True, kw_only=True)
class Arguments(PipelineArguments):
    """Arguments of the command."""

    now: datetime | None
    """Time that the command takes for the present; None for the clock's."""
    dry_run: bool
    master: str
    """The Spark master."""


def run(arguments: Arguments, stderr: Console) -> dict[str, Any]:
    """Carry out one update, and return what was due, what was published, and what is left and waits."""
    pipeline = arguments.load_pipeline(stderr)
    now = datetime.now(UTC)
    if arguments.now is not None and arguments.now > now:
        raise DefinitionError("--now lies in the future: leave it out, or give an earlier time")
    sources = sources_of(pipeline)
    reading = read_state(pipeline, sources, arguments.now or now)
    due = tick(reading.state)
    result = tick_summary(pipeline.name, reading.state, due)
    if not arguments.json:
        printing.print_update(printing.console(), result)
    if arguments.dry_run:
        return result
    reading.record(sources.run_files)
    failures = [*_finish(pipeline, due, stderr)]
    published: list[str] = []
    if due.ranges:
        runs, failed = _compute(pipeline, arguments, due.ranges, stderr)
        published += runs
        failures += failed
    exit_code = 0 if not failures else 3 if published else 1
    return result | {"runs": published, "failures": failures, "exit_code": exit_code}


def _finish(pipeline: Pipeline, due: Tick, stderr: Console) -> Iterable[str]:
    """Finish changes that were interrupted; yield why that failed, if it did."""
    if due.unfinished:
        try:
            bring_in_line(tables_of(pipeline), [ticks.to_text(start) for start in due.unfinished])
        except RunError as error:
            printing.print_error(stderr, str(error))
            yield str(error)


def _compute(
    pipeline: Pipeline, arguments: Arguments, ranges: Sequence[DueRange], stderr: Console
) -> tuple[list[str], list[str]]:
    """Compute each range as one run; return the published runs, and why others failed. A failure ends only its run."""
    from recapture.commands import backfill
    from recapture.commands.progress import ProgressBar
    from recapture.run.plan import require_packages
    from recapture.tools.reports.drawing import drawing_process

    require_packages()
    published, failures = [], []
    for range_ in ranges:
        run_arguments = backfill.Arguments(
            pipeline=arguments.pipeline,
            json=True,
            verbose=arguments.verbose,
            start=ticks.to_datetime(range_.start),
            end=ticks.to_datetime(range_.end),
            manifest=None,
            changed="fail",
            master=arguments.master,
            parameters=[],
            accept_loss=False,
            take_over=False,
        )
        with drawing_process() as drawing, ProgressBar(stderr, hidden=arguments.verbose) as bar:
            try:
                result = backfill.carry_out(backfill.Backfill(pipeline, run_arguments, stderr, drawing, bar))
            except (AuditError, RunError) as error:
                printing.print_error(stderr, str(error))
                failures.append(str(error))
            else:
                published.append(result["run"])
                if not arguments.json:
                    printing.print_published(printing.console(), result)
    return published, failures
