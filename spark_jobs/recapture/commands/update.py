"""Bring the tables of a pipeline up to date: compute the slices that are due."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import load_pipeline
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, RecaptureError, UnfinishedError
from recapture.keep.due import DueRange, tick
from recapture.keep.state import read_state, sources_of
from recapture.keep.summary import tick_summary
from recapture.keep.update import carry_out
from recapture.run.tables import tables_of
from recapture.table.publish import bring_in_line
from recapture.time_model import ticks


def run(stderr: Console, *, file: Path, now: datetime | None, dry_run: bool, master: str, json: bool) -> dict[str, Any]:
    """Carry out one update, and return what was due, what was published, and what is left and waits.

    `now` is the time that stands for the present, None for the clock's. The result's `exit_code` is 1 if everything
    that was due failed, and 3 if only some of it did.
    """
    clock = datetime.now(UTC)
    if now is not None and now > clock:
        raise DefinitionError("--now lies in the future: leave it out, or give an earlier time")
    pipeline = load_pipeline(file, stderr)
    sources = sources_of(pipeline)
    reading = read_state(pipeline, sources, now or clock)
    due = tick(reading.state)
    result = tick_summary(pipeline.name, reading.state, due) | {"unknown": list(reading.changes.unknown)}
    if not json:
        printing.print_update(printing.console(), result)
    if dry_run:
        return result
    reading.record(sources.run_files)

    def finish(starts: Sequence[str]) -> None:
        bring_in_line(tables_of(pipeline), starts)

    def compute(range_: DueRange) -> dict[str, Any]:
        return _compute(pipeline, range_, master, stderr)

    runs: list[str] = []
    failures: list[RecaptureError] = []
    for outcome in carry_out(due, finish, compute):
        if isinstance(outcome, RecaptureError):
            printing.print_error(stderr, str(outcome))
            failures.append(outcome)
            continue
        runs.append(outcome["run"])
        if not json:
            printing.print_published(printing.console(), outcome)
    in_part = bool(runs) or any(isinstance(failure, UnfinishedError) for failure in failures)
    exit_code = UnfinishedError.exit_code if failures and in_part else 1 if failures else 0
    return result | {"runs": runs, "failures": list(map(str, failures)), "exit_code": exit_code}


def _compute(pipeline: Pipeline, range_: DueRange, master: str, stderr: Console) -> dict[str, Any]:
    """Compute and publish a range in one run, and return its summary. What this needs is loaded only now."""
    from recapture.commands import backfill

    arguments = backfill.Arguments(
        start=ticks.to_datetime(range_.start),
        end=ticks.to_datetime(range_.end),
        manifest=None,
        changed="fail",
        master=master,
        parameters=[],
        accept_loss=False,
        take_over=False,
        json=True,
    )
    return backfill.carry_out(pipeline, arguments, stderr)
