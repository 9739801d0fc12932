"""What the command prints on a terminal."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from recapture.execute.engine import Engine
from recapture.pages.page import duration, number
from recapture.printable import message, one_line, printable
from recapture.process import streams
from recapture.process.wording import counted, named_slices, of_input
from recapture.time_model import ticks
from recapture.tools.compare.page import verdict as comparison_verdict
from recapture.tools.diff.page import verdict

if TYPE_CHECKING:
    import pyarrow as pa

    from recapture.archive.progress import PartitionProgress
    from recapture.run_files.computed import Computed
    from recapture.run_files.planned import PlannedRun
    from recapture.tools.advise.advice import Advice
    from recapture.tools.advise.input_advice import InputAdvice
    from recapture.tools.advise.keys import Key
    from recapture.tools.advise.tolerances import Setting
    from recapture.tools.asa_job import Draft
    from recapture.tools.check_query import CheckedQuery
    from recapture.tools.events.find import Found

FINDINGS = {
    "missing": "to do before the pipeline gives the results of the job:",
    "different": "not quite as in the job:",
}
"""Titles of the findings about an imported job, by the field of `asa_job.Draft`."""

SHOWN_EVENTS = 100
"""Maximum number of events that are printed; a file has more."""
SHOWN_ROWS = 12
"""Maximum number of rows that are printed of an output."""
REASONS_SHOWN = 5
"""Maximum number of reasons for a quarantine that are printed; --json has more."""
_METRICS = {
    "rows": "OutputEvents",
    "events": "InputEvents",
    "late": "LateInputEvents",
    "out of order": "DroppedOrAdjustedEvents",
    "early": "EarlyInputEvents",
    "no time": "InvalidInputTimeStamp",
    "malformed": "DeserializationError",
}
"""Metrics of a slice that are printed, by the title of their column."""
_SETTING = ("late", "out of order", "slice complete", "unchanged")
PIPE_WIDTH = 160
"""Width in characters of what goes to a file or a pipe."""


class _PrintableConsole(Console):
    """A console that escapes control characters in all strings: names of devices and blobs may contain them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, soft_wrap=True, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


class _ErrorConsole(_PrintableConsole):
    """The console of standard error. If nobody reads it any more, the command goes on without it."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        streams.drop_errors()


def console() -> Console:
    """Return the console of standard output. Lines to a file or a pipe are not wrapped."""
    return _PrintableConsole(width=None if sys.stdout.isatty() else PIPE_WIDTH)


def error_console() -> Console:
    """Return the console of standard error."""
    return _ErrorConsole(stderr=True)


def print_error(stderr: Console, error: str) -> None:
    """Print why the command fails."""
    stderr.print(f"[red]recapture:[/] {escape(message(error))}")


def print_warnings(out: Console, warnings: Iterable[str]) -> None:
    for warning in warnings:
        out.print(f"[yellow]warning:[/] {escape(message(warning))}")


def _line(value: object) -> str:
    """Return a value as one line of markup."""
    return escape(one_line(str(value)))


def print_plan(out: Console, result: dict[str, Any], progress: Mapping[str, Iterable[PartitionProgress]]) -> None:
    """Print what a backfill would read, and how far each partition has got."""
    table = Table(
        "slice", "blobs", "bytes", "complete", "state", title=f"{result['pipeline']}: what a backfill would read"
    )
    for row in result["slices"]:
        inputs = row["inputs"]
        waiting = "; ".join(_waiting(counts, len(inputs) > 1) for counts in inputs if counts["incomplete"])
        table.add_row(
            row["slice_start"],
            f"{row['blobs']:,}",
            f"{row['bytes']:,}",
            f"no: {waiting}" if waiting else "yes",
            "; ".join([row["state"], *_differing(row)]),
        )
    out.print(table)
    for partition in itertools.chain.from_iterable(progress.values()):
        out.print(_line(partition))
    for read in result["inputs"]:
        ordered = f"order its events, but do not aggregate them: {read['not_aggregated_because']}"
        how = "aggregate its events" if read["aggregated_in_tasks"] else ordered
        out.print(_line(f"input {read['alias']}: tasks {how}"))
        if read["index"]:
            out.print(_line(f"input {read['alias']}: index for find and explain: {', '.join(read['index'])}"))
    if result["engine"] == Engine.PROCESSES:
        out.print("recapture backfill computes the rows without Spark, unless --master names a cluster")
    for reference in result["references"]:
        versions = counted(len(reference["versions"]), "version")
        out.print(f"reference data {_line(reference['alias'])}: {versions}, {reference['bytes']:,} bytes")
    blobs = counted(result["blobs"], "blob")
    out.print(f"in all {blobs}, {result['bytes']:,} bytes, each counted once; run {result['run']}")
    if result["estimate"]:
        out.print(_estimate(result["estimate"]))
    out.print("a backfill of this range:")
    for stage in result["stages"]:
        out.print(_line(f"  {stage['name'].replace('_', ' ')}: {stage['description']}"))
    for line in result.get("relations", ()):
        out.print(_line(line))


def _estimate(estimate: Mapping[str, Any]) -> str:
    from recapture.run.cost import sentence

    other = "" if estimate["same_definition"] else " with another definition"
    basis = f"judging by {counted(estimate['runs'], 'run')}{other}"
    return _line(f"a backfill will take about {sentence(estimate)}, {basis}")


def _waiting(counts: Mapping[str, Any], name_input: bool) -> str:
    return f"partition {', '.join(counts['incomplete'])}{of_input(counts['alias'] if name_input else None)}"


def print_import(out: Console, name: str, file: Path, draft: Draft) -> None:
    """Print the pipeline file of an imported job, and the findings about it."""
    out.print(f"{_line(file)}: the pipeline of the ASA job {_line(name)}")
    for kind, title in FINDINGS.items():
        findings = getattr(draft, kind)
        if findings:
            out.print(f"[bold]{title}[/]")
        for finding in findings:
            out.print(f"  {escape(message(str(finding)))}")


def print_checked_query(out: Console, checked: CheckedQuery) -> None:
    """Print what runs of a query, and what does not."""
    for input_ in checked.inputs:
        kind = "reference data" if input_.is_reference else "events"
        fields = ", ".join(f"{name} {type_}" for name, type_ in input_.fields.items()) or "no fields"
        out.print(escape(message(f"input {input_.alias} ({kind}): {fields}")))
    for output in checked.outputs:
        columns = ", ".join(f"{name} {type_}" for name, type_ in output.columns.items())
        out.print(escape(message(f"output {output.alias} runs: {columns}")))
    for assumption in checked.assumed:
        out.print(escape(message(f"assumed: {assumption}")))
    for refusal in checked.refusals:
        outputs = f"output {', '.join(refusal.outputs)} does not run: " if refusal.outputs else ""
        place = "" if refusal.line is None else f"line {refusal.line}, column {refusal.column}: "
        first, *rest = refusal.what.split("\n")
        out.print(escape(message(f"{outputs}{place}{first}")))
        for line in rest:
            out.print(escape(line), highlight=False)
    if checked.runs:
        out.print("the whole query runs")


def print_staged_rows(out: Console, run: PlannedRun, computed: Computed, result: dict[str, Any]) -> None:
    """Print the first rows of a run's outputs; `result` is its summary."""
    from recapture.run.staged import staged_rows

    for output, written in zip(run.pipeline.outputs, result["outputs"], strict=True):
        rows = staged_rows(run.id, computed, output, SHOWN_ROWS)
        print_rows(out, output.alias, rows, written["metrics"]["OutputEvents"])


def print_run(out: Console, result: dict[str, Any]) -> None:
    """Print the summary of a run without its rows: the metrics, the audit, the quarantine, warnings and versions."""
    counts = Table("slice", *_METRICS, title="metrics")
    for slice_ in result["slices"]:
        counts.add_row(slice_["slice_start"], *(f"{slice_[name]:,}" for name in _METRICS.values()))
    out.print(counts)
    out.print(escape(result["quality"]["text"]))
    quarantine = result["quarantine"]
    if quarantine.get("rows"):
        rows = counted(quarantine["rows"], "row of these slices is", "rows of these slices are")
        out.print(f"{rows} in the quarantine, {_line(quarantine['table'])}:")
        for reason in quarantine["reasons"][:REASONS_SHOWN]:
            out.print(_line(f"  {reason['rows']:,} {reason['verdict']}: {reason['reason']}"))
    print_warnings(out, result["warnings"])
    for output in (output for output in result["outputs"] if output["unchanged_slices"] is not None):
        did = "published as" if output["changed"] else "unchanged, already published as"
        unchanged, slices = output["unchanged_slices"], len(result["slices"])
        some = f", {unchanged:,} of {counted(slices, 'slice')} unchanged" if 0 < unchanged < slices else ""
        out.print(f"run {result['run']} {did} version {output['version']} of {_line(output['table'])}{some}")
    out.print(f"report: {_line(result['report'])}")


def print_cost(out: Console, cost: Mapping[str, Any]) -> None:
    """Print what a run took."""
    from recapture.run.cost import sentence

    out.print(_line(f"the run took {sentence(cost)}"))


def print_staged(out: Console, result: Mapping[str, Any], file: str) -> None:
    """Print how a person publishes a staged run; `result` is its summary, and `file` the name of the pipeline file."""
    out.print(f"run {result['run']} is staged: nothing is published. Until {result['staged_until']}, publish it with")
    out.print(f"  recapture publish {_line(file)} {result['run']}")


def print_waiting(out: Console, result: Mapping[str, Any]) -> None:
    """Print the runs that wait for a person, and what keeps each from being published."""
    for run in result["runs"]:
        slices, age = counted(run["slices"], "slice"), duration(run["age_seconds"])
        expiry = f", expires at {run['expires']}" if run["expires"] else ""
        out.print(f"{run['run']}: {slices} from {run['from']} to {run['to']}, waits since {run['at']} ({age}){expiry}")
        audit = _line(f"{run['audit']}: {run['reason']}" if run["reason"] else run["audit"])
        out.print(f"  audit {audit}{', and a person approved it' if run['approved'] else ''}")
        for obstacle in run["obstacles"]:
            out.print(f"  cannot be published: {_line(obstacle)}")
        if run["report"]:
            out.print(f"  report: {_line(run['report'])}")
    if not result["runs"]:
        out.print("no run waits for a decision")


def print_published(out: Console, result: Mapping[str, Any]) -> None:
    """Print in a few lines that a run is published; `result` is its summary."""
    slices = [slice_["slice_start"] for slice_ in result["slices"]]
    out.print(f"run {result['run']}: {named_slices(slices)} published, audit {result['quality']['verdict']}")
    print_warnings(out, result["warnings"])
    out.print(f"report: {_line(result['report'])}")


def print_report(out: Console, result: Mapping[str, Any]) -> None:
    """Print the verdict of a report of published slices, and where it is."""
    verdict = result["verdict"]
    for line in (verdict["sentence"], verdict["events"], *verdict["reasons"], *verdict["advice"]):
        out.print(_line(line))
    out.print(f"report: {_line(result['page'])}, its data: {_line(result['document'])}")


def print_trend(out: Console, result: Mapping[str, Any]) -> None:
    """Print the verdict of a trend of published slices, and where it is."""
    out.print(_line(result["verdict"]["sentence"]))
    out.print(f"trend: {_line(result['page'])}, its data: {_line(result['document'])}")


def print_difference(out: Console, result: Mapping[str, Any]) -> None:
    """Print what differs between what is published and other rows: counts, columns, and the first rows."""
    out.print(f"{_line(result['pipeline'])}, {result['from']} to {result['to']}: {_line(verdict(result))}")
    for output in result["outputs"]:
        slices = ", ".join(f"{count:,} {state}" for state, count in output["slices"].items() if count)
        out.print(f"{_line(output['alias'])}: slices: {slices}")
        for column in output["types"]:
            out.print(f"  column {_line(column['name'])}: {column['before'] or 'none'} => {column['after'] or 'none'}")
        changed = [column for column in output["columns"] if column["changed"]]
        if changed:
            names = ("changed", "largest_difference", "mean_difference", "sum_before", "sum_after")
            table = Table("column", *(name.replace("_", " ") for name in names))
            for column in changed:
                table.add_row(_line(column["name"]), *(number(column[name]) for name in names))
            out.print(table)
        if output["examples"]:
            table = Table("row", *map(_line, output["example_columns"]))
            for row in output["examples"]:
                for side, mark in (("before", "-"), ("after", "+")):
                    if row[side] is not None:
                        table.add_row(mark, *map(_line, row[side]))
            out.print(table)


def print_comparison(out: Console, result: Mapping[str, Any]) -> None:
    """Print why a live job's output differs from what is published: the reasons, and examples."""
    out.print(f"{_line(result['output'])}, {result['from']} to {result['to']}: {_line(comparison_verdict(result))}")
    if result["missing_columns"]:
        out.print(
            f"not compared, because the live job's output lacks them: {_line(', '.join(result['missing_columns']))}"
        )
    if result["unpublished"]:
        out.print(f"not published: {named_slices(result['unpublished'])}")
    for silence in result["silences"]:
        out.print(f"the live job wrote no row after {silence['after']} and before {silence['before']}")
    if result["reasons"]:
        table = Table("reason", "rows", "share", "other values", "only live", "only published")
        for reason in result["reasons"]:
            counts = (f"{reason[name]:,}" for name in ("changed", "only_live", "only_ours"))
            portion = f"{reason['share']:.1%}"
            table.add_row(_line(reason["reason"]), f"{reason['rows']:,}", portion, *counts)
        out.print(table)
        table = Table("reason", "side", *map(_line, result["example_columns"]))
        for row in result["examples"]:
            table.add_row(_line(row["reason"]), row["side"], *map(_line, row["values"]))
        out.print(table)
        for row in result["examples"]:
            if row["events"]:
                out.print(f"events behind {_line(', '.join(row['values']))}:")
                for event in row["events"]:
                    out.print(f"  {_line(event)}")


def print_rows(out: Console, alias: str, rows: pa.Table, count: int) -> None:
    """Print a table of the first rows of `count`."""
    table = Table(*map(_line, rows.column_names), title=f"{_line(alias)}: {counted(count, 'row')}")
    for row in rows.to_pylist():
        table.add_row(*(_cell(value) for value in row.values()))
    if count > rows.num_rows:
        table.add_row(*("…" for _ in rows.column_names))
    out.print(table)


def print_status(out: Console, result: dict[str, Any]) -> None:
    """Print the slices of each output with their states, and the unpublished ranges between them."""
    for output in result["outputs"]:
        title = f"{output['alias']}: slices"
        table = Table("slice", "rows", "state", "late", "published", "run", title=title)
        for slice_ in output["slices"]:
            late = "" if slice_["late_share"] is None else f"{slice_['late_share']:.1%}"
            rows = "problem" if slice_["problem"] else "" if slice_["rows"] is None else f"{slice_['rows']:,}"
            state = escape("; ".join([slice_["state"], *_notes(slice_)]))
            table.add_row(slice_["slice_start"], rows, state, late, slice_["published"], slice_["run"])
        out.print(table)
        for range_ in output["unpublished"]:
            out.print(f"nothing of {output['alias']} is published from {range_['from']} to {range_['to']}")
    for problem in result["problems"]:
        out.print(f"[red]problem:[/] {_line(_problem(problem))}")
    counts = ", ".join(f"{count:,} {state}" for state, count in result["states"].items())
    out.print(f"{counted(sum(result['states'].values()), 'slice')}{f': {counts}' if counts else ''}")
    out.print(_checked(result["checked"]))


def _notes(slice_: Mapping[str, Any]) -> Iterator[str]:
    """Yield what else is to be said about a slice."""
    yield from _differing(slice_)
    if not slice_["checkable"]:
        yield "the manifest of its run cannot be read"
    if slice_["blocked_run"]:
        yield f"the audit stopped run {slice_['blocked_run']}"
    if slice_["error"]:
        yield f"the last update failed: {_line(slice_['error'])}"
    missing = [
        counted(slice_[name], word)
        for name, word in (("missing_events", "event"), ("missing_blobs", "blob"))
        if slice_[name]
    ]
    if missing:
        yield f"the archive lacks {' and '.join(missing)}"


def _differing(slice_: Mapping[str, Any]) -> Iterator[str]:
    """Yield which parts of the definition a slice does not share with the pipeline."""
    from recapture.run.outdated import in_words

    if slice_["differing"]:
        yield in_words([slice_["differing"]])


def _checked(checked: Mapping[str, Any]) -> str:
    if checked["at"] is None:
        return "the archive has not been compared with what the published slices read: run recapture check"
    return (
        f"what the slices from {checked['from']} to {checked['to']} read was last compared with the archive at "
        f"{checked['at']}"
    )


def print_check(out: Console, result: Mapping[str, Any]) -> None:
    """Print which published slices are stale."""
    for start in result["changed"]:
        out.print(f"stale: {start}: blobs were added, modified or deleted since they were read")
    for start in result["unknown"]:
        out.print(f"unknown: {start}: the manifest of its run cannot be read")
    slices = counted(result["checked"], "published slice")
    stale = f"{len(result['changed']):,} stale" if result["changed"] else "none is stale"
    unknown = f", {len(result['unknown']):,} unknown" if result["unknown"] else ""
    out.print(f"{slices} from {result['from']} to {result['to']} checked: {stale}{unknown}")


def print_update(out: Console, result: Mapping[str, Any]) -> None:
    """Print what an update computes and why, what it leaves, and what waits for what."""
    for slice_ in result["due"]:
        out.print(f"due: {slice_['slice_start']}: {_line('; '.join(slice_['reasons']))}")
    for start in result["unfinished"]:
        out.print(f"unfinished: {start}: a table does not hold what is published; the update restores it")
    for start in result["unknown"]:
        out.print(f"unknown: {start}: the manifest of its run cannot be read, so its blobs were not compared")
    for range_ in result["left"]:
        out.print(f"left for the next update: {_reasons(range_)}")
    for range_ in result["waiting"]:
        out.print(f"waiting: {_reasons(range_)}, waits for {_line('; '.join(range_['waits_for']))}")
    runs = f" in {counted(len(result['ranges']), 'run')}" if result["ranges"] else ""
    due = f"{counted(len(result['due']), 'slice')} due{runs}" if result["due"] else "nothing is due"
    others = "".join(f", {len(result[key]):,} {key}" for key in ("unfinished", "unknown") if result[key])
    others += "" if result["compared"] else "; no slice was compared, because the job has no late limit"
    kept = f"from {result['since']} on" if result["until"] is None else f"from {result['since']} to {result['until']}"
    out.print(f"{result['pipeline']} at {result['now']}, slices {kept}: {due}{others}")


def print_requests(out: Console, requests: Sequence[Mapping[str, Any]]) -> None:
    """Print requests, a line each, and which of their slices failed and why."""
    for request in requests:
        because = "" if request["reason"] is None else f": {_line(request['reason'])}"
        made = f"by {_line(request['by'])} at {request['made']}"
        out.print(f"{request['id']} {_progress(request)}: {request['from']} to {request['to']}, {made}{because}")
        for start, error in request["failed"].items():
            out.print(f"  failed: {start}: {_line(error)}")
    if not requests:
        out.print("there are no requests")


def _progress(request: Mapping[str, Any]) -> str:
    """Return the state of a request, with what it waits for or how far it got."""
    state, slices = request["state"], counted(request["slices"], "slice")
    if state == "waiting":
        return f"{state} for the first update from {request['at']} on"
    if state == "cancelled":
        return f"{state} by {_line(request['cancelled_by'])} at {request['ended']}"
    return f"{state}, {len(request['published']):,} of {slices} published"


def _reasons(range_: Mapping[str, Any]) -> str:
    return f"{range_['from']} to {range_['to']}: {_line('; '.join(range_['reasons']))}"


def _problem(problem: Mapping[str, Any]) -> str:
    """Return a line about a problem of a table, with what to do."""
    if not problem["slices"]:
        return str(problem["problem"])
    return f"{problem['table']} {problem['problem']}: {named_slices(problem['slices'])}; {problem['remedy']}"


def print_proposal(stderr: Console, text: str, result: Mapping[str, Any]) -> None:
    """Print a proposed suite, or the file that holds it."""
    if result["written"] is None:
        print(printable(text), end="")
    expectations = counted(len(result["suite"]["expectations"]), "expectation")
    origin = f"from {counted(result['rows'], 'row')} of {counted(result['slices'], 'slice')} of {result['output']}"
    written = "proposed" if result["written"] is None else f"written to {result['written']}"
    left_out = f" ({counted(result['left_out'], 'slice')} left out: other columns)" if result["left_out"] else ""
    stderr.print(_line(f"{expectations} {written}, {origin}{left_out}: review every bound"))


def print_rollback(out: Console, result: dict[str, Any]) -> None:
    """Print what a rollback restored."""
    has_changed = any(slice_["changed"] for slice_ in result["rolled_back"])
    for output in result["outputs"]:
        if output["slices"]:
            slices = ", ".join(output["slices"])
            out.print(f"{output['alias']}: rolled back in version {output['version']}: {slices}")
        elif has_changed:
            out.print(f"{output['alias']}: rolled back, rows unchanged in version {output['version']}")
        else:
            out.print(f"{output['alias']}: nothing to do, version {output['version']} was rolled back already")
    for slice_ in result["rolled_back"]:
        out.print(f"{slice_['slice_start']}: run {slice_['taken_back']} taken back, holds {slice_['run'] or 'nothing'}")
    print_warnings(out, result["warnings"])
    if not has_changed and not any(output["slices"] for output in result["outputs"]):
        out.print("to go back further, name the run that the slices hold now with --run")


def print_advice(out: Console, advice: Advice) -> None:
    """Print what became of the events of a range with other tolerances, and which settings suffice."""
    bounds = f"{ticks.text_of(advice.start)} to {ticks.text_of(advice.end)}"
    out.print(f"{advice.pipeline.name}: what arrived from {bounds}")
    for input_advice in advice.inputs:
        _print_input_advice(out, input_advice, advice.pipeline.job.policy == "Adjust")


def _print_input_advice(out: Console, advice: InputAdvice, adjust: bool) -> None:
    counts, own = advice.counts, advice.counts.keys.own
    events = counted(counts.events, "event")
    blobs = counted(counts.blobs, "blob")
    latest = duration(max(counts.largest_lateness, 0) / ticks.TICKS_PER_SECOND)
    out.print(f"input {_line(advice.alias)}: {events}, the latest {latest} late; read {blobs}")
    table = Table("OVER", "keep", *_SETTING, title="smallest settings that keep events unchanged")
    for key in counts.keys.all:
        for share, setting in advice.smallest(key).items():
            name = _line(f"{key} (query)" if key == own else str(key))
            cells = ["no setting does"] if setting is None else _setting_cells(advice, key, setting)
            table.add_row(name, "all" if share == 1 else f"{100 * share:g}%", *cells)
    out.print(table)
    how = "adjusted" if adjust else "dropped"
    settings = Table(*_SETTING, "on time", f"late, {how}", f"out of order, {how}", title=f"settings {own.clause}")
    for setting in advice.settings(own):
        verdicts = advice.outcome(own, setting)
        numbers = (verdicts["on_time"], verdicts[f"late_{how}"], verdicts[f"out_of_order_{how}"])
        style = "bold" if setting == advice.own else None
        settings.add_row(*_setting_cells(advice, own, setting), *(f"{number:,}" for number in numbers), style=style)
    out.print(settings)
    partitions = Table(
        *("partition", "events", "on time", f"late, {how}", f"out of order, {how}"),
        *("early", "no time", "malformed", "duplicates"),
        title="partitions with the job's setting",
    )
    for name, partition in counts.partitions.items():
        verdicts = advice.outcome(own, advice.own, name)
        shown = ("on_time", f"late_{how}", f"out_of_order_{how}")
        judged = (sum(verdicts.values()) + partition.duplicates, *(verdicts[verdict] for verdict in shown))
        others = (partition.by_key[own].early, verdicts["invalid_timestamp"], verdicts["malformed"])
        partitions.add_row(_line(name), *(f"{number:,}" for number in (*judged, *others, partition.duplicates)))
    out.print(partitions)


def _setting_cells(advice: InputAdvice, key: Key, setting: Setting) -> list[str]:
    from recapture.tools.advise.input_advice import percent

    late = "no limit" if setting.late is None else duration(setting.late)
    complete, share = advice.complete_text(setting.late), percent(advice.share(key, setting))
    return [late, duration(setting.out_of_order), complete, share]


def print_found(out: Console, found: Found, *, shows_events: bool) -> None:
    """Print events that were found, at most SHOWN_EVENTS, and how many there are."""
    from recapture.tools.events.event import json_types, lines
    from recapture.tools.events.index import read_lines

    events = found.events
    for line in lines(json_types(events.slice(0, SHOWN_EVENTS))) if shows_events else ():
        out.print(_line(line))
    if shows_events and len(events) > SHOWN_EVENTS:
        more = counted(len(events) - SHOWN_EVENTS, "more event")
        out.print(f"{more}: --out FILE.jsonl, .parquet or .avro writes all of them")
    verdicts = Counter(events["verdict"].to_pylist())
    counts = ", ".join(f"{verdict} {number:,}" for verdict, number in sorted(verdicts.items()))
    bounds = f"{ticks.to_text(found.range.start)} to {ticks.to_text(found.range.end)}"
    out.print(f"{counted(len(events), 'event')} arrived from {bounds}" + (f": {counts}" if counts else ""))
    for line in read_lines(found.summary(with_events=False)["inputs"]):
        out.print(_line(line))


def print_explanation(out: Console, summary: Mapping[str, Any]) -> None:
    """Print what became of events, and the windows and rows that they are in."""
    from recapture.tools.events.event import lines, place
    from recapture.tools.events.index import read_lines

    if not summary["events"]:
        out.print("no such event arrived in this range")
    for event in summary["events"]:
        for line in lines([event]):
            out.print(_line(line))
        if "pushed_by" in event:
            watermark = f"the event with the largest time so far, {event['largest_time']}, pushed the watermark"
            out.print(_line(f"  {watermark}: {place(event['pushed_by'])}"))
        for output in event["outputs"]:
            if not output["windows"]:
                out.print(_line(f"  output {output['output']}: in no row: {output['why']}"))
            for window in output["windows"]:
                out.print(_line(f"  output {output['output']}: {_window(window)}: {_row(window)}"))
    for line in read_lines(summary["inputs"]):
        out.print(_line(line))


def print_lineage(out: Console, summary: Mapping[str, Any]) -> None:
    """Print a row, and the events and the reference data that made it."""
    from recapture.tools.events.event import lines, pushed_lines
    from recapture.tools.events.roles import COUNTED, HEADINGS

    out.print(_line(f"{_place(summary)}: {_row(summary)}"))
    by_role = {role: [event for event in summary["events"] if event["role"] == role] for role in HEADINGS}
    for role, events in by_role.items():
        if events and HEADINGS[role]:
            out.print(f"{HEADINGS[role]}:")
        for event in events[:SHOWN_EVENTS]:
            for line in [*lines([event]), *pushed_lines(event)]:
                out.print(_line(line))
        if len(events) > SHOWN_EVENTS:
            out.print(f"{counted(len(events) - SHOWN_EVENTS, 'more event')}: --json has all of them")
    for row in summary["references"]:
        times = "".join(f" {word} {row[name]}" for word, name in _IN_FORCE.items() if name in row)
        out.print(_line(f"reference data {row['reference']}: row {row['row']:,} of {row['blob']}, in force{times}"))
        out.print(_line(f"  {_named(row['columns'])}"))
    for absence in summary["absences"]:
        out.print(_line(absence["text"]))
    if not summary["events"]:
        return
    others = "".join(f", {COUNTED[role].format(len(by_role[role]))}" for role in COUNTED if by_role[role])
    out.print(f"made of {counted(len(by_role['deciding']), 'event')}{others}")


_IN_FORCE = {"from": "valid_from", "until": "valid_until"}


def _place(summary: Mapping[str, Any]) -> str:
    """Return the window or the time of a row, and by which run it is published."""
    slice_, window = summary["slice"], summary["window"]
    if window is None:
        time = summary["system_timestamp"]
        what = f"slice {slice_['start']}" if time is None else f"row at {time}"
        return f"{what}, {_published_by(slice_)}"
    if "start" not in window:
        name = f" {window['id']}" if "id" in window else ""
        return f"window{name} that ends at {window['end']}, {_published_by(slice_)}"
    return _window(window | slice_ | {"start": window["start"]})


def _window(window: Mapping[str, Any]) -> str:
    if "end" not in window:
        return f"row of slice {window['slice_start']}, {_published_by(window)}"
    name = f" {window['id']}" if "id" in window else ""
    return f"window{name} ({window['start']}, {window['end']}], {_published_by(window)}"


def _published_by(published: Mapping[str, Any]) -> str:
    run = published["published_by"]
    if run is None:
        asked = published.get("run")
        return "not published" if asked is None else f"in run {asked}, which is not published for it"
    return f"published by run {run}"


def _row(window: Mapping[str, Any]) -> str:
    return f"no row: {window['why']}" if window["row"] is None else _named(window["row"])


def _named(columns: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {'NULL' if value is None else value}" for name, value in columns.items())


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else _line(value)
