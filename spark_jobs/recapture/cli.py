"""The `recapture` command: plan, backfill, report, status, check, rollback, advise and infer of a pipeline, and import.

Each command imports what it needs when it runs, so that --help and mistakes in arguments answer at once.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import sys
from collections.abc import Collection, Iterable
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from rich.markup import escape

from recapture import __version__, printing
from recapture.errors import (
    ClosedOutputError,
    DefinitionError,
    InterruptedRunError,
    RecaptureError,
    RunError,
    UnfinishedError,
)
from recapture.printable import printable
from recapture.process import log, streams
from recapture.process.startup import collect_garbage_less_often
from recapture.process.wording import did_you_mean
from recapture.time_model import ticks

if TYPE_CHECKING:
    from concurrent.futures import Future

    from rich.console import Console
    from rich.progress import Progress, TaskID

    from recapture.archive.manifest import Manifest
    from recapture.definition.pipeline import Pipeline
    from recapture.execute.processes.workers import Workers
    from recapture.run_files.computed import Computed
    from recapture.run_files.contents import Audited, Outcome
    from recapture.run_files.planned import PlannedRun
    from recapture.tools.reports.drawing import Drawing

_OTHER_PLACE = "choose another file with --output"
_OTHER_PAGE = "choose another file with --out"


@dataclass(frozen=True, kw_only=True)
class _PipelineArguments:
    """Arguments of every command on a pipeline."""

    pipeline: Path
    json: bool
    verbose: bool


@dataclass(frozen=True, kw_only=True)
class _PlanArguments(_PipelineArguments):
    start: datetime
    end: datetime


@dataclass(frozen=True, kw_only=True)
class _StatusArguments(_PipelineArguments):
    start: datetime | None
    end: datetime | None
    states: list[str]


@dataclass(frozen=True, kw_only=True)
class _RollbackArguments(_PlanArguments):
    run: str | None


@dataclass(frozen=True, kw_only=True)
class _BackfillArguments(_PipelineArguments):
    start: datetime | None
    end: datetime | None
    manifest: str | None
    changed: Literal["fail", "replan"]
    master: str
    parameters: list[str]
    accept_loss: bool
    take_over: bool


@dataclass(frozen=True, kw_only=True)
class _ReportArguments(_PipelineArguments):
    start: datetime | None
    end: datetime | None
    out: Path | None


@dataclass(frozen=True, kw_only=True)
class _InferArguments(_PipelineArguments):
    start: datetime | None
    end: datetime | None
    write: bool


@dataclass(frozen=True, kw_only=True)
class _SuiteArguments(_PipelineArguments):
    start: datetime | None
    end: datetime | None
    alias: str | None
    out: Path | None


@dataclass(frozen=True, kw_only=True)
class _DataDocsArguments(_PipelineArguments):
    run: str
    out: Path


@dataclass(frozen=True, kw_only=True)
class _AdviseArguments(_PlanArguments):
    out: Path | None


@dataclass(frozen=True, kw_only=True)
class _ImportArguments:
    path: Path
    job: str | None
    output: Path | None
    json: bool


class _Parser(argparse.ArgumentParser):
    """A parser that reports an unknown option or command before anything else, with the most similar known one."""

    commands: Collection[str] = ()
    """Names of the commands, if the parser has any: the first positional argument is one of them."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        arguments = sys.argv[1:] if args is None else list(args)
        self._require_known(arguments)
        return super().parse_known_args(arguments, namespace)

    def _require_known(self, arguments: Iterable[str]) -> None:
        for argument in arguments:
            name = argument.partition("=")[0]
            if argument == "--":
                return
            if name.startswith("--") and not any(option.startswith(name) for option in self._option_string_actions):
                self._refuse("option", name, self._option_string_actions)
            if self.commands and not argument.startswith("-"):
                if argument not in self.commands:
                    self._refuse("command", argument, self.commands)
                return

    def _refuse(self, what: str, name: str, known: Iterable[str]) -> NoReturn:
        advice = did_you_mean(name, known) or f"use one of {', '.join(known)}"
        self.error(f"unknown {what} {name}: {advice}")

    def add_commands(self) -> Any:
        """Return the action to which the parsers of commands are added."""
        action = self.add_subparsers(required=True, metavar="COMMAND")
        self.commands = action.choices
        return action

    def error(self, message: str) -> NoReturn:
        raise DefinitionError(f"{message}; see {self.prog} --help")


def run() -> NoReturn:
    """Run the command and exit with its code, at once: Python takes a second to clear what it has imported."""
    collect_garbage_less_often()
    streams.secure()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    command = sys.modules["__main__"]
    command.__spec__ = command.__file__ = None  # else every process that is started would import it
    code = main()
    if workers := sys.modules.get("recapture.execute.processes.workers"):
        workers.stop()
    with suppress(OSError):  # it may be full
        sys.stderr.flush()
    os._exit(code)


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit code.

    0: done; 1: failed or stopped by the audit, nothing was published, or an import left something to do; 2: a usage or
    definition error; 3: published or rolled back in part, or published without a report; 130: interrupted, the
    message or `recapture status` says what changed; 141: the reader of standard output, such as `head`, has ended, and
    the command publishes nothing.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    stderr = printing.error_console()
    publishes = False
    try:
        _require_utf8()
        parsed = vars(_parser().parse_args(argv))
        command, make_arguments = parsed.pop("command"), parsed.pop("make_arguments")
        arguments: _PipelineArguments | _ImportArguments = make_arguments(**parsed)
        publishes = isinstance(arguments, _BackfillArguments | _RollbackArguments)
        if isinstance(arguments, _ImportArguments):
            code = _import(arguments)
            sys.stdout.flush()
            return code
        if arguments.verbose:
            log.enable()
        if isinstance(arguments, _BackfillArguments) and arguments.master.startswith("local"):
            from recapture.execute.processes.workers import prepare

            prepare()  # until the pipeline is loaded, a core is idle
        from recapture.definition.pipeline import load, load_without_query

        if isinstance(arguments, _InferArguments):
            pipeline = load_without_query(arguments.pipeline)
        else:
            pipeline = load(arguments.pipeline)
            printing.print_warnings(stderr, pipeline.warnings)
        result: dict[str, Any] = command(pipeline, arguments, stderr)
        if arguments.json:
            print(printable(json.dumps(result, allow_nan=False)))
        sys.stdout.flush()
    except RecaptureError as error:
        is_closed = isinstance(error, ClosedOutputError)
        if publishes or not is_closed:
            printing.print_error(stderr, str(error))
        return UnfinishedError.exit_code if publishes and is_closed else error.exit_code
    except KeyboardInterrupt:
        printing.print_error(stderr, "interrupted")
        return 130
    return 0


def _require_utf8() -> None:
    """Raise DefinitionError unless the locale encodes file names in UTF-8; otherwise blobs would get other names."""
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8":
        raise DefinitionError(f"the encoding of this locale is {encoding}: use a UTF-8 locale, such as LC_ALL=C.UTF-8")


def _parser() -> _Parser:
    parser = _Parser("recapture", description="Recompute history from Event Hubs Capture, with ASA's time handling.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_commands()

    def add(
        name: str,
        command: Any,
        make_arguments: Any,
        text: str,
        ranged: bool = True,
        required: bool = True,
        group: Any = commands,
    ) -> argparse.ArgumentParser:
        sub = group.add_parser(name, help=text, description=text)
        sub.add_argument("pipeline", type=Path, metavar="PIPELINE", help="the pipeline file")
        if ranged:
            for option, name, bound in (("--from", "start", "exclusive"), ("--to", "end", "inclusive")):
                range_text = f"{name} of the range, {bound}; ISO 8601, UTC"
                sub.add_argument(option, dest=name, type=_instant, required=required, metavar="T", help=range_text)
        sub.add_argument("--json", action="store_true", help="print one JSON object")
        sub.add_argument("-v", "--verbose", action="store_true", help="log each step to standard error")
        sub.set_defaults(command=command, make_arguments=make_arguments)
        return sub

    text = "Show what a backfill would read: slices, blobs, bytes, completeness. Write nothing."
    add("plan", _plan, _PlanArguments, text)
    text = "Plan, run, audit and publish a range."
    backfill = add("backfill", _backfill, _BackfillArguments, text, required=False)
    text = "repeat the run of a manifest, given as a file or as a run of this pipeline, instead of --from and --to"
    backfill.add_argument("--manifest", metavar="FILE_OR_RUN", help=text)
    text = "what to do if blobs of the manifest were modified or deleted since (default: %(default)s)"
    backfill.add_argument("--changed", choices=("fail", "replan"), default="fail", help=text)
    text = "the Spark master; local[N] limits a run without Spark to N processes, too (default: %(default)s)"
    backfill.add_argument("--master", default="local[*]", help=text)
    text = "value of a suite's parameter instead of the one in the pipeline file; may be given several times"
    backfill.add_argument(
        "--parameter", dest="parameters", action="append", default=[], metavar="NAME=VALUE", help=text
    )
    text = "publish although the archive has holes, or fewer events than are published: the blobs are gone for good"
    backfill.add_argument("--accept-loss", action="store_true", help=text)
    text = "publish to tables of another pipeline; from then on, they belong to this one"
    backfill.add_argument("--take-over", action="store_true", help=text)
    text = "Write the data-quality report of published slices as a page: of a range, or of the newest 744."
    reported = add("report", _report_range, _ReportArguments, text, required=False)
    text = "the page to write; its data goes into a .json file next to it (default: PIPELINE-FROM-TO.html here)"
    reported.add_argument("--out", type=Path, metavar="FILE", help=text)
    text = "Show the states of the published and blocked slices, and the unpublished ranges between them."
    shown = add("status", _status, _StatusArguments, text, required=False)
    text = "only slices in this state, such as stale or outdated; may be given several times"
    shown.add_argument("--state", dest="states", action="append", default=[], metavar="STATE", help=text)
    text = "Compare the archive with what the published slices of a range read: those whose blobs changed are stale."
    add("check", _check, _PlanArguments, text)
    text = "Restore what the slices of a range held before their last publication."
    back = add("rollback", _rollback, _RollbackArguments, text)
    text = "the run that every slice must hold now; required to go back further than one publication"
    back.add_argument("--run", metavar="RUN", help=text)
    text = (
        "Print CREATE TABLE for each input. The types come from the query and from a sample of the input's archive "
        "(the range, or the newest hour)."
    )
    inferred = add("infer", _infer, _InferArguments, text, required=False)
    text = "write it in front of the query in the pipeline file"
    inferred.add_argument("--write", action="store_true", help=text)
    text = "Propose a suite."
    suite = commands.add_parser("suite", help=text, description=text).add_commands()
    text = (
        "Propose a suite from the published slices of a range, or of the last 28 days, with the figures that led to "
        "each bound in its notes."
    )
    init = add("init", _suite_init, _SuiteArguments, text, required=False, group=suite)
    init.add_argument("--alias", metavar="ALIAS", help="the output, if the pipeline has several")
    text = "the suite file to write; it must not exist (default: print the suite)"
    init.add_argument("--out", type=Path, metavar="FILE", help=text)
    text = (
        "Write Great Expectations' Data Docs of the audit of a run, published or stopped. The pages need the network."
    )
    docs = add("data-docs", _data_docs, _DataDocsArguments, text, ranged=False)
    docs.add_argument("run", metavar="RUN", help="the name of the run")
    docs.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder to write, new or empty")
    text = "Show how many events of a range would be late or out of order with other tolerances, and which suffice."
    advised = add("advise", _advise, _AdviseArguments, text)
    advised.add_argument("--out", type=Path, metavar="FILE", help="also write a page with curves, as HTML")
    text = "Write a pipeline file for an ASA job, and list what could not be carried over, and why."
    imported = commands.add_parser("import", help=text, description=text)
    imported.add_argument("path", type=Path, metavar="PATH", help="an ASA project, or an ARM template's file")
    imported.add_argument("--job", metavar="NAME", help="the job, if a template has several")
    imported.add_argument("--output", type=Path, metavar="FILE", help="the file to write (default: NAME.yaml here)")
    imported.add_argument("--json", action="store_true", help="print one JSON object")
    imported.set_defaults(command=_import, make_arguments=_ImportArguments)
    return parser


def _instant(text: str) -> datetime:
    """Return the instant of an ISO 8601 text, which is UTC if it has no zone."""
    try:
        return ticks.parse_utc(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an ISO 8601 time such as 2026-03-01T10:00:00Z") from None


def _import(arguments: _ImportArguments) -> int:
    """Write a pipeline file for an ASA job. Return 0 if it is ready to run, 1 if something has to be done first."""
    from recapture.definition.pipeline import load
    from recapture.tools import asa_job

    job = asa_job.read_job(arguments.path, arguments.job)
    draft = asa_job.carry_over(job)
    file = arguments.output or Path(f"{draft.name}.yaml")
    texts = {file: asa_job.pipeline_text(draft, job.origin)}
    texts |= {file.parent / path: script for path, script in draft.scripts.items()}
    for path in texts:
        if os.path.lexists(path):
            raise DefinitionError(f"{path} already exists and is not overwritten: {_OTHER_PLACE}")
    for path, text in texts.items():
        _write_new(path, text, in_folder=path != file)
    if not draft.missing:
        try:
            load(file)
        except DefinitionError as error:
            draft.missing.append(asa_job.Finding(file.name, str(error)))
    if arguments.json:
        scripts = [str(path) for path in texts if path != file]
        summary = {"job": job.name, "pipeline": str(file), "scripts": scripts, "ready": not draft.missing}
        findings = {kind: [asdict(finding) for finding in getattr(draft, kind)] for kind in printing.FINDINGS}
        print(printable(json.dumps(summary | findings)))
    else:
        printing.print_import(printing.console(), job.name, file, draft)
    return 1 if draft.missing else 0


def _write_new(path: Path, text: str, *, in_folder: bool) -> None:
    """Write a new file, `in_folder` of its own. Raise DefinitionError if it cannot be written."""
    try:
        if in_folder:
            path.parent.mkdir(exist_ok=True)
        with path.open("x", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise DefinitionError(f"{path} cannot be written ({error.strerror}): {_OTHER_PLACE}") from error


def _plan(pipeline: Pipeline, arguments: _PlanArguments, stderr: Console) -> dict[str, Any]:
    from recapture.run.plan import preview
    from recapture.run.plan_summary import plan_summary
    from recapture.run.progress import capture_progress, storage_time
    from recapture.run.slice_state import standing_of

    manifest = preview(pipeline, arguments.start, arguments.end)
    progress = capture_progress(pipeline, manifest, storage_time(pipeline, datetime.now(UTC)))
    result = plan_summary(pipeline, manifest, progress, standing_of(pipeline))
    printing.print_warnings(stderr, result["warnings"])
    result["warnings"] = [*pipeline.warnings, *result["warnings"]]
    if not arguments.json:
        printing.print_plan(printing.console(), result, progress)
    return result


def _backfill(pipeline: Pipeline, arguments: _BackfillArguments, stderr: Console) -> dict[str, Any]:
    from recapture.run.plan import require_packages
    from recapture.run.publish import publish
    from recapture.tools.reports.drawing import drawing_process

    _require_range_or_manifest(arguments)
    require_packages()
    with drawing_process() as drawing:
        try:
            run, computed, audited, warnings = _compute_and_audit(pipeline, arguments, stderr, drawing)
        except KeyboardInterrupt:
            raise InterruptedRunError("interrupted; nothing was published: run the same command again") from None
        try:
            outcome = publish(run, computed, audited, take_over=arguments.take_over)
            return _write_report(run, computed, audited, outcome, warnings, arguments, drawing)
        except KeyboardInterrupt:
            raise InterruptedRunError(
                f"interrupted while run {run.id} was being published or reported: "
                "recapture status shows what is published"
            ) from None


def _compute_and_audit(
    pipeline: Pipeline, arguments: _BackfillArguments, stderr: Console, drawing: Drawing
) -> tuple[PlannedRun, Computed, Audited, list[str]]:
    """Plan, compute and audit a run; return it, what it computed, its audit, and warnings about its plan."""
    from concurrent.futures import ThreadPoolExecutor

    from rich.progress import Progress

    from recapture.execute.processes.compute import cores_of
    from recapture.execute.processes.workers import workers
    from recapture.run.audit import audit, stopped
    from recapture.run.leftovers import remove_leftovers, scratch_name
    from recapture.run.plan import begin_run, require_auditable
    from recapture.run.suites import parse_parameters
    from recapture.storage.scratch import scratch_folder
    from recapture.tools.reports.write import with_report

    cores = None if pipeline.query.needs_spark else cores_of(arguments.master)
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
    from recapture.execute.processes.compute import compute

    def watch(done: int, total: int) -> None:
        if auditable.done():
            auditable.result()
        progress_bar.update(step, total=total, completed=done)

    computed = compute(processes, run, scratch, watch)
    auditable.result()
    return computed


def _compute_with_spark(
    run: PlannedRun,
    arguments: _BackfillArguments,
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
    arguments: _BackfillArguments,
    drawing: Drawing,
) -> dict[str, Any]:
    """Write the report of a published run, and print and return its summary. Raise UnfinishedError if that fails."""
    from recapture.run.summary import summary
    from recapture.tools.reports.write import write_run_report

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


def _require_range_or_manifest(arguments: _BackfillArguments) -> None:
    """Raise DefinitionError unless there is a range or a manifest, and not both."""
    has_bounds = arguments.start is not None, arguments.end is not None
    if arguments.manifest is not None and any(has_bounds):
        raise DefinitionError("--manifest has a range of its own: leave out --from and --to")
    if arguments.manifest is None and not all(has_bounds):
        raise DefinitionError("give a range with --from and --to, or a manifest with --manifest")
    if arguments.manifest is None and arguments.changed != "fail":
        raise DefinitionError("--changed needs --manifest: a range is always planned from the current blobs")


def _plan_or_load(pipeline: Pipeline, arguments: _BackfillArguments) -> tuple[Manifest, list[str]]:
    """Return the manifest of a range, or the one that is given, and warnings; write nothing.

    Raise RunError if blobs of the manifest have changed and `--changed replan` was not given.
    """
    from recapture.archive import changes
    from recapture.run.plan import changed_since, load_manifest, preview, require_publishable

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


def _status(pipeline: Pipeline, arguments: _StatusArguments, stderr: Console) -> dict[str, Any]:
    from recapture.run.slice_state import State
    from recapture.run.status import status

    if (arguments.start is None) != (arguments.end is None):
        raise DefinitionError("give both --from and --to, or neither for all slices")
    known = {str(state): state for state in State}
    for name in arguments.states:
        if name not in known:
            raise DefinitionError(f"--state {name}: the states are {', '.join(known)}")
    states = [known[name] for name in arguments.states]
    result = status(pipeline, arguments.start, arguments.end, states)
    if not arguments.json:
        printing.print_status(printing.console(), result)
    return result


def _check(pipeline: Pipeline, arguments: _PlanArguments, stderr: Console) -> dict[str, Any]:
    from recapture.run.changed import check

    result = check(pipeline, arguments.start, arguments.end)
    if not arguments.json:
        printing.print_check(printing.console(), result)
    return result


def _report_range(pipeline: Pipeline, arguments: _ReportArguments, stderr: Console) -> dict[str, Any]:
    from recapture.tools.reports.write import write_range_report

    if (arguments.start is None) != (arguments.end is None):
        raise DefinitionError("give both --from and --to, or neither for the newest 744 published slices")
    result = write_range_report(pipeline, arguments.start, arguments.end, arguments.out)
    if not arguments.json:
        printing.print_report(printing.console(), result)
    return result


def _infer(pipeline: Pipeline, arguments: _InferArguments, stderr: Console) -> dict[str, Any]:
    from recapture.tools.infer.inference import infer, require_no_create_table, write

    if (arguments.start is None) != (arguments.end is None):
        raise DefinitionError("give both --from and --to, or neither for the newest hour")
    if arguments.write:
        require_no_create_table(pipeline)
    inference = infer(pipeline, arguments.start, arguments.end)
    if not arguments.json:
        print(printable(inference.statement), end="")
    if arguments.write:
        write(pipeline, inference)
    printing.print_warnings(stderr, inference.warnings)
    if arguments.write:
        for inferred in inference.inputs:
            stderr.print(f"{escape(str(pipeline.file))}: CREATE TABLE {escape(inferred.alias)} is written")
    return inference.summary | {"written": arguments.write}


def _suite_init(pipeline: Pipeline, arguments: _SuiteArguments, stderr: Console) -> dict[str, Any]:
    from recapture.run.propose import propose, write

    if (arguments.start is None) != (arguments.end is None):
        raise DefinitionError("give both --from and --to, or neither for the last 28 days")
    proposal = propose(pipeline, arguments.alias, arguments.start, arguments.end)
    if arguments.out is not None:
        write(pipeline, proposal, arguments.out)
    if not arguments.json:
        printing.print_proposal(proposal, arguments.out, stderr)
    summary = {"output": proposal.output, "slices": proposal.slices, "rows": proposal.rows, "suite": proposal.suite}
    return summary | {"written": None if arguments.out is None else str(arguments.out)}


def _data_docs(pipeline: Pipeline, arguments: _DataDocsArguments, stderr: Console) -> dict[str, Any]:
    from recapture.run.data_docs import write_data_docs

    page = write_data_docs(pipeline, arguments.run, arguments.out).absolute().as_uri()
    if not arguments.json:
        print(page)
    return {"run": arguments.run, "page": page}


def _advise(pipeline: Pipeline, arguments: _AdviseArguments, stderr: Console) -> dict[str, Any]:
    from recapture.pages.page import require_installed
    from recapture.run.progress import storage_time
    from recapture.tools.advise.advice import advise
    from recapture.tools.advise.page import page

    if arguments.out is not None:
        require_installed()
        if not arguments.out.parent.is_dir():
            raise DefinitionError(f"{arguments.out}: there is no folder {arguments.out.parent}: {_OTHER_PAGE}")
    advice = advise(pipeline, arguments.start, arguments.end, storage_time(pipeline, datetime.now(UTC)))
    if arguments.out is not None:
        try:
            arguments.out.write_bytes(page(advice))
        except OSError as error:
            raise DefinitionError(f"{arguments.out} cannot be written ({error.strerror}): {_OTHER_PAGE}") from error
    if not arguments.json:
        printing.print_advice(printing.console(), advice)
    printing.print_warnings(stderr, advice.warnings)
    if arguments.out is not None:
        stderr.print(f"{escape(str(arguments.out))}: the page is written")
    return advice.summary


def _rollback(pipeline: Pipeline, arguments: _RollbackArguments, stderr: Console) -> dict[str, Any]:
    from recapture.run.rollback import rollback

    result = rollback(pipeline, arguments.start, arguments.end, arguments.run)
    if not arguments.json:
        printing.print_rollback(printing.console(), result)
    return result


if __name__ == "__main__":
    run()
