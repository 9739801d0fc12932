"""Plan, compute, audit and publish a range, with its report."""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TaskID

from recapture import printing
from recapture.archive import changes
from recapture.archive.manifest import Manifest
from recapture.commands.arguments import PipelineArguments
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, InterruptedRunError, RecaptureError, RunError, UnfinishedError
from recapture.execute.engine import Engine, cores_of, engine_of
from recapture.execute.processes import compute as in_processes
from recapture.execute.processes.workers import Workers, workers
from recapture.process import log
from recapture.run.audit import audit, stopped
from recapture.run.leftovers import remove_leftovers, scratch_name
from recapture.run.plan import (
    begin_run,
    changed_since,
    load_manifest,
    preview,
    require_auditable,
    require_packages,
    require_publishable,
)
from recapture.run.publish import publish
from recapture.run.suites import parse_parameters
from recapture.run.summary import summary
from recapture.run_files.computed import Computed
from recapture.run_files.contents import Audited, Outcome
from recapture.run_files.planned import PlannedRun
from recapture.storage.scratch import scratch_folder
from recapture.time_model import ticks
from recapture.tools.reports.drawing import Drawing, drawing_process
from recapture.tools.reports.write import with_report, write_run_report


@dataclass(frozen=True, kw_only=True)
class Arguments(PipelineArguments):
    """Arguments of the command."""

    start: datetime | None
    end: datetime | None
    manifest: str | None
    """File of a manifest, or name of a run, instead of a range."""
    changed: Literal["fail", "replan"]
    """What to do if blobs of the manifest have changed."""
    master: str
    """The Spark master."""
    parameters: list[str]
    """Parameters of the suites, each as NAME=VALUE."""
    accept_loss: bool
    take_over: bool


def run(arguments: Arguments, stderr: Console) -> dict[str, Any]:
    """Carry out a run, and return its summary. Raise InterruptedRunError for Ctrl-C, which says what is published."""
    pipeline = arguments.load_pipeline(stderr)
    _require_range_or_manifest(arguments)
    require_packages()
    with drawing_process() as drawing:
        try:
            planned, computed, audited, warnings = _compute_and_audit(pipeline, arguments, stderr, drawing)
        except KeyboardInterrupt:
            raise InterruptedRunError("interrupted; nothing was published: run the same command again") from None
        try:
            outcome = publish(planned, computed, audited, take_over=arguments.take_over)
            return _write_report(planned, computed, audited, outcome, warnings, arguments, drawing)
        except KeyboardInterrupt:
            raise InterruptedRunError(
                f"interrupted while run {planned.id} was being published or reported: "
                "recapture status shows what is published"
            ) from None


def _compute_and_audit(
    pipeline: Pipeline, arguments: Arguments, stderr: Console, drawing: Drawing
) -> tuple[PlannedRun, Computed, Audited, list[str]]:
    """Plan, compute and audit a run; return it, what it computed, its audit, and warnings about its plan."""
    engine = engine_of(pipeline.query.needs_spark, arguments.master)
    cores = cores_of(arguments.master) if engine is Engine.PROCESSES else None
    progress_bar = Progress(console=stderr, transient=True, disable=arguments.verbose or not stderr.is_terminal)
    with progress_bar:
        step = progress_bar.add_task("plan", total=None)
        parameters = parse_parameters(arguments.parameters)
        manifest, warnings = _plan_or_load(pipeline, arguments)
        run = begin_run(pipeline, manifest)
        printing.print_warnings(stderr, warnings)
        for leftover in remove_leftovers(pipeline, run.id):
            stderr.print(f"removed leftovers of an interrupted run of these slices: {escape(leftover)}")
        progress_bar.update(step, description="order and aggregate")
        drawing.load()  # before there are workers, whose `kill` would end it
        with (
            nullcontext() if cores is None else workers(cores) as processes,
            scratch_folder(scratch_name(pipeline, run.id)) as scratch,
            ThreadPoolExecutor(1) as meanwhile,
        ):
            auditable = meanwhile.submit(require_auditable, pipeline, parameters)
            if processes is None:
                computed = _compute_with_spark(run, arguments, scratch, auditable, progress_bar, step)
            else:
                computed = _compute_here(run, processes, scratch, auditable, progress_bar, step)
        progress_bar.update(step, description="audit", total=None)
        audited = audit(run, computed, parameters, accept_loss=arguments.accept_loss)
        if error := stopped(run, computed, audited):
            raise with_report(error, run, computed, audited, warnings, drawing.svg)
    return run, computed, audited, warnings


def _compute_here(
    run: PlannedRun,
    processes: Workers,
    scratch: Path,
    auditable: Future[None],
    progress_bar: Progress,
    step: TaskID,
) -> Computed:
    def watch(done: int, total: int) -> None:
        if auditable.done():
            auditable.result()
        progress_bar.update(step, total=total, completed=done)

    computed = in_processes.compute(processes, run, scratch, watch)
    auditable.result()
    return computed


def _compute_with_spark(
    run: PlannedRun,
    arguments: Arguments,
    scratch: Path,
    auditable: Future[None],
    progress_bar: Progress,
    step: TaskID,
) -> Computed:
    from recapture.execute.spark.compute import compute
    from recapture.execute.spark.session import spark_session

    if not arguments.verbose:
        log.silence_spark_errors()
    with (
        spark_session(arguments.master, f"recapture {run.id}", scratch) as spark,
        printing.show_tasks(spark, progress_bar, step),
    ):
        auditable.result()
        return compute(spark, run)


def _write_report(
    run: PlannedRun,
    computed: Computed,
    audited: Audited,
    outcome: Outcome,
    warnings: list[str],
    arguments: Arguments,
    drawing: Drawing,
) -> dict[str, Any]:
    """Write the report of a published run, and print and return its summary. Raise UnfinishedError if that fails."""
    try:
        result = summary(run, computed, audited, outcome)
        result["warnings"] += warnings
        result["report"] = write_run_report(run, computed, audited, result["warnings"], drawing.svg)
        if not arguments.json:
            out = printing.console()
            printing.print_staged_rows(out, run, computed, result)
            printing.print_run(out, result)
    except Exception as error:
        said = str(error) if isinstance(error, RecaptureError) else f"{type(error).__name__}: {error}"
        raise UnfinishedError(f"run {run.id} is published, but its report failed: {said}") from error
    return result


def _require_range_or_manifest(arguments: Arguments) -> None:
    """Raise DefinitionError unless there is a range or a manifest, and not both."""
    has_bounds = arguments.start is not None, arguments.end is not None
    if arguments.manifest is not None and any(has_bounds):
        raise DefinitionError("--manifest has a range of its own: leave out --from and --to")
    if arguments.manifest is None and not all(has_bounds):
        raise DefinitionError("give a range with --from and --to, or a manifest with --manifest")
    if arguments.manifest is None and arguments.changed != "fail":
        raise DefinitionError("--changed needs --manifest: a range is always planned from the current blobs")


def _plan_or_load(pipeline: Pipeline, arguments: Arguments) -> tuple[Manifest, list[str]]:
    """Return the manifest of a range, or the one that is given, and warnings; write nothing.

    Raise RunError if blobs of the manifest have changed and `--changed replan` was not given.
    """
    if arguments.manifest is None:
        assert arguments.start is not None
        assert arguments.end is not None
        return preview(pipeline, arguments.start, arguments.end, take_over=arguments.take_over), []
    manifest = load_manifest(pipeline, arguments.manifest)
    changed = changed_since(pipeline, manifest)
    if not changed:
        require_publishable(pipeline, take_over=arguments.take_over)
        return manifest, []
    count = f"{len(changed):,} of the {manifest.pinned_count:,} blobs"
    difference = f"{count} of run {manifest.run} have changed since it was planned:\n{changes.summary(changed)}"
    if arguments.changed == "fail":
        raise RunError(
            f"{difference}\nrestore them, or add --changed replan to plan the range again from the current blobs"
        )
    bounds = manifest.slices[0].slice.start, manifest.slices[-1].slice.end
    start, end = map(ticks.to_datetime, bounds)
    manifest = preview(pipeline, start, end, take_over=arguments.take_over)
    return manifest, [f"{difference}\nplanned again as run {manifest.run}"]
