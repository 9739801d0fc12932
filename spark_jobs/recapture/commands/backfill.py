"""Carry out the stages of a run, for a person at a terminal."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape

from recapture import printing
from recapture.archive import changes
from recapture.archive.manifest import Manifest
from recapture.commands.arguments import load_pipeline, require_useful
from recapture.commands.compute import compute_in_processes, compute_with_spark
from recapture.commands.progress import ProgressBar
from recapture.commands.reported import reported
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, InterruptedRunError, RecaptureError, RunError, UnfinishedError
from recapture.execute.engine import Engine, engine_of
from recapture.keep.holding import holding
from recapture.process import log
from recapture.process.wording import counted
from recapture.run.approval import approval_of
from recapture.run.audit import audit, stopped
from recapture.run.leftovers import remove_leftovers
from recapture.run.plan import (
    begin_run,
    changed_since,
    load_manifest,
    preview,
    preview_run,
    require_auditable,
    require_packages,
    require_publishable,
)
from recapture.run.publish import publish
from recapture.run.stages import Stage, stages_of
from recapture.run.suites import Parameters, parse_parameters
from recapture.run_files.computed import Computed
from recapture.run_files.contents import Audited, Outcome
from recapture.run_files.files import range_of_run
from recapture.run_files.planned import PlannedRun
from recapture.table.publications import Approval
from recapture.time_model import ticks
from recapture.tools.reports.write import with_report


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """Arguments of the command, apart from the pipeline file."""

    start: datetime | None
    """Start of the range, exclusive."""
    end: datetime | None
    """End of the range, inclusive."""
    manifest: str | None
    """File of a manifest, or name of a run, instead of a range."""
    changed: Literal["fail", "replan"]
    """What to do if blobs of the manifest have changed."""
    master: str
    bundle: Path | None
    """Archive with which the executors run Recapture; None if their Python has it."""
    parameters: list[str]
    """Parameters of the suites, each as NAME=VALUE."""
    accept_loss: bool
    take_over: bool
    stage: bool
    """Whether the run ends before it is published, and waits for `recapture publish`."""
    json: bool
    is_one_run: bool = False
    """Whether the range is computed in one run, however long it is."""


def run(stderr: Console, *, file: Path, **options: Any) -> dict[str, Any]:
    """Carry out one run, or several of a long range, and return the summary.

    Raise InterruptedRunError for Ctrl-C; it says what is published.
    """
    arguments, pipeline = Arguments(**options), load_pipeline(file, stderr)
    _require_consistent(arguments)
    require_useful(arguments.bundle, arguments.master)
    runs: list[dict[str, Any]] = []
    while True:
        try:
            runs.append(carry_out(pipeline, arguments, stderr, partial(_held, end=arguments.end)))
        except RecaptureError as error:
            if not runs or arguments.start is None:
                raise
            raise _after_runs(error, arguments, arguments.start, len(runs)) from error
        _, end = range_of_run(runs[-1]["run"]) or (0, 0)
        if arguments.end is None or end >= ticks.from_datetime(arguments.end):
            return runs[0] if len(runs) == 1 else {"pipeline": pipeline.name, "runs": runs}
        arguments = replace(arguments, start=ticks.to_datetime(end))
        stderr.print(f"the range is too long for one run: the next run begins at {ticks.to_text(end)}")


def _after_runs(error: RecaptureError, arguments: Arguments, start: datetime, runs: int) -> RecaptureError:
    """Return the error that ended a run that begins at `start`, after other runs of the range."""
    done = counted(runs, "earlier run of the range is", "earlier runs of the range are")
    done = f"{done} {'staged' if arguments.stage else 'published'}; go on with --from {ticks.text_of(start)}"
    if isinstance(error, InterruptedRunError):
        return InterruptedRunError(f"{error}\n{done}")
    return (RunError if arguments.stage else UnfinishedError)(f"{error}\n{done}")


def carry_out(
    pipeline: Pipeline,
    arguments: Arguments,
    stderr: Console,
    held: Callable[[PlannedRun], AbstractContextManager[object]] = nullcontext,
) -> dict[str, Any]:
    """Carry out the stages of a run, and return its summary. Raise InterruptedRunError as `run` does.

    `held` keeps others from computing the planned run.
    """
    require_packages()
    stages = stages_of(is_staged=arguments.stage)
    stage = stages[0]
    with ProgressBar(stderr, hidden=log.enabled()) as bar, ExitStack() as lease:
        backfill = Backfill(pipeline, arguments, stderr, bar)
        try:
            for stage in stages:
                backfill.carry_out(stage)
                if stage is Stage.PLAN:
                    lease.enter_context(held(backfill.run))
        except KeyboardInterrupt:
            raise InterruptedRunError(backfill.interrupted(stage)) from None
    return backfill.result


def _held(run: PlannedRun, end: datetime | None) -> AbstractContextManager[None]:
    """Keep updates from computing the range of a run, and what follows it until `end`."""
    slices = run.manifest.slices
    last = slices[-1].slice.end if end is None else ticks.from_datetime(end)
    return holding(run.files.container, slices[0].slice.start, last)


@dataclass
class Backfill:
    """A run, with a method for each of its stages. The first one plans it."""

    pipeline: Pipeline
    arguments: Arguments
    stderr: Console
    bar: ProgressBar
    run: PlannedRun = field(init=False)
    parameters: Parameters = field(init=False)
    warnings: list[str] = field(init=False)
    computed: Computed = field(init=False)
    audited: Audited = field(init=False)
    approval: Approval | None = None
    """Decision to publish the run although its audit stops it; None if there is none with this result."""
    outcome: Outcome | None = None
    """What was published; None before that, and for a run that is staged."""
    result: dict[str, Any] = field(init=False)
    """Summary of the reported run."""

    def carry_out(self, stage: Stage) -> None:
        """Carry out the next stage."""
        self.bar.begin(stage.replace("_", " "))
        {
            Stage.PLAN: self.plan,
            Stage.ORDER_AND_AGGREGATE: self.order_and_aggregate,
            Stage.AUDIT: self.audit,
            Stage.PUBLISH: self.publish,
            Stage.REPORT: self.report,
        }[stage]()

    def plan(self) -> None:
        """Write the manifest, and remove what an interrupted run of these slices left."""
        self.parameters = parse_parameters(self.arguments.parameters)
        manifest, self.warnings = self._manifest()
        self.run = begin_run(self.pipeline, manifest)
        printing.print_warnings(self.stderr, self.warnings)
        for leftover in remove_leftovers(self.pipeline, self.run.id):
            self.stderr.print(f"removed leftovers of an interrupted run of these slices: {escape(leftover)}")

    def order_and_aggregate(self) -> None:
        """Stage the rows."""
        engine = engine_of(self.pipeline.engine, self.arguments.master)
        if engine is Engine.SPARK and not log.enabled():
            log.silence_spark_errors()
        check = partial(require_auditable, self.pipeline, self.parameters)
        if engine is Engine.SPARK:
            compute = partial(compute_with_spark, bundle=self.arguments.bundle)
        else:
            compute = partial(compute_in_processes)
        self.computed = compute(self.run, self.arguments.master, check, self.bar)

    def audit(self) -> None:
        """Judge what is staged. Raise AuditError, with the address of the report, if the audit fails.

        A run that a person approved with this result already goes on, unless it is to be staged.
        """
        accept_loss, is_staged = self.arguments.accept_loss, self.arguments.stage
        self.audited = audit(self.run, self.computed, self.parameters, accept_loss=accept_loss, is_staged=is_staged)
        self.approval = None if is_staged else approval_of(self.run.files, self.audited)
        if self.approval is None and (error := stopped(self.run, self.computed, self.audited)):
            raise with_report(error, self.run, self.computed, self.audited, self.warnings)

    def publish(self) -> None:
        """Replace the slices in the tables."""
        self.bar.remove()
        take_over = self.arguments.take_over
        self.outcome = publish(self.run, self.computed, self.audited, self.approval, take_over=take_over)

    def report(self) -> None:
        """Write the report of the published or staged run, and print its summary. Errors are those of `reported`."""
        self.bar.remove()
        run, computed, audited = self.run, self.computed, self.audited
        outcome, approval, json = self.outcome, self.approval, self.arguments.json
        self.result = reported(run, computed, audited, outcome, self.warnings, approval, json=json)

    def interrupted(self, stage: Stage) -> str:
        """Return what Ctrl-C during a stage means for the tables."""
        if stage in (Stage.PUBLISH, Stage.REPORT) and not self.arguments.stage:
            progress = f"while run {self.run.id} was being published or reported"
            return f"interrupted {progress}: recapture status shows what is published"
        return "interrupted; nothing was published: run the same command again"

    def _manifest(self) -> tuple[Manifest, list[str]]:
        """Return the manifest of the range, or the one that is repeated, and warnings."""
        start, end, name = self.arguments.start, self.arguments.end, self.arguments.manifest
        take_over = self.arguments.take_over
        if name is not None:
            return _repeated(self.pipeline, name, replan=self.arguments.changed == "replan", take_over=take_over)
        assert start is not None
        assert end is not None
        planned = preview if self.arguments.is_one_run else preview_run
        return planned(self.pipeline, start, end, take_over=take_over), []


def _repeated(pipeline: Pipeline, name: str, *, replan: bool, take_over: bool) -> tuple[Manifest, list[str]]:
    """Return the manifest in a file or of a run, and warnings; write nothing.

    If its blobs have changed, return a new manifest of the same range if `replan`, and otherwise raise RunError.
    """
    manifest = load_manifest(pipeline, name)
    changed = changed_since(pipeline, manifest)
    if not changed:
        require_publishable(pipeline, take_over=take_over)
        return manifest, []
    count = f"{len(changed):,} of the {manifest.pinned_count:,} blobs"
    difference = f"{count} of run {manifest.run} have changed since it was planned:\n{changes.summary(changed)}"
    if not replan:
        raise RunError(
            f"{difference}\nrestore them, or add --changed replan to plan the range again from the current blobs"
        )
    bounds = manifest.slices[0].slice.start, manifest.slices[-1].slice.end
    start, end = map(ticks.to_datetime, bounds)
    manifest = preview(pipeline, start, end, take_over=take_over)
    return manifest, [f"{difference}\nplanned again as run {manifest.run}"]


def _require_consistent(arguments: Arguments) -> None:
    """Raise DefinitionError unless there is a range or a manifest, and not both, and if options contradict another."""
    has_bounds = arguments.start is not None, arguments.end is not None
    if arguments.manifest is not None and any(has_bounds):
        raise DefinitionError("--manifest has its own range: leave out --from and --to")
    if arguments.manifest is None and not all(has_bounds):
        raise DefinitionError("give a range with --from and --to, or a manifest with --manifest")
    if arguments.stage and arguments.take_over:
        raise DefinitionError("--stage publishes nothing, so it cannot take tables over: leave out --take-over")
    if arguments.manifest is None and arguments.changed != "fail":
        raise DefinitionError("--changed needs --manifest: a range is always planned from the current blobs")
