"""The `recapture` command: plan, backfill, publish, report, status, check, update, request, rollback, clean and more.

The module of a command in `recapture.commands` is imported when the command runs, so that --help and mistakes in
arguments answer at once.
"""

import argparse
import getpass
import importlib
import io
import json
import signal
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from recapture import __version__
from recapture.errors import ClosedOutputError, DefinitionError, RecaptureError, UnfinishedError
from recapture.execute.engine import DEFAULT_MASTER
from recapture.printable import printable
from recapture.process import log, streams
from recapture.process.dataclass_code import kept_code
from recapture.process.limits import reached_limit, require_open_files
from recapture.process.startup import (
    collect_garbage_rarely,
    exit_at_once,
    loaded_for_good,
    start_no_threads_for_linear_algebra,
)
from recapture.process.versions import OUTPUT_FORMAT
from recapture.process.wording import did_you_mean
from recapture.time_model import ticks

_PUBLISHING = ("backfill", "publish", "rollback", "update")
"""Modules of the commands that change tables."""


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
    """Run the command and exit with its code."""
    collect_garbage_rarely()
    start_no_threads_for_linear_algebra()
    streams.secure()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    exit_at_once(main(alone=True))


def main(argv: list[str] | None = None, *, alone: bool = False) -> int:
    """Run the command and return its exit code. `alone` says that nothing else runs in this process: it may be forked.

    0: done; 1: failed or stopped by the audit, nothing was published, or an import left something to do; 2: a usage or
    definition error; 3: published or rolled back in part, or published without a report; 4: `diff` or `compare` found
    a difference that is not explained; 130: interrupted, the message or `recapture status` says what changed; 141: the
    reader of standard output, such as `head`, has ended, and the command publishes nothing.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    publishes = False
    try:
        _require_utf8()
        require_open_files()
        arguments = vars(_parser().parse_args(argv))
        name, is_json = arguments.pop("module"), arguments["json"]
        publishes = name in _PUBLISHING
        if arguments.pop("verbose", False):
            log.enable()
        with _loading() if alone else nullcontext():
            if name == "backfill" and arguments["master"].startswith("local"):
                from recapture.execute.processes.workers import prepare

                prepare(forks=alone)  # until the pipeline is loaded, a core is idle
            from recapture.printing import error_console  # after the fork, as the tasks do not need it

            module = importlib.import_module(f"recapture.commands.{name}")
        result: dict[str, Any] = module.run(error_console(), **arguments)
        if is_json:
            print(printable(json.dumps({"format": OUTPUT_FORMAT, **result}, allow_nan=False)))
        sys.stdout.flush()
    except RecaptureError as error:
        is_closed = isinstance(error, ClosedOutputError)
        if publishes or not is_closed:
            _print_error(str(error))
        return UnfinishedError.exit_code if publishes and is_closed else error.exit_code
    except KeyboardInterrupt:
        _print_error("interrupted")
        return 130
    except (MemoryError, OSError, RuntimeError) as error:
        if (limit := reached_limit(error)) is None:
            raise
        _print_error(limit)
        return UnfinishedError.exit_code if publishes else RecaptureError.exit_code
    exit_code: int = result.get("exit_code", 0 if result.get("ready", True) else 1)  # an imported job may not be ready
    return exit_code


def _print_error(error: str) -> None:
    from recapture import printing

    printing.print_error(printing.error_console(), error)


@contextmanager
def _loading() -> Iterator[None]:
    """Use all shortcuts for imports in this context."""
    with loaded_for_good(), kept_code():
        yield


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
        name: str, text: str, *, ranged: bool = True, required: bool = True, group: Any = commands
    ) -> argparse.ArgumentParser:
        sub = group.add_parser(name, help=text, description=text)
        sub.add_argument("file", type=Path, metavar="FILE", help="the pipeline file")
        if ranged:
            for option, dest, bound in (("--from", "start", "exclusive"), ("--to", "end", "inclusive")):
                range_text = f"{dest} of the range, {bound}; ISO 8601, UTC"
                sub.add_argument(option, dest=dest, type=_instant, required=required, metavar="T", help=range_text)
        sub.add_argument("--json", action="store_true", help="print one JSON object")
        sub.add_argument("-v", "--verbose", action="store_true", help="log each step to standard error")
        sub.set_defaults(module=name.replace("-", "_"))
        return sub

    plan = add("plan", "Show what a backfill would read: slices, blobs, bytes, completeness. Write nothing.")
    text = "show how the rows are computed, too: a line for each step, window and expression of the query"
    plan.add_argument("--explain", action="store_true", help=text)
    backfill = add("backfill", "Plan, run, audit and publish a range.", required=False)
    text = "repeat the run of a manifest, given as a file or as a run of this pipeline, instead of --from and --to"
    backfill.add_argument("--manifest", metavar="FILE_OR_RUN", help=text)
    text = "what to do if blobs of the manifest were modified or deleted since (default: %(default)s)"
    backfill.add_argument("--changed", choices=("fail", "replan"), default="fail", help=text)
    text = "the Spark master; local[N] limits a run without Spark to N processes, too (default: %(default)s)"
    backfill.add_argument("--master", default=DEFAULT_MASTER, help=text)
    _add_bundle(backfill)
    text = "value of a suite's parameter instead of the one in the pipeline file; may be given several times"
    backfill.add_argument(
        "--parameter", dest="parameters", action="append", default=[], metavar="NAME=VALUE", help=text
    )
    text = "publish although the archive has holes, or fewer events than are published: the blobs are gone for good"
    backfill.add_argument("--accept-loss", action="store_true", help=text)
    text = "publish to tables of another pipeline; from then on, they belong to this one"
    backfill.add_argument("--take-over", action="store_true", help=text)
    text = "end after the audit: the run waits, unseen by readers, until you publish or discard it, or it expires"
    backfill.add_argument("--stage", action="store_true", help=text)
    add("staged", "List the runs that wait for a decision, and what keeps each from being published.", ranged=False)
    text = "Publish a run that waits, as it was staged, or say why it cannot be published any more."
    published = add("publish", text, ranged=False)
    text = "Discard a run that waits: it cannot be published any more, and its rows are removed later."
    discarded = add("discard", text, ranged=False)
    for decided in (published, discarded):
        decided.add_argument("run", metavar="RUN", help="the name of the run, as recapture staged shows it")
    text = "Write the data-quality report of published slices as a page: of a range, or of the newest 744."
    reported = add("report", text, required=False)
    text = (
        "write the trend instead: metrics by day and by hour of the day, and what each check said over time; "
        "of the newest 92 days by default"
    )
    reported.add_argument("--trend", action="store_true", help=text)
    text = "the page to write; its data goes into a .json file next to it (default: PIPELINE-FROM-TO.html here)"
    reported.add_argument("--out", type=Path, metavar="FILE", help=text)
    text = (
        "Show what differs between what is published and what a run staged, or what another query or other tolerances "
        "would give. Publish nothing. The exit code is 4 if anything differs."
    )
    compared = add("diff", text, required=False)
    compared.add_argument("--against", metavar="RUN", help="the run whose staged rows are compared")
    _add_tried(compared, "to try")
    text = "compare only N slices, spread evenly over the range"
    compared.add_argument("--sample", type=int, metavar="N", help=text)
    compared.add_argument("--out", type=Path, metavar="FILE", help="also write a page, as HTML")
    text = "the Spark master on this machine; local[N] limits what is tried to N cores (default: %(default)s)"
    compared.add_argument("--master", default=DEFAULT_MASTER, help=text)
    text = (
        "Compare the output of a live job with what is published, and give each difference a reason. The exit code is "
        "0 if all rows are equal or explained, and 4 otherwise."
    )
    live = add("compare", text)
    text = "the live job's output: a Delta table, or a folder of Parquet, JSON or CSV files"
    live.add_argument("--live", required=True, metavar="ADDRESS", help=text)
    live.add_argument("--alias", metavar="ALIAS", help="the output, if the pipeline has several")
    text = "columns that have other names in the live job's output, such as device=deviceId,n=events"
    live.add_argument("--columns", metavar="LIVE=OURS,…", help=text)
    text = "our column with the end of a row's window, if there are several times"
    live.add_argument("--time", metavar="COLUMN", help=text)
    text = "when the live job did not run, as two times; may be given several times"
    live.add_argument("--down", dest="downtimes", action="append", default=[], metavar="FROM/TO", help=text)
    _add_tried(live, "that the live job may have had")
    live.add_argument("--out", type=Path, metavar="FILE", help="also write a page, as HTML")
    text = "the Spark master on this machine; local[N] limits what is computed to N cores (default: %(default)s)"
    live.add_argument("--master", default=DEFAULT_MASTER, help=text)
    text = "Show the states of the published and blocked slices, and the unpublished ranges between them."
    shown = add("status", text, required=False)
    text = "only slices in this state, such as stale or outdated; may be given several times"
    shown.add_argument("--state", dest="states", action="append", default=[], metavar="STATE", help=text)
    text = "Print how complete, trusted and up to date the tables are, as metrics for Prometheus."
    add("metrics", text, ranged=False)
    text = "Compare the archive with what the published slices of a range read: those whose blobs changed are stale."
    add("check", text)
    text = (
        "Bring the tables up to date: compute the slices that are missing, provisional, stale, outdated or requested, "
        "newest first, as the schedule section of the pipeline file says."
    )
    update = add("update", text, ranged=False)
    text = "do what an update at this time would have done; ISO 8601, UTC, not in the future (default: the present)"
    update.add_argument("--now", type=_instant, metavar="T", help=text)
    update.add_argument("--dry-run", action="store_true", help="only show what is due and why; write nothing")
    text = "the Spark master; local[N] limits a run without Spark to N processes, too (default: %(default)s)"
    update.add_argument("--master", default=DEFAULT_MASTER, help=text)
    _add_bundle(update)
    text = (
        "Show where a live job continues after what is published: its custom start time, the last event of each "
        "partition, and slices that do not hold what the archive gives."
    )
    add("handover", text, ranged=False)
    asked = add(
        "request",
        "Request the slices of a range: an update computes them once, whether they are up to date or not.",
    )
    text = "the earliest time at which an update may compute them; ISO 8601, UTC (default: now)"
    asked.add_argument("--at", type=_instant, metavar="T", help=text)
    asked.add_argument("--reason", metavar="TEXT", help="why, for the list of the requests")
    text = "List the open requests and the last 100 others, with their states, who made them, and when."
    add("requests", text, ranged=False)
    cancelled = add("cancel", "Cancel a request that is still waiting: no update has started it.", ranged=False)
    cancelled.add_argument("id", metavar="ID", help="the id of the request, as recapture requests shows it")
    for person in (asked, cancelled):
        person.add_argument("--by", default=_user(), metavar="NAME", help="your name (default: %(default)s)")
    back = add("rollback", "Restore what the slices of a range held before their last publication.")
    text = "the run that every slice must hold now; required to go back further than one publication"
    back.add_argument("--run", metavar="RUN", help=text)
    text = (
        "Remove what nothing needs any more: files of slices that were replaced or never published, and run files of "
        "runs that no publication names."
    )
    cleaned = add("clean", text, ranged=False)
    cleaned.add_argument("--dry-run", action="store_true", help="only show what would be removed; remove nothing")
    text = (
        "Print CREATE TABLE for each input. The types come from the query and from a sample of the input's archive "
        "(the range, or the newest hour)."
    )
    inferred = add("infer", text, required=False)
    text = "write it in front of the query in the pipeline file"
    inferred.add_argument("--write", action="store_true", help=text)
    text = "Propose a suite."
    suite = commands.add_parser("suite", help=text, description=text).add_commands()
    text = (
        "Propose a suite from the published slices of a range, or of the last 28 days, with the figures that led to "
        "each bound in its notes."
    )
    init = add("init", text, required=False, group=suite)
    init.set_defaults(module="suite_init")
    init.add_argument("--alias", metavar="ALIAS", help="the output, if the pipeline has several")
    text = "the suite file to write; it must not exist (default: print the suite)"
    init.add_argument("--out", type=Path, metavar="FILE", help=text)
    text = (
        "Write Great Expectations' Data Docs of the audit of a run, published or stopped. The pages need the network."
    )
    docs = add("data-docs", text, ranged=False)
    docs.add_argument("run", metavar="RUN", help="the name of the run")
    docs.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder to write, new or empty")
    text = "Show how many events of a range would be late or out of order with other tolerances, and which suffice."
    advised = add("advise", text)
    advised.add_argument("--out", type=Path, metavar="FILE", help="also write a page with curves, as HTML")
    text = (
        "Find the events with a value that arrived in a range: where each is in the archive, its times, and what "
        "became of it in a run."
    )
    searched = add("find", text)
    text = (
        "a value that an event must have: of a field of its body, as in site.id=4, or of metadata, as in "
        "PartitionId=3; may be given several times"
    )
    searched.add_argument("--where", action="append", default=[], metavar="KEY=VALUE", help=text)
    text = "the input to search, if the query reads several (default: all)"
    searched.add_argument("--input", dest="alias", metavar="ALIAS", help=text)
    text = "write the events into a file instead: .jsonl, .parquet, or .avro as Event Hubs Capture writes it"
    searched.add_argument("--out", type=Path, metavar="FILE", help=text)
    text = (
        "Explain what became of events, from the manifests of what is published: their verdicts, what pushed the "
        "watermark, and the windows and rows that they are in; or name the events that made a row."
    )
    explained = add("explain", text, required=False)
    text = "the event, by its partition and sequence number, as in 3/4711"
    explained.add_argument("--event", metavar="PARTITION/SEQUENCE", help=text)
    text = "a value that the events must have, as in recapture find; may be given several times"
    explained.add_argument("--where", action="append", default=[], metavar="KEY=VALUE", help=text)
    text = "the row: its time and columns that tell it from other rows, as in windowEnd=2026-03-01T10:05Z,deviceId=a"
    explained.add_argument("--row", metavar="NAME=VALUE,…", help=text)
    text = "the input of the event, if the query reads several"
    explained.add_argument("--input", dest="alias", metavar="ALIAS", help=text)
    explained.add_argument("--output", metavar="ALIAS", help="the output of the row, if the query has several")
    text = "explain the row as this run computes it, published or not, instead of what is published"
    explained.add_argument("--run", dest="run_id", metavar="RUN", help=text)
    explained.add_argument("--out", type=Path, metavar="FILE", help="also write a page of the row, as HTML")
    text = "Check a query without a pipeline: what runs, what does not, why, and what to write instead."
    checked = commands.add_parser("check-query", help=text, description=text)
    checked.add_argument("file", type=Path, metavar="FILE", help="a file with the query")
    checked.add_argument("--json", action="store_true", help="print one JSON object")
    checked.set_defaults(module="check_query")
    text = "Make an archive with Recapture for the executors of a Spark cluster, which then need no installation."
    bundled = commands.add_parser("bundle", help=text, description=text)
    text = "the archive to write (default: %(default)s)"
    bundled.add_argument("--out", type=Path, default=Path("recapture-bundle.tar.gz"), metavar="FILE", help=text)
    text = "the minor version of the executors' Python, which is also the driver's (default: %(default)s)"
    bundled.add_argument("--python", default="{}.{}".format(*sys.version_info[:2]), metavar="VERSION", help=text)
    text = "the processor of the executors, which run Linux (default: %(default)s)"
    bundled.add_argument("--platform", choices=("x86_64", "aarch64"), default="x86_64", help=text)
    bundled.add_argument("--json", action="store_true", help="print one JSON object")
    bundled.set_defaults(module="bundle")
    text = "Write a pipeline file for an ASA job, and list what could not be carried over, and why."
    imported = commands.add_parser("import", help=text, description=text)
    text = "an ASA project, an ARM template, output of terraform show -json, or the definition of an eventstream"
    imported.add_argument("path", type=Path, nargs="?", metavar="PATH", help=text)
    imported.add_argument("--subscription", metavar="ID", help="read a job in Azure instead: its subscription")
    imported.add_argument(
        "--resource-group", dest="group", metavar="NAME", help="the resource group of the job in Azure"
    )
    imported.add_argument("--job", metavar="NAME", help="the job in Azure, or the job if a template has several")
    text = "a template, or the output of terraform show -json, that says where Capture writes"
    imported.add_argument("--capture", type=Path, metavar="FILE", help=text)
    imported.add_argument("--output", type=Path, metavar="FILE", help="the file to write (default: NAME.yaml here)")
    imported.add_argument("--json", action="store_true", help="print one JSON object")
    imported.set_defaults(module="import_job")
    text = "Print the script with which a shell completes this command."
    completed = commands.add_parser("completion", help=text, description=text)
    completed.add_argument("shell", choices=("bash", "zsh", "tcsh"), metavar="SHELL", help="bash, zsh or tcsh")
    completed.set_defaults(module="completion", parser=parser, json=False)
    return parser


def _add_bundle(parser: argparse.ArgumentParser) -> None:
    text = "an archive of recapture bundle, for the executors of the cluster"
    parser.add_argument("--bundle", type=Path, metavar="FILE", help=text)


def _add_tried(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add the options of a query and tolerances other than those of the pipeline file."""
    parser.add_argument("--query", type=Path, metavar="FILE", help=f"a file with the query {purpose}")
    text = f"the late tolerance {purpose}, in seconds; -1 for no limit"
    parser.add_argument("--late", dest="late_seconds", type=int, metavar="SECONDS", help=text)
    text = f"the out-of-order tolerance {purpose}, in seconds"
    parser.add_argument("--out-of-order", dest="out_of_order_seconds", type=int, metavar="SECONDS", help=text)
    text = f"the policy for late and out-of-order events {purpose}"
    parser.add_argument("--policy", choices=("Adjust", "Drop"), help=text)


def _user() -> str:
    """Return the name of the user of this process; "unknown" if the system does not know it, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _instant(text: str) -> datetime:
    """Return the instant of an ISO 8601 string, which is UTC if it has no zone."""
    try:
        return ticks.parse_utc(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an ISO 8601 time such as 2026-03-01T10:00:00Z") from None


if __name__ == "__main__":
    run()
