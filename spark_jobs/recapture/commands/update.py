"""Bring the tables of a pipeline up to date: compute the slices that are due."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import PipelineArguments
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, RecaptureError, UnfinishedError
from recapture.keep.due import DueRange, tick
from recapture.keep.state import read_state, sources_of
from recapture.keep.summary import tick_summary
from recapture.keep.update import carry_out
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
    """Carry out one update, and return what was due, what was published, and what is left and waits.

    Its `exit_code` is 1 if everything that was due failed, and 3 if only some of it did.
    """
    now = datetime.now(UTC)
    if arguments.now is not None and arguments.now > now:
        raise DefinitionError("--now lies in the future: leave it out, or give an earlier time")
    pipeline = arguments.load_pipeline(stderr)
    sources = sources_of(pipeline)
    reading = read_state(pipeline, sources, arguments.now or now)
    due = tick(reading.state)
    result = tick_summary(pipeline.name, reading.state, due)
    if not arguments.json:
        printing.print_update(printing.console(), result)
    if arguments.dry_run:
        return result
    reading.record(sources.run_files)

    def finish(starts: Sequence[str]) -> None:
        bring_in_line(tables_of(pipeline), starts)

    def compute(range_: DueRange) -> dict[str, Any]:
        return _compute(pipeline, arguments, range_, stderr)

    runs: list[str] = []
    failures: list[RecaptureError] = []
    for outcome in carry_out(due, finish, compute):
        if isinstance(outcome, RecaptureError):
            printing.print_error(stderr, str(outcome))
            failures.append(outcome)
            continue
        runs.append(outcome["run"])
        if not arguments.json:
            printing.print_published(printing.console(), outcome)
    in_part = bool(runs) or any(isinstance(failure, UnfinishedError) for failure in failures)
    exit_code = UnfinishedError.exit_code if failures and in_part else 1 if failures else 0
    return result | {"runs": runs, "failures": list(map(str, failures)), "exit_code": exit_code}


def _compute(pipeline: Pipeline, arguments: Arguments, range_: DueRange, stderr: Console) -> dict[str, Any]:
    """Compute and publish a range in one run, and return its summary. What this needs is loaded only now."""
    from recapture.commands import backfill

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
    return backfill.carry_out(pipeline, run_arguments, stderr)
