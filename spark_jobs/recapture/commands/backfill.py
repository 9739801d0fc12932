"""Carry out the stages of a run, for a person at a terminal."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape

from recapture import printing
from recapture.archive.manifest import Manifest
from recapture.commands.arguments import OptionalRangeArguments
from recapture.commands.compute import compute_in_processes, compute_with_spark
from recapture.commands.manifest import repeated
from recapture.commands.progress import ProgressBar
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, InterruptedRunError, RecaptureError, UnfinishedError
from recapture.execute.engine import Engine, engine_of
from recapture.process import log
from recapture.run.audit import audit, stopped
from recapture.run.leftovers import remove_leftovers
from recapture.run.plan import begin_run, preview, require_auditable, require_packages
from recapture.run.publish import publish
from recapture.run.stages import Audit, OrderAndAggregate, Plan, Publish, Report, Stage, stages_of
from recapture.run.suites import Parameters, parse_parameters
from recapture.run.summary import summary
from recapture.run_files.computed import Computed
from recapture.run_files.contents import Audited, Outcome
from recapture.run_files.planned import PlannedRun
from recapture.tools.reports.drawing import Drawing, drawing_process
from recapture.tools.reports.write import with_report, write_run_report


@dataclass(frozen=True, kw_only=True)
class Arguments(OptionalRangeArguments):
    """Arguments of the command."""

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
    """Carry out a run, and return its summary. Raise InterruptedRunError for Ctrl-C; it says what is published."""
    pipeline = arguments.load_pipeline(stderr)
    _require_range_or_manifest(arguments)
    return carry_out(pipeline, arguments, stderr)


def carry_out(pipeline: Pipeline, arguments: Arguments, stderr: Console) -> dict[str, Any]:
    """Carry out the stages of a run, and return its summary. Raise InterruptedRunError as `run` does."""
    require_packages()
    stages = stages_of(pipeline, engine_of(pipeline.engine, pipeline.query.needs_spark, arguments.master))
    stage = stages[0]
    with drawing_process() as drawing, ProgressBar(stderr, hidden=arguments.verbose) as bar:
        backfill = Backfill(pipeline, arguments, stderr, drawing, bar)
        try:
            for stage in stages:
                backfill.carry_out(stage)
        except KeyboardInterrupt:
            raise InterruptedRunError(backfill.interrupted(stage)) from None
    return backfill.result


@dataclass
class Backfill:
    """A run, with a method for each of its stages. The first one plans it."""

    pipeline: Pipeline
    arguments: Arguments
    stderr: Console
    drawing: Drawing
    bar: ProgressBar
    run: PlannedRun = field(init=False)
    """The planned run."""
    parameters: Parameters = field(init=False)
    """Parameters of the suites."""
    warnings: list[str] = field(init=False)
    """Warnings about the plan."""
    computed: Computed = field(init=False)
    audited: Audited = field(init=False)
    outcome: Outcome = field(init=False)
    result: dict[str, Any] = field(init=False)
    """Summary of the reported run."""

    def carry_out(self, stage: Stage) -> None:
        """Carry out the next stage."""
        self.bar.begin(stage.name.replace("_", " "))
        match stage:
            case Plan():
                self.plan()
            case OrderAndAggregate(engine):
                self.order_and_aggregate(engine)
            case Audit():
                self.audit()
            case Publish():
                self.publish()
            case Report():
                self.report()
            case _:
                raise AssertionError(f"the command has no stage {stage.name}")

    def plan(self) -> None:
        """Write the manifest, and remove what an interrupted run of these slices left."""
        self.parameters = parse_parameters(self.arguments.parameters)
        manifest, self.warnings = self._manifest()
        self.run = begin_run(self.pipeline, manifest)
        printing.print_warnings(self.stderr, self.warnings)
        for leftover in remove_leftovers(self.pipeline, self.run.id):
            self.stderr.print(f"removed leftovers of an interrupted run of these slices: {escape(leftover)}")

    def order_and_aggregate(self, engine: Engine) -> None:
        """Stage the rows."""
        self.drawing.load()  # before there are workers, whose `kill` would end it
        if engine is Engine.SPARK and not self.arguments.verbose:
            log.silence_spark_errors()
        compute = {Engine.PROCESSES: compute_in_processes, Engine.SPARK: compute_with_spark}[engine]
        check = partial(require_auditable, self.pipeline, self.parameters)
        self.computed = compute(self.run, self.arguments.master, check, self.bar)

    def audit(self) -> None:
        """Judge what is staged. Raise AuditError, with the address of the report, if the audit fails."""
        accept_loss = self.arguments.accept_loss
        self.audited = audit(self.run, self.computed, self.parameters, accept_loss=accept_loss)
        if error := stopped(self.run, self.computed, self.audited):
            raise with_report(error, self.run, self.computed, self.audited, self.warnings, self.drawing.svg)

    def publish(self) -> None:
        """Replace the slices in the tables."""
        self.bar.remove()
        self.outcome = publish(self.run, self.computed, self.audited, take_over=self.arguments.take_over)

    def report(self) -> None:
        """Write the report of the published run, and print its summary. Raise UnfinishedError if that fails."""
        try:
            result = summary(self.run, self.computed, self.audited, self.outcome)
            result["warnings"] += self.warnings
            draw, warnings = self.drawing.svg, result["warnings"]
            result["report"] = write_run_report(self.run, self.computed, self.audited, warnings, draw)
            if not self.arguments.json:
                out = printing.console()
                printing.print_staged_rows(out, self.run, self.computed, result)
                printing.print_run(out, result)
        except Exception as error:
            said = str(error) if isinstance(error, RecaptureError) else f"{type(error).__name__}: {error}"
            raise UnfinishedError(f"run {self.run.id} is published, but its report failed: {said}") from error
        self.result = result

    def interrupted(self, stage: Stage) -> str:
        """Return what Ctrl-C during a stage means for the tables."""
        if isinstance(stage, Publish | Report):
            progress = f"while run {self.run.id} was being published or reported"
            return f"interrupted {progress}: recapture status shows what is published"
        return "interrupted; nothing was published: run the same command again"

    def _manifest(self) -> tuple[Manifest, list[str]]:
        """Return the manifest of the range, or the one that is repeated, and warnings."""
        start, end, name = self.arguments.start, self.arguments.end, self.arguments.manifest
        take_over = self.arguments.take_over
        if name is not None:
            return repeated(self.pipeline, name, replan=self.arguments.changed == "replan", take_over=take_over)
        assert start is not None
        assert end is not None
        return preview(self.pipeline, start, end, take_over=take_over), []


def _require_range_or_manifest(arguments: Arguments) -> None:
    """Raise DefinitionError unless there is a range or a manifest, and not both."""
    has_bounds = arguments.start is not None, arguments.end is not None
    if arguments.manifest is not None and any(has_bounds):
        raise DefinitionError("--manifest has its own range: leave out --from and --to")
    if arguments.manifest is None and not all(has_bounds):
        raise DefinitionError("give a range with --from and --to, or a manifest with --manifest")
    if arguments.manifest is None and arguments.changed != "fail":
        raise DefinitionError("--changed needs --manifest: a range is always planned from the current blobs")
