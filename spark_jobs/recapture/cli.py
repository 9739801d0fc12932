"""The `recapture` command: plan, backfill, status and rollback of a pipeline, and the import of an ASA job."""

import argparse
import io
import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from recapture import __version__, asa_job, log, printing
from recapture.archive import changes
from recapture.definition.pipeline import Pipeline, load
from recapture.errors import DefinitionError, InterruptedRunError, RecaptureError, RunError, UnfinishedError
from recapture.run.audit import audit
from recapture.run.leftovers import remove_leftovers, scratch_name
from recapture.run.plan import changed_since, load_manifest, plan_run, preview, resume_run
from recapture.run.planned import PlannedRun
from recapture.run.progress import capture_progress, described
from recapture.run.publish import publish
from recapture.run.report import report
from recapture.run.scratch import scratch_folder
from recapture.run.status import rollback, status
from recapture.run.suites import load_suites
from recapture.time_model import ticks

if TYPE_CHECKING:
    pass


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise DefinitionError(f"{message}; see {self.prog} --help")


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code.

    0: done; 1: failed or stopped by the audit, nothing was published; 2: a usage or definition error; 3: published or
    rolled back in part; 130: interrupted, the message says how far the run got.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    errors = Console(stderr=True, soft_wrap=True, highlight=False)
    try:
        _require_utf8()
        chosen = _parser().parse_args(arguments)
        if "pipeline" not in chosen:
            return _import(chosen)
        if chosen.verbose:
            log.enable()
        pipeline = load(chosen.pipeline)
        for warning in pipeline.warnings:
            errors.print(f"[yellow]warning:[/] {escape(warning)}")
        result: dict[str, Any] = chosen.command(pipeline, chosen, errors)
        if chosen.json:
            print(json.dumps(result, allow_nan=False))
    except RecaptureError as error:
        errors.print(f"[red]recapture:[/] {escape(str(error))}")
        return error.exit_code
    except KeyboardInterrupt:
        errors.print("[red]recapture:[/] interrupted")
        return 130
    return 0


def _require_utf8() -> None:
    """Raise DefinitionError if the locale spells file names in another encoding: blobs would have other names."""
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8":
        raise DefinitionError(f"the encoding of this locale is {encoding}: use a UTF-8 locale, such as LC_ALL=C.UTF-8")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser("recapture", description="Recompute history from Event Hubs Capture, with ASA's time handling.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Any, text: str, ranged: bool = True, required: bool = True) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.add_argument("pipeline", type=Path, metavar="PIPELINE", help="the pipeline file")
        if ranged:
            sub.add_argument(
                "--from", dest="start", type=_instant, required=required, metavar="T", help="ISO 8601, UTC"
            )
            sub.add_argument(
                "--to", dest="end", type=_instant, required=required, metavar="T", help="the end, included"
            )
        sub.add_argument("--json", action="store_true", help="print one JSON object")
        sub.add_argument("-v", "--verbose", action="store_true", help="log each step to standard error")
        sub.set_defaults(command=command)
        return sub

    add("plan", _plan, "What would be read: slices, blobs, bytes, completeness. Writes nothing.")
    backfill = add("backfill", _backfill, "Plan, run, audit and publish a range.", required=False)
    text = "repeat the run of a manifest, given as a file or as a run of this pipeline, instead of --from and --to"
    backfill.add_argument("--manifest", metavar="FILE_OR_RUN", help=text)
    text = "what to do when blobs of the manifest were touched or deleted since (default: %(default)s)"
    backfill.add_argument("--changed", choices=("fail", "replan"), default="fail", help=text)
    backfill.add_argument("--master", default="local[*]", help="the Spark master (default: %(default)s)")
    add("status", _status, "The slices published, their quality and lateness, and the gaps between them.", ranged=False)
    back = add("rollback", _rollback, "Give slices back what they held before their last publication.")
    text = "the run that every slice must hold now; required to go back further than one publication"
    back.add_argument("--run", metavar="RUN", help=text)
    text = "Write the pipeline file of an ASA job, and tell what could not be carried over and why."
    imported = commands.add_parser("import", help=text, description=text)
    imported.add_argument("path", type=Path, metavar="PATH", help="an ASA project, or an ARM template's file")
    imported.add_argument("--job", metavar="NAME", help="the job, where a template holds several")
    imported.add_argument("--output", type=Path, metavar="FILE", help="the file to write (default: NAME.yaml here)")
    imported.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _instant(text: str) -> datetime:
    """ISO 8601; UTC where it names no zone."""
    try:
        instant = datetime.fromisoformat(text)
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not an ISO 8601 time such as 2026-03-01T10:00:00Z") from None


def _import(chosen: argparse.Namespace) -> int:
    """Write the pipeline file of an ASA job; 0 when it can be run as it is, 1 when something is to be done first."""
    job = asa_job.read_job(chosen.path, chosen.job)
    draft = asa_job.carry_over(job)
    file: Path = chosen.output or Path(f"{draft.name}.yaml")
    text = asa_job.pipeline_text(draft, job.origin)
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise DefinitionError(f"{file}: exists, and is not overwritten: name another with --output") from None
    except OSError as error:
        raise DefinitionError(f"{file}: cannot be written ({error.strerror}): name another with --output") from error
    if not draft.missing:
        try:
            load(file)
        except DefinitionError as error:
            draft.missing.append(asa_job.Finding(file.name, str(error)))
    if chosen.json:
        summary = {"job": job.name, "pipeline": str(file), "ready": not draft.missing}
        findings = {kind: [asdict(finding) for finding in getattr(draft, kind)] for kind in printing.FINDINGS}
        print(json.dumps(summary | findings))
    else:
        printing.print_import(printing.console(), job.name, file, draft)
    return 1 if draft.missing else 0


def _plan(pipeline: Pipeline, chosen: argparse.Namespace, errors: Console) -> dict[str, Any]:
    planned = preview(pipeline, chosen.start, chosen.end)
    progress = capture_progress(pipeline, planned, datetime.now(UTC))
    result = described(pipeline, planned, progress)
    for warning in result["warnings"]:
        errors.print(f"[yellow]warning:[/] {escape(warning)}")
    result["warnings"] = [*pipeline.warnings, *result["warnings"]]
    if not chosen.json:
        printing.print_plan(printing.console(), result, progress)
    return result


def _backfill(pipeline: Pipeline, chosen: argparse.Namespace, errors: Console) -> dict[str, Any]:
    _require_range_or_manifest(chosen)
    try:
        run, warnings = _audited(pipeline, chosen, errors)
    except KeyboardInterrupt:
        raise InterruptedRunError("interrupted; nothing was published: run the same again") from None
    try:
        publish(run)
        return _reported(run, warnings, chosen)
    except KeyboardInterrupt:
        raise InterruptedRunError(
            f"interrupted while run {run.id} was published or reported: recapture status shows what is published"
        ) from None


def _audited(pipeline: Pipeline, chosen: argparse.Namespace, errors: Console) -> tuple[PlannedRun, list[str]]:
    """Compute and audit a run; return it, and warnings about its plan."""
    from recapture.quality import checkpoint
    from recapture.run.session import started
    from recapture.run.spark import compute

    shown = Progress(console=errors, transient=True, disable=chosen.verbose or not errors.is_terminal)
    with shown:
        step = shown.add_task("plan", total=None)
        run, warnings = _planned(pipeline, chosen)
        for warning in warnings:
            errors.print(f"[yellow]warning:[/] {escape(warning)}")
        for leftover in remove_leftovers(pipeline, run.id):
            errors.print(f"removed leftovers of an interrupted run of these slices: {escape(leftover)}")
        checkpoint.check(load_suites(pipeline).values())
        shown.update(step, description="order and aggregate")
        with (
            scratch_folder(scratch_name(pipeline, run.id)) as scratch,
            started(chosen.master, f"recapture {run.id}", scratch) as spark,
            printing.task_bar(spark, shown, step),
        ):
            compute(spark, run)
        shown.update(step, description="audit", total=None)
        audit(run)
    return run, warnings


def _reported(run: PlannedRun, warnings: list[str], chosen: argparse.Namespace) -> dict[str, Any]:
    try:
        result = report(run)
        result["warnings"] += warnings
        if not chosen.json:
            printing.print_report(printing.console(), run, result)
    except RunError as error:
        raise UnfinishedError(f"run {run.id} is published, but its report failed: {error}") from error
    return result


def _require_range_or_manifest(chosen: argparse.Namespace) -> None:
    ranged = chosen.start is not None or chosen.end is not None
    if chosen.manifest is not None and ranged:
        raise DefinitionError("--manifest has a range of its own: leave out --from and --to")
    if chosen.manifest is None and (chosen.start is None or chosen.end is None):
        raise DefinitionError("give a range with --from and --to, or a manifest with --manifest")
    if chosen.manifest is None and chosen.changed != "fail":
        raise DefinitionError("--changed is for --manifest: without it the range is planned anew anyway")


def _planned(pipeline: Pipeline, chosen: argparse.Namespace) -> tuple[PlannedRun, list[str]]:
    """Plan a range, or resume the run of a manifest; return the run and warnings.

    Raise RunError if blobs of the manifest have changed and `--changed replan` was not given.
    """
    if chosen.manifest is None:
        return plan_run(pipeline, chosen.start, chosen.end), []
    manifest = load_manifest(pipeline, chosen.manifest)
    changed = changed_since(pipeline, manifest)
    if not changed:
        return resume_run(pipeline, manifest), []
    count = f"{len(changed):,} of the {len(manifest.blobs):,} blobs"
    difference = f"{count} of run {manifest.run} are not as they were:\n{changes.summary(changed)}"
    if chosen.changed == "fail":
        raise RunError(
            f"{difference}\nrestore them, or plan the range again from what is there now with --changed replan"
        )
    bounds = manifest.slices[0].slice.start, manifest.slices[-1].slice.end
    start, end = map(ticks.to_datetime, bounds)
    run = plan_run(pipeline, start, end)
    return run, [f"{difference}\nplanned anew: run {run.id}"]


def _status(pipeline: Pipeline, chosen: argparse.Namespace, errors: Console) -> dict[str, Any]:
    result = status(pipeline)
    if not chosen.json:
        printing.print_status(printing.console(), result)
    return result


def _rollback(pipeline: Pipeline, chosen: argparse.Namespace, errors: Console) -> dict[str, Any]:
    result = rollback(pipeline, chosen.start, chosen.end, chosen.run)
    if not chosen.json:
        printing.print_rollback(printing.console(), result)
    return result


if __name__ == "__main__":
    sys.exit(main())
