"""The stages of a run: plan, (the Spark job), audit, publish, report. The command and the DAG's tasks call these.

Between stages everything lies beside the table (see `runs`), so each may run in a process of its own, and again.
"""

import io
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs import __version__
from spark_jobs import publish as delta
from spark_jobs.capture import manifest
from spark_jobs.capture.manifest import Definition, Manifest
from spark_jobs.errors import AuditError, DefinitionError, RunError
from spark_jobs.pipeline import Pipeline
from spark_jobs.quality import suites
from spark_jobs.runs import Run
from spark_jobs.storage import open_container
from spark_jobs.time_model import ticks
from spark_jobs.time_model.slices import Slice, slices_between

UNSUMMED = ("slice_start", "partition", "complete", "furthest_ahead")


def check_range(pipeline: Pipeline, start: datetime, end: datetime) -> None:
    """Raise DefinitionError, with the reason, for a range that is not whole slices that have ended."""
    for name, instant in (("from", start), ("to", end)):
        if instant.utcoffset() is None:
            raise DefinitionError(f"{name} {instant.isoformat()} has no zone: write it as 2026-03-01T10:00:00Z")
        if ticks.from_datetime(instant) % _slice_length(pipeline):
            raise DefinitionError(
                f"{name} {_text(instant)} is not on a slice border: {pipeline.name} has slices of "
                f"{pipeline.slice_hours} h, counted from midnight UTC"
            )
    if start >= end:
        raise DefinitionError(f"the range is empty: from {_text(start)} is not before to {_text(end)}")
    if end > datetime.now(UTC):
        raise DefinitionError(f"to {_text(end)} lies in the future: choose an end at which a slice has ended")


def definition(pipeline: Pipeline) -> Definition:
    """What of the pipeline decides which blobs a slice needs and what becomes of them."""
    return Definition(
        pipeline.name,
        pipeline.input.names,
        __version__,
        pipeline.query.canonical,
        pipeline.policies,
        pipeline.query.window.look_back,
        pipeline.input.capture_interval_seconds,
    )


def look(pipeline: Pipeline, start: datetime, end: datetime) -> Manifest:
    """The manifest of a range; nothing is written. Raises DefinitionError for what cannot be run."""
    check_range(pipeline, start, end)
    load_suites(pipeline)
    delta.require_columns(pipeline.output.table, pipeline.query.output)
    container = open_container(pipeline.input.container)
    return manifest.plan(definition(pipeline), container, _slices(pipeline, start, end), datetime.now(UTC))


def plan(pipeline: Pipeline, start: datetime, end: datetime) -> str:
    """Keep the manifest of a range beside the table; the run's id.

    The id is made of what the run reads and computes, so planning the same again is the same run.
    """
    planned = look(pipeline, start, end)
    Run(open_container(pipeline.output.table), planned.run).keep_manifest(planned)
    return planned.run


def completeness(pipeline: Pipeline, start: datetime, end: datetime, now: datetime) -> list[str]:
    """What the range still waits for, a line each; empty when every slice is complete (time model, section 3)."""
    wanted = _slices(pipeline, start, end)
    listed = manifest.list_capture(pipeline.input.names, open_container(pipeline.input.container))
    if not listed:
        return [f"no Capture blob under {pipeline.input.names.prefix} yet"]
    newest = {pinned.partition: pinned.blob.last_modified for pinned in listed}
    described = definition(pipeline)
    last = list(wanted)[-1]
    return [
        f"partition {partition}: Capture has got to {_text(arrival)}, slice {ticks.to_text(last.start)} needs more"
        for partition, arrival in newest.items()
        if not manifest.is_complete(described, last, ticks.from_datetime(arrival), now)
    ]


def load_suites(pipeline: Pipeline) -> list[suites.Suite]:
    """The pipeline's own suite, if it has one; the built-in suite always runs besides."""
    if pipeline.suite_path is None:
        return []
    return [suites.load(pipeline.suite_path, [*(column.name for column in pipeline.query.output), delta.SLICE])]


def audit(pipeline: Pipeline, run_id: str) -> dict[str, Any]:
    """Judge what is staged and keep the result with the run. Raises AuditError where something critical failed."""
    import pandas as pd

    from spark_jobs.quality import checkpoint, report

    papers = _papers(pipeline, run_id)
    planned = papers.manifest()
    found = checkpoint.audit(
        pd.DataFrame(papers.read("metrics.json")).drop(columns="furthest_ahead"),
        _staged_rows(pipeline, papers).to_pandas(),
        load_suites(pipeline),
        run_start=ticks.to_datetime(planned.slices[0].slice.start),
        run_end=ticks.to_datetime(planned.slices[-1].slice.end),
        slice_count=len(planned.slices),
    )
    reason = report.reason(found)
    outcome = {"verdict": found.verdict, "reason": reason, "report": report.text(found), "json": found.json}
    papers.write("audit.json", outcome)
    if found.verdict == "failed":
        raise AuditError(f"run {run_id} was stopped by its audit, nothing was published: {reason}")
    return {"verdict": found.verdict, "report": outcome["report"]}


def publish(pipeline: Pipeline, run_id: str) -> dict[str, Any]:
    """Commit the run's slices, once it passed its audit. Raises AuditError where it did not."""
    papers = _papers(pipeline, run_id)
    planned = papers.manifest()
    verdict = papers.read("audit.json")["verdict"]
    if verdict == "failed":
        raise AuditError(f"run {run_id} was stopped by its audit: nothing is published")
    digests = {ticks.to_text(each.slice.start): each.digest for each in planned.slices}
    holdings = [
        delta.Holding(staged.slice_start, staged.path, staged.size, staged.rows, digests[staged.slice_start])
        for staged in papers.staged()
    ]
    note = delta.Note(run_id, verdict, planned.digest, planned.definition_digest, _by_slice(papers))
    version, changed = delta.publish(pipeline.output.table, pipeline.query.output, holdings, note)
    published = {
        "version": version,
        "changed": changed,
        "slices": [holding.slice_start for holding in holdings],
        "quality": verdict,
    }
    papers.write("outcome.json", published)
    return published


def report(pipeline: Pipeline, run_id: str) -> dict[str, Any]:
    """All that is known of a run: what it read, counted, and published, and what the audit said."""
    papers = _papers(pipeline, run_id)
    planned = papers.manifest()
    audited = papers.read("audit.json")
    published = papers.read("outcome.json") if audited["verdict"] != "failed" else {}
    rows = {staged.slice_start: staged.rows for staged in papers.staged()}
    counts = _by_slice(papers)
    return {
        "run": run_id,
        "pipeline": pipeline.name,
        "slices": [
            {"slice_start": start, "rows": rows[start], **counts[start]}
            for start in (ticks.to_text(each.slice.start) for each in planned.slices)
        ],
        "metrics": _totals(counts, rows),
        "quality": {"verdict": audited["verdict"], "reason": audited["reason"], "report": audited["report"]},
        "version": published.get("version"),
        "changed": published.get("changed", False),
        "table": pipeline.output.table,
        "warnings": [*pipeline.warnings, *_time_warnings(counts)],
    }


def status(pipeline: Pipeline) -> dict[str, Any]:
    """The published slices, their quality and lateness, and the gaps between them."""
    held = delta.current(pipeline.output.table)
    slices = []
    for start, (holding, commit) in held.items():
        counts = commit.metrics.get(start, {})
        events = counts.get("InputEvents")
        slices.append(
            {
                "slice_start": start,
                "rows": holding.rows,
                "quality": commit.quality,
                "late_share": counts["LateInputEvents"] / events if events else None,
                "version": commit.version,
                "published": _text(commit.time.replace(microsecond=0)),
                "run": commit.run,
            }
        )
    return {"pipeline": pipeline.name, "table": pipeline.output.table, "slices": slices, "gaps": _gaps(pipeline, held)}


def rollback(pipeline: Pipeline, start: datetime, end: datetime) -> dict[str, Any]:
    """Give the range's slices back what they held before their last publication."""
    check_range(pipeline, start, end)
    starts = [ticks.to_text(each.start) for each in _slices(pipeline, start, end)]
    run = f"rollback-{_text(start)}-{_text(end)}"
    version, slices = delta.rollback(pipeline.output.table, pipeline.query.output, starts, run)
    return {"pipeline": pipeline.name, "version": version, "slices": slices}


def staged_rows(pipeline: Pipeline, run_id: str) -> pa.Table:
    """The rows that a run computed: the query's columns, then slice_start."""
    return _staged_rows(pipeline, _papers(pipeline, run_id))


def _staged_rows(pipeline: Pipeline, papers: Run) -> pa.Table:
    tables = []
    for staged in papers.staged():
        content = papers.table.read_current(staged.path)
        if content is None:
            raise RunError(f"{staged.path}, which run {papers.id} staged, is gone: start the run again from its plan")
        rows = pq.read_table(io.BytesIO(content))
        start = pa.scalar(datetime.fromisoformat(staged.slice_start), pa.timestamp("us", tz="UTC"))
        tables.append(rows.append_column(delta.SLICE, pa.repeat(start, rows.num_rows)))
    return pa.concat_tables(tables)


def _papers(pipeline: Pipeline, run_id: str) -> Run:
    return Run(open_container(pipeline.output.table), run_id)


def _by_slice(papers: Run) -> dict[str, dict[str, Any]]:
    """The metrics of each slice, over all partitions, by slice_start."""
    staged = {each.slice_start: each.rows for each in papers.staged()}
    counts: dict[str, dict[str, Any]] = {}
    for row in papers.read("metrics.json"):
        start = row["slice_start"]
        slice_counts = counts.setdefault(
            start, {"complete": True, "OutputEvents": staged[start], "furthest_ahead": None}
        )
        slice_counts["complete"] &= row["complete"]
        candidates = [ahead for ahead in (slice_counts["furthest_ahead"], row["furthest_ahead"]) if ahead]
        slice_counts["furthest_ahead"] = max(candidates, key=lambda ahead: ahead["seconds"], default=None)
        for name, value in row.items():
            if name not in UNSUMMED:
                slice_counts[name] = slice_counts.get(name, 0) + value
    return counts


def _totals(counts: dict[str, dict[str, Any]], rows: dict[str, int]) -> dict[str, int]:
    names = next(iter(counts.values()))
    totals = {name: sum(each[name] for each in counts.values()) for name in names if name not in UNSUMMED}
    return totals | {"OutputEvents": sum(rows.values())}


def _time_warnings(counts: dict[str, dict[str, Any]]) -> Iterator[str]:
    events = sum(each["InputEvents"] for each in counts.values())
    late = sum(each["LateInputEvents"] for each in counts.values())
    if events and late > events / 2:
        yield (
            f"{late / events:.1%} of the events were late: raise eventsLateArrivalMaxDelayInSeconds to at least the "
            "capture interval plus what the devices need"
        )
    disordered = sum(each["DroppedOrAdjustedEvents"] for each in counts.values())
    if events and disordered > events / 10:
        pushers = [each["furthest_ahead"] for each in counts.values() if each["furthest_ahead"]]
        ahead = max(pushers, key=lambda pusher: pusher["seconds"])
        yield (
            f"{disordered / events:.1%} of the events were out of order: the watermark was pushed by clocks that run "
            f"ahead, furthest by event {ahead['sequence_number']} of {ahead['blob']} ({ahead['seconds']:+.1f} s from "
            "its arrival); TIMESTAMP BY … OVER a device's key keeps such a clock to itself"
        )


def _gaps(pipeline: Pipeline, held: dict[str, Any]) -> list[dict[str, str]]:
    """The ranges between the first and the last published slice that hold nothing."""
    starts = [ticks.from_datetime(datetime.fromisoformat(start)) for start in held]
    length = _slice_length(pipeline)
    return [
        {"from": ticks.to_text(before + length), "to": ticks.to_text(after)}
        for before, after in itertools.pairwise(starts)
        if after - before > length
    ]


def _slices(pipeline: Pipeline, start: datetime, end: datetime) -> list[Slice]:
    return list(slices_between(ticks.from_datetime(start), ticks.from_datetime(end), _slice_length(pipeline)))


def _slice_length(pipeline: Pipeline) -> int:
    return timedelta(hours=pipeline.slice_hours) // timedelta(microseconds=1) * ticks.TICKS_PER_MICROSECOND


def _text(instant: datetime) -> str:
    return ticks.to_text(ticks.from_datetime(instant))
