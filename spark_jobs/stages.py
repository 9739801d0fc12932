"""The stages of a run: plan, (the Spark job), audit, publish, report. The command and the DAG's tasks call these.

Between stages everything lies beside the table (see `runs`), so each may run in a process of its own, and again.
"""

import io
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs import __version__
from spark_jobs import publish as delta
from spark_jobs.capture import changes, manifest
from spark_jobs.capture.manifest import Definition, Manifest
from spark_jobs.capture.progress import Progress, far_blobs, progress
from spark_jobs.capture.progress import warnings as capture_warnings
from spark_jobs.errors import AuditError, DefinitionError, RunError
from spark_jobs.pipeline import Output, Pipeline
from spark_jobs.quality import metrics, suites
from spark_jobs.runs import Run, StagedSlice, stage
from spark_jobs.storage import open_container
from spark_jobs.time_model import ticks
from spark_jobs.time_model.slices import Arrivals, Slice, slices_between

GAPS_SHOWN = 5
"""In a warning; a run's metrics tell more."""
WRITERS = 16
"""Small files that are written at once."""


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
        pipeline.query.look_back,
        pipeline.input.interval_seconds,
        pipeline.input.arrival_time,
        pipeline.input.search_hours,
        pipeline.input.partitions,
        repr(pipeline.input.reader(pipeline.query)),
    )


def look(pipeline: Pipeline, start: datetime, end: datetime) -> Manifest:
    """The manifest of a range; nothing is written. Raises DefinitionError for what cannot be run."""
    check_range(pipeline, start, end)
    load_suites(pipeline)
    for table in _tables(pipeline):
        delta.require_columns(table)
    container = open_container(pipeline.input.container)
    return manifest.plan(definition(pipeline), container, _slices(pipeline, start, end), datetime.now(UTC))


def plan(pipeline: Pipeline, start: datetime, end: datetime) -> str:
    """Keep the manifest of a range beside the first table; the run's id.

    The id is made of what the run reads and computes, so planning the same again is the same run.
    """
    planned = look(pipeline, start, end)
    _papers(pipeline, planned.run).keep_manifest(planned)
    return planned.run


def kept(pipeline: Pipeline, name: str) -> Manifest:
    """A kept manifest: that of a file, or of a run of this pipeline.

    Raises RunError where there is none or it was changed, DefinitionError where it is of another definition.
    """
    file, papers = Path(name), _papers(pipeline, name)
    if not file.is_file() and (not name or "/" in name):
        raise RunError(f"{name or 'an empty text'} is no file; give that of a manifest, or the name of a run")
    try:
        content = file.read_bytes() if file.is_file() else papers.table.read_current(papers.name("manifest.json"))
    except OSError as error:
        raise RunError(f"{file}: the manifest cannot be read ({error.strerror})") from error
    if content is None:
        raise RunError(f"{name} is no file, and no run of which a manifest is kept under {papers.table.url}")
    found = manifest.from_json(content)
    if found.definition_digest != definition(pipeline).digest:
        raise DefinitionError(
            f"run {found.run} was planned by another engine, query, policies or input than {pipeline.definition} has "
            f"now (engine {found.engine}, now {__version__}): only what it was planned by makes it that run; plan again"
        )
    if found.container != open_container(pipeline.input.container).url:
        raise DefinitionError(f"run {found.run} reads {found.container}, which is not this pipeline's input.container")
    if {each.slice.end - each.slice.start for each in found.slices} != {_slice_length(pipeline)}:
        raise DefinitionError(f"the slices of run {found.run} are not of {pipeline.slice_hours} h: plan again")
    return found


def changed_since(pipeline: Pipeline, planned: Manifest) -> list[changes.Change]:
    """The blobs of a kept manifest that were touched or deleted since."""
    return changes.since(planned, pipeline.input.names, open_container(pipeline.input.container))


def take_up(pipeline: Pipeline, planned: Manifest) -> str:
    """Make a kept manifest the plan of a run, which is the run that it was; the run's id."""
    load_suites(pipeline)
    for table in _tables(pipeline):
        delta.require_columns(table)
    _papers(pipeline, planned.run).keep_manifest(planned)
    return planned.run


@dataclass(frozen=True)
class Completeness:
    """How far the archive reaches, and what a range still waits for."""

    partitions: tuple[Progress, ...]
    waiting: tuple[str, ...]
    """A line each; none when every slice is complete (time model, section 3)."""


def completeness(
    pipeline: Pipeline, start: datetime, end: datetime, now: datetime, environment: Mapping[str, str] = os.environ
) -> Completeness:
    """Whether all of the range has been written. Only the newest blobs are looked for: from its last slice on.

    The container is opened with the credentials of `environment`.
    """
    last = _slices(pipeline, start, end)[-1]
    described = replace(definition(pipeline), search_hours=0)
    needed = Arrivals(last.start, described.last_needed(last))
    container = open_container(pipeline.input.container, environment)
    seen, partitions = manifest.survey(described, container, [needed], now)
    if not partitions:
        return Completeness((), (f"no blob of this input under {described.names.prefix} yet",))
    found = tuple(
        progress(described, name, seen.newest.get(name), pipeline.input.empty_blobs, now) for name in partitions
    )
    waiting = tuple(
        f"{each}; slice {ticks.to_text(last.start)} needs more"
        for each in found
        if not manifest.is_complete(described, last, seen.newest.get(each.partition), now)
    )
    return Completeness(found, waiting)


def capture_progress(pipeline: Pipeline, planned: Manifest, now: datetime) -> list[Progress]:
    """How far the archive reaches in each partition of a plan."""
    described, newest = definition(pipeline), {each.partition: each for each in planned.newest}
    return [progress(described, name, newest.get(name), pipeline.input.empty_blobs, now) for name in planned.partitions]


def load_suites(pipeline: Pipeline) -> dict[str, suites.Suite]:
    """By alias, the suites that outputs have of their own; the built-in suite always runs besides."""
    loaded = {}
    for output in pipeline.outputs:
        path = pipeline.suite_path(output)
        if path is not None:
            columns = [column.name for column in pipeline.compiled(output).columns]
            loaded[output.alias] = suites.load(path, [*columns, delta.SLICE])
    return loaded


def audit(pipeline: Pipeline, run_id: str) -> dict[str, Any]:
    """Judge what is staged and keep the result with the run. Raises AuditError where something critical failed."""
    import pandas as pd

    from spark_jobs.quality import checkpoint, report

    papers = _papers(pipeline, run_id)
    planned = papers.manifest()
    found = checkpoint.audit(
        pd.DataFrame(papers.read("metrics.json")).drop(columns=list(metrics.BESIDE)),
        {output.alias: staged_rows(pipeline, output, run_id).to_pandas() for output in pipeline.outputs},
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
    """Commit the run's slices to every table, once it passed its audit. Raises AuditError where it did not.

    What was interrupted between two commits is finished by the next call: it leaves alone what a table holds already.
    """
    papers = _papers(pipeline, run_id)
    verdict = papers.read("audit.json")["verdict"]
    if verdict == "failed":
        raise AuditError(f"run {run_id} was stopped by its audit: nothing is published")
    outputs = [_publish(pipeline, output, papers, verdict) for output in pipeline.outputs]
    published = {
        "slices": [ticks.to_text(each.slice.start) for each in papers.manifest().slices],
        "quality": verdict,
        "outputs": outputs,
        "quarantine": _publish_quarantine(pipeline, papers, verdict),
    }
    papers.write("outcome.json", published)
    return published


def _publish(pipeline: Pipeline, output: Output, papers: Run, verdict: str) -> dict[str, Any]:
    """Commit an output's slices to its table, then their metrics to the one beside it."""
    planned = papers.manifest()
    digests = {ticks.to_text(each.slice.start): each.digest for each in planned.slices}
    staged = _staged(papers, output)
    counted = _counted(papers.read("metrics.json"), staged)
    table, beside = _tables_of(pipeline, output)
    holdings = [
        delta.Holding(each.slice_start, each.path, each.size, each.rows, digests[each.slice_start]) for each in staged
    ]
    note = delta.Note(papers.id, verdict, planned.digest, planned.definition_digest, counted)
    change = delta.publish(table, holdings, note)
    of_metrics = delta.publish(beside, _staged_metrics(beside.url, counted, digests), replace(note, metrics={}))
    return {
        "alias": output.alias,
        "table": table.url,
        "version": change.version,
        "changed": bool(change.slices),
        "metrics_table": beside.url,
        "metrics_version": of_metrics.version,
        "warnings": list(_marked_otherwise(table.url, set(digests) - set(change.slices), verdict)),
    }


def _staged_metrics(
    url: str, counted: Mapping[str, Mapping[str, Any]], digests: Mapping[str, str]
) -> list[delta.Holding]:
    """Write each slice's rows of the metrics table."""
    folder = open_container(url)

    def write(start: str) -> delta.Holding:
        rows = metrics.table_rows(counted[start])
        path, size = stage(folder, _ticks(start), digests[start], rows)
        return delta.Holding(start, path, size, rows.num_rows, digests[start])

    with ThreadPoolExecutor(WRITERS) as writers:
        return list(writers.map(write, counted))


def _publish_quarantine(pipeline: Pipeline, papers: Run, verdict: str) -> dict[str, Any]:
    """Commit what was set aside to its table; a slice in which nothing was holds nothing there."""
    planned = papers.manifest()
    table = _quarantine(pipeline)
    folder = open_container(table.url)
    aside: dict[str, list[str]] = {}
    for row in papers.read("metrics.json"):
        if any(row[count] for count in metrics.SET_ASIDE):
            aside.setdefault(row["slice_start"], []).append(row["partition"])

    def write(each: manifest.PlannedSlice) -> delta.Holding:
        start = ticks.to_text(each.slice.start)
        if start not in aside:
            return delta.Holding(start, None, 0, 0, each.digest)
        rows = pa.concat_tables([papers.quarantined(partition, each.slice) for partition in aside[start]])
        path, size = stage(folder, each.slice.start, each.digest, rows)
        return delta.Holding(start, path, size, rows.num_rows, each.digest)

    with ThreadPoolExecutor(WRITERS) as writers:
        holdings = list(writers.map(write, planned.slices))
    note = delta.Note(papers.id, verdict, planned.digest, planned.definition_digest, {})
    return {"table": table.url, "version": delta.publish(table, holdings, note).version}


def _marked_otherwise(url: str, unchanged: set[str], verdict: str) -> Iterator[str]:
    """A slice that holds this run's rows already keeps the mark of the commit that put them there."""
    held = delta.current(url) if unchanged else {}
    marks = Counter(commit.quality for start, (_, commit) in held.items() if start in unchanged)
    for mark, count in marks.items():
        if mark != verdict:
            yield (
                f"{count} of the slices of {url} held these rows already and stay marked `{mark}`, although this audit "
                f"says `{verdict}`: roll them back and backfill them again to mark them anew"
            )


def report(pipeline: Pipeline, run_id: str) -> dict[str, Any]:
    """All that is known of a run: what it read, counted, and published, and what the audit said.

    A pipeline of one output has that output's table and version at the top as well.
    """
    papers = _papers(pipeline, run_id)
    planned = papers.manifest()
    audited = papers.read("audit.json")
    outcome = papers.read("outcome.json") if audited["verdict"] != "failed" else {}
    committed = outcome.get("outputs", [])
    published = {each["alias"]: each for each in committed}
    rows = papers.read("metrics.json")
    slices = _counted(rows, papers.staged())
    outputs = []
    for output in pipeline.outputs:
        counted = _counted(rows, _staged(papers, output))
        outputs.append(_of_an_output(output, counted, published.get(output.alias, {})))
    written = {name: sum(each["metrics"][name] for each in outputs) for name in metrics.OF_AN_OUTPUT}
    return {
        "run": run_id,
        "pipeline": pipeline.name,
        "slices": [{"slice_start": start, "rows": each["OutputEvents"], **each} for start, each in slices.items()],
        "metrics": metrics.together(slices.values()) | written,
        "partitions": metrics.by_partition(slices.values()),
        "quality": {"verdict": audited["verdict"], "reason": audited["reason"], "report": audited["report"]},
        "changed": any(each["changed"] for each in outputs),
        "far_blobs": far_blobs(planned),
        "silent_partitions": list(planned.silent),
        "outputs": outputs,
        **_of_the_only(outputs, "table", "version"),
        "quarantine": outcome.get("quarantine", {"table": pipeline.outputs[0].quarantine_table, "version": None}),
        "warnings": [
            *pipeline.warnings,
            *capture_warnings(planned, pipeline.input.empty_blobs),
            *(warning for each in committed for warning in each["warnings"]),
            *_unanchored(outputs),
            *_losses(slices, pipeline.outputs[0].quarantine_table),
            *_time_warnings(slices, pipeline),
        ],
    }


def _of_an_output(
    output: Output, counted: Mapping[str, Mapping[str, Any]], published: Mapping[str, Any]
) -> dict[str, Any]:
    of_slices = {start: {name: each[name] for name in metrics.OF_AN_OUTPUT} for start, each in counted.items()}
    return {
        "alias": output.alias,
        "table": output.table,
        "version": published.get("version"),
        "changed": published.get("changed", False),
        "metrics_table": output.metrics_table,
        "metrics_version": published.get("metrics_version"),
        "metrics": {name: sum(each[name] for each in of_slices.values()) for name in metrics.OF_AN_OUTPUT},
        "slices": [{"slice_start": start, **each} for start, each in of_slices.items()],
    }


def status(pipeline: Pipeline) -> dict[str, Any]:
    """Of each output the published slices, their quality and lateness, and the gaps between them.

    A pipeline of one output has that at the top as well.
    """
    outputs = []
    for output in pipeline.outputs:
        held = delta.current(output.table)
        slices = [_published_slice(start, *found) for start, found in held.items()]
        outputs.append({"alias": output.alias, "table": output.table, "slices": slices, "gaps": _gaps(pipeline, held)})
    return {"pipeline": pipeline.name, "outputs": outputs, **_of_the_only(outputs, "table", "slices", "gaps")}


def _published_slice(start: str, holding: delta.Holding, commit: delta.Commit) -> dict[str, Any]:
    counts = commit.metrics.get(start, {})
    events = counts.get("InputEvents")
    return {
        "slice_start": start,
        "rows": holding.rows,
        "quality": commit.quality,
        "late_share": counts["LateInputEvents"] / events if events else None,
        "version": commit.version,
        "published": _text(commit.time.replace(microsecond=0)),
        "run": commit.run,
    }


def rollback(pipeline: Pipeline, start: datetime, end: datetime) -> dict[str, Any]:
    """Give the range's slices back what they held before their last publication, in every table.

    A pipeline of one output has its version and slices at the top as well.
    """
    check_range(pipeline, start, end)
    starts = [ticks.to_text(each.start) for each in _slices(pipeline, start, end)]
    changes = delta.rollback(list(_tables(pipeline)), starts, f"rollback-{_text(start)}-{_text(end)}")
    outputs = [
        {"alias": output.alias, "table": output.table, "version": change.version, "slices": list(change.slices)}
        for output, change in zip(pipeline.outputs, changes[:-1:2], strict=True)
    ]
    return {"pipeline": pipeline.name, "outputs": outputs, **_of_the_only(outputs, "version", "slices")}


def staged_rows(pipeline: Pipeline, output: Output, run_id: str) -> pa.Table:
    """The rows that a run computed for an output: the query's columns, then slice_start."""
    folder = open_container(output.table)
    tables = []
    for staged in _staged(_papers(pipeline, run_id), output):
        content = folder.read_current(staged.path)
        if content is None:
            raise RunError(f"{staged.path}, which run {run_id} staged, is gone: start the run again from its plan")
        rows = pq.read_table(io.BytesIO(content))
        start = pa.scalar(datetime.fromisoformat(staged.slice_start), pa.timestamp("us", tz="UTC"))
        tables.append(rows.append_column(delta.SLICE, pa.repeat(start, rows.num_rows)))
    return pa.concat_tables(tables)


def _staged(papers: Run, output: Output) -> list[StagedSlice]:
    return [each for each in papers.staged() if each.output == output.alias]


def _papers(pipeline: Pipeline, run_id: str) -> Run:
    return Run(open_container(pipeline.outputs[0].table), run_id)


def _tables(pipeline: Pipeline) -> Iterator[delta.Table]:
    """In the order in which they are published: each output's, then that of its metrics; last the quarantine."""
    for output in pipeline.outputs:
        yield from _tables_of(pipeline, output)
    yield _quarantine(pipeline)


def _quarantine(pipeline: Pipeline) -> delta.Table:
    return delta.Table(pipeline.outputs[0].quarantine_table, metrics.QUARANTINE_COLUMNS, ("body",))


def _tables_of(pipeline: Pipeline, output: Output) -> tuple[delta.Table, delta.Table]:
    return (
        delta.Table(output.table, pipeline.compiled(output).columns),
        delta.Table(output.metrics_table, metrics.TABLE_COLUMNS),
    )


def _of_the_only(outputs: list[dict[str, Any]], *names: str) -> dict[str, Any]:
    return {name: outputs[0][name] for name in names} if len(outputs) == 1 else {}


def _counted(rows: Iterable[Mapping[str, Any]], staged: Iterable[StagedSlice]) -> dict[str, dict[str, Any]]:
    """By slice_start: the metrics of a run's rows, as `metrics.by_slice` has them, and those of what was staged."""
    counted = metrics.by_slice(rows)
    for of_slice in counted.values():
        of_slice.update(dict.fromkeys(metrics.OF_AN_OUTPUT, 0))
    for each in staged:
        counted[each.slice_start]["OutputEvents"] += each.rows
        counted[each.slice_start]["UnanchoredSessions"] += each.unanchored
    return counted


def _unanchored(outputs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for output in outputs:
        sessions = output["metrics"]["UnanchoredSessions"]
        if sessions:
            yield (
                f"{output['alias']}: {sessions} rows are sessions that began before what a slice may read, as no pause "
                "of three maxDurations was longer than the timeout: they are cut at even multiples of maxDuration, and "
                "the live job may have cut at odd ones"
            )


def _losses(slices: Mapping[str, Mapping[str, Any]], quarantine: str) -> Iterator[str]:
    damaged = sum(each["DamagedBlobs"] for each in slices.values())
    if damaged:
        yield f"{damaged} blobs are damaged and were set aside: {quarantine} names them; what they hold is in no row"
    gaps = sum(each["SequenceGaps"] for each in slices.values())
    if gaps:
        missing = sum(each["gaps"]["missing"] for each in slices.values())
        told = [gap for each in slices.values() for gap in each["gaps"]["ranges"]][:GAPS_SHOWN]
        ranges = ", ".join(f"{gap['first']} to {gap['last']} of partition {gap['partition']}" for gap in told)
        more = f" and {gaps - len(told)} gaps more" if gaps > len(told) else ""
        yield f"{missing} sequence numbers never arrived: {ranges}{more}"


def _time_warnings(slices: Mapping[str, Mapping[str, Any]], pipeline: Pipeline) -> Iterator[str]:
    by_blob = pipeline.input.arrival_time is manifest.ArrivalTime.BLOB_LAST_MODIFIED
    totals = metrics.together(slices.values())
    events, late, disordered = (totals[name] for name in ("InputEvents", "LateInputEvents", "DroppedOrAdjustedEvents"))
    if events and late > events / 2:
        yield (
            f"{late / events:.1%} of the events were late: raise eventsLateArrivalMaxDelayInSeconds to at least what "
            f"the devices need{f' plus the {pipeline.input.interval_name}' if by_blob else ''}"
        )
    if events and disordered > events / 10:
        pushers = [each["furthest_ahead"] for each in slices.values() if each["furthest_ahead"]]
        ahead = max(pushers, key=lambda pusher: pusher["seconds"])
        yield (
            f"{disordered / events:.1%} of the events were out of order: the watermark was pushed by clocks that run "
            f"ahead, furthest by event {_which(ahead)} of {ahead['blob']} ({ahead['seconds']:+.1f} s from "
            "its arrival); TIMESTAMP BY … OVER a device's key keeps such a clock to itself"
        )


def _which(event: Mapping[str, Any]) -> int:
    """The sequence number of an event, or its place in its blob."""
    return int(event.get("sequence_number", event.get("place")))


def _gaps(pipeline: Pipeline, held: Iterable[str]) -> list[dict[str, str]]:
    """The ranges between the first and the last published slice that hold nothing."""
    length = _slice_length(pipeline)
    return [
        {"from": ticks.to_text(before + length), "to": ticks.to_text(after)}
        for before, after in itertools.pairwise(map(_ticks, held))
        if after - before > length
    ]


def _ticks(slice_start: str) -> int:
    return ticks.from_datetime(datetime.fromisoformat(slice_start))


def _slices(pipeline: Pipeline, start: datetime, end: datetime) -> list[Slice]:
    return list(slices_between(ticks.from_datetime(start), ticks.from_datetime(end), _slice_length(pipeline)))


def _slice_length(pipeline: Pipeline) -> int:
    return timedelta(hours=pipeline.slice_hours) // timedelta(microseconds=1) * ticks.TICKS_PER_MICROSECOND


def _text(instant: datetime) -> str:
    return ticks.to_text(ticks.from_datetime(instant))
