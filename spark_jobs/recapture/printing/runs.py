"""What the commands print that plan, compute and publish runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from recapture.execute.engine import Engine
from recapture.pages.page import duration
from recapture.printing.consoles import print_warnings, shown
from recapture.printing.events import cell
from recapture.printing.slices import differing
from recapture.process.wording import counted, named_slices, of_input

if TYPE_CHECKING:
    import pyarrow as pa

    from recapture.archive.progress import PartitionProgress
    from recapture.run_files.computed import Computed
    from recapture.run_files.planned import PlannedRun

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
            "; ".join([row["state"], *differing(row)]),
        )
    out.print(table)
    for partition in itertools.chain.from_iterable(progress.values()):
        out.print(shown(partition))
    for read in result["inputs"]:
        ordered = f"order its events, but do not aggregate them: {read['not_aggregated_because']}"
        how = "aggregate its events" if read["aggregated_in_tasks"] else ordered
        out.print(shown(f"input {read['alias']}: tasks {how}"))
        if read["index"]:
            out.print(shown(f"input {read['alias']}: index for find and explain: {', '.join(read['index'])}"))
    if result["engine"] == Engine.PROCESSES:
        out.print("recapture backfill computes the rows without Spark, unless --master names a cluster")
    for reference in result["references"]:
        versions = counted(len(reference["versions"]), "version")
        out.print(f"reference data {shown(reference['alias'])}: {versions}, {reference['bytes']:,} bytes")
    blobs = counted(result["blobs"], "blob")
    out.print(f"in all {blobs}, {result['bytes']:,} bytes, each counted once; run {result['run']}")
    if result["estimate"]:
        out.print(_estimate(result["estimate"]))
    out.print("a backfill of this range:")
    for stage in result["stages"]:
        out.print(shown(f"  {stage['name'].replace('_', ' ')}: {stage['description']}"))
    for line in result.get("relations", ()):
        out.print(shown(line))


def _estimate(estimate: Mapping[str, Any]) -> str:
    from recapture.run.cost import sentence

    other = "" if estimate["same_definition"] else " with another definition"
    basis = f"judging by {counted(estimate['runs'], 'run')}{other}"
    return shown(f"a backfill will take about {sentence(estimate)}, {basis}")


def _waiting(counts: Mapping[str, Any], name_input: bool) -> str:
    return f"partition {', '.join(counts['incomplete'])}{of_input(counts['alias'] if name_input else None)}"


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
        out.print(f"{rows} in the quarantine, {shown(quarantine['table'])}:")
        for reason in quarantine["reasons"][:REASONS_SHOWN]:
            out.print(shown(f"  {reason['rows']:,} {reason['verdict']}: {reason['reason']}"))
    print_warnings(out, result["warnings"])
    for output in (output for output in result["outputs"] if output["unchanged_slices"] is not None):
        did = "published as" if output["changed"] else "unchanged, already published as"
        unchanged, slices = output["unchanged_slices"], len(result["slices"])
        unchanged_part = f", {unchanged:,} of {counted(slices, 'slice')} unchanged" if 0 < unchanged < slices else ""
        out.print(f"run {result['run']} {did} version {output['version']} of {shown(output['table'])}{unchanged_part}")
    out.print(f"report: {shown(result['report'])}")


def print_cost(out: Console, cost: Mapping[str, Any]) -> None:
    """Print what a run took."""
    from recapture.run.cost import sentence

    out.print(shown(f"the run took {sentence(cost)}"))


def print_staged(out: Console, result: Mapping[str, Any], file: str) -> None:
    """Print how a person publishes a staged run; `result` is its summary, and `file` the name of the pipeline file."""
    out.print(f"run {result['run']} is staged: nothing is published. Until {result['staged_until']}, publish it with")
    out.print(f"  recapture publish {shown(file)} {result['run']}")


def print_waiting(out: Console, result: Mapping[str, Any], *, asks_for_approval: bool) -> None:
    """Print the runs that wait for a person, and what keeps each from being published.

    `asks_for_approval` says whether the pipeline asks a person about runs that their audits stopped.
    """
    nobody = "needs approval, but the pipeline asks nobody: add approval to its file, or correct the cause"
    needs = "needs approval in Airflow" if asks_for_approval else nobody
    for run in result["runs"]:
        slices, age = counted(run["slices"], "slice"), duration(run["age_seconds"])
        expiry = f", expires at {run['expires']}" if run["expires"] else ""
        out.print(f"{run['run']}: {slices} from {run['from']} to {run['to']}, waits since {run['at']} ({age}){expiry}")
        audit = shown(f"{run['audit']}: {run['reason']}" if run["reason"] else run["audit"])
        out.print(f"  audit {audit}{', and a person approved it' if run['approved'] else ''}")
        if run["needs_approval"]:
            out.print(f"  {needs} (docs/coverage.md, Approval)")
        for obstacle in run["obstacles"]:
            out.print(f"  cannot be published: {shown(obstacle)}")
        if run["report"]:
            out.print(f"  report: {shown(run['report'])}")
    if not result["runs"]:
        out.print("no run waits for a decision")


def print_published(out: Console, result: Mapping[str, Any]) -> None:
    """Print in a few lines that a run is published; `result` is its summary."""
    slices = [slice_["slice_start"] for slice_ in result["slices"]]
    out.print(f"run {result['run']}: {named_slices(slices)} published, audit {result['quality']['verdict']}")
    print_warnings(out, result["warnings"])
    out.print(f"report: {shown(result['report'])}")


def print_rows(out: Console, alias: str, rows: pa.Table, count: int) -> None:
    """Print a table of the first rows of `count`."""
    table = Table(*map(shown, rows.column_names), title=f"{shown(alias)}: {counted(count, 'row')}")
    for row in rows.to_pylist():
        table.add_row(*(cell(value) for value in row.values()))
    if count > rows.num_rows:
        table.add_row(*("…" for _ in rows.column_names))
    out.print(table)
