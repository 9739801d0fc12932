"""Bring the tables of a pipeline up to date: compute the slices that are due."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from recapture import printing
from recapture.commands.arguments import load_pipeline, require_useful
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, InterruptedRunError, RecaptureError, UnfinishedError
from recapture.keep.due import DueRange, tick
from recapture.keep.holding import renewing
from recapture.keep.sources import sources_of
from recapture.keep.state import read_state
from recapture.keep.summary import tick_summary
from recapture.keep.update import Skipped, Update
from recapture.run.tables import tables_of
from recapture.table.publish import bring_in_line
from recapture.time_model import ticks


def run(
    stderr: Console,
    *,
    file: Path,
    now: datetime | None,
    dry_run: bool,
    master: str,
    bundle: Path | None,
    json: bool,
) -> dict[str, Any]:
    """Carry out one update, and return what was due, what was published, and what is left and waits.

    `now` is the time that stands for the present, None for the clock's. The result's `exit_code` is that of the error
    if nothing was published, and 3 if something was and something failed.
    """
    clock = datetime.now(UTC)
    if now is not None and now > clock:
        raise DefinitionError("--now lies in the future: leave it out, or give an earlier time")
    pipeline = load_pipeline(file, stderr)
    require_useful(bundle, master)
    sources = sources_of(pipeline)
    reading = read_state(pipeline, sources, now or clock)
    due = tick(reading.state)
    result = tick_summary(pipeline.name, reading, due)
    if not json:
        printing.print_update(printing.console(), result)
    if dry_run:
        return result
    reading.record(sources)

    def finish(starts: Sequence[str]) -> None:
        bring_in_line(tables_of(pipeline), starts)

    def compute(range_: DueRange) -> dict[str, Any]:
        return _compute(pipeline, range_, master, bundle, stderr)

    present = _clock(reading.state.now)
    update = Update(
        sources=sources,
        reading=reading,
        tick=due,
        compute=compute,
        id_of=lambda summary: str(summary["run"]),
        bring_in_line=finish,
        clock=present,
        renewing=lambda id: renewing(sources.run_files, id, present),
    )
    runs: list[str] = []
    skipped: list[dict[str, str]] = []
    failures: list[RecaptureError] = []
    for outcome in _until_interrupted(update):
        if isinstance(outcome, RecaptureError):
            printing.print_error(stderr, str(outcome))
            failures.append(outcome)
        elif isinstance(outcome, Skipped):
            start, end = ticks.to_text(outcome.range.start), ticks.to_text(outcome.range.end)
            skipped.append({"from": start, "to": end, "reason": outcome.reason})
            stderr.print(f"skipped: {start} to {end}: {outcome.reason}")
        else:
            runs.append(outcome["run"])
            if not json:
                printing.print_published(printing.console(), outcome)
    failed = {"failures": list(map(str, failures)), "exit_code": _exit_code(runs, failures)}
    return result | {"runs": runs, "skipped": skipped} | failed


def _until_interrupted(update: Update[dict[str, Any]]) -> Iterator[dict[str, Any] | Skipped | RecaptureError]:
    """Yield what an update does, and an interrupt as an error: what was published before is still reported."""
    try:
        yield from update.carry_out()
    except KeyboardInterrupt:
        yield InterruptedRunError("interrupted: the next update does what is left")


def _exit_code(runs: Sequence[str], failures: Sequence[RecaptureError]) -> int:
    if not failures:
        return 0
    if any(isinstance(failure, InterruptedRunError) for failure in failures):
        return InterruptedRunError.exit_code
    if runs or any(isinstance(failure, UnfinishedError) for failure in failures):
        return UnfinishedError.exit_code
    return max(failure.exit_code for failure in failures)


def _clock(now: int) -> Callable[[], int]:
    """Return the function that returns the present, which is `now` at first; in ticks."""
    began = time.monotonic()
    return lambda: now + ticks.from_seconds(round(time.monotonic() - began))


def _compute(pipeline: Pipeline, range_: DueRange, master: str, bundle: Path | None, stderr: Console) -> dict[str, Any]:
    """Compute and publish a range in one run, and return its summary. What this needs is loaded only now."""
    from recapture.commands import backfill

    arguments = backfill.Arguments(
        start=ticks.to_datetime(range_.start),
        end=ticks.to_datetime(range_.end),
        manifest=None,
        changed="fail",
        master=master,
        bundle=bundle,
        parameters=[],
        accept_loss=False,
        take_over=False,
        stage=False,
        json=True,
        is_one_run=True,
    )
    return backfill.carry_out(pipeline, arguments, stderr)
