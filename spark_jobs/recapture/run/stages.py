"""The stages of a run: plan, (the Spark job), audit, publish, report. The command and the DAG's tasks call these.

Between stages everything lies beside the table (see `runs`), so each may run in a process of its own, and again.
"""

import hashlib
import io
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from recapture import __version__
from recapture.archive import changes, manifest
from recapture.archive.manifest import Definition, Manifest
from recapture.archive.progress import Progress, far_blobs, progress
from recapture.archive.progress import warnings as capture_warnings
from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Output
from recapture.errors import AuditError, DefinitionError, RunError, UnfinishedError
from recapture.model import published_schema
from recapture.ordering import order as ordering
from recapture.quality import metrics, suites
from recapture.quality.rows import Part, Rows
from recapture.run import scratch
from recapture.run.files import FOLDER, Run, StagedSlice
from recapture.storage import open_container, side_by_side
from recapture.table import publish as delta
from recapture.table.delta import SLICE, File, OpenTable, Table
from recapture.table.files import compact, is_of, stage
from recapture.table.publications import SCHEMA as PUBLICATIONS
from recapture.table.publications import Publication
from recapture.time_model import ticks
from recapture.time_model.slices import Arrivals, Slice, slices_between

QUARANTINE = "@quarantine"
"""The name of the quarantine among the tables; no output has such an alias."""
REASONS_TOLD = 20
"""Reasons why something was quarantined, the most frequent ones."""
GAPS_SHOWN = 5
"""In a warning; a run's metrics tell more."""


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
        pipeline.input.reading,
    )


def look(pipeline: Pipeline, start: datetime, end: datetime) -> Manifest:
    """The manifest of a range; nothing is written. Raises DefinitionError for what cannot be run."""
    check_range(pipeline, start, end)
    load_suites(pipeline)
    tables_of(pipeline).require_columns()
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
            f"run {found.run} was planned by another engine, query, policies or input than {pipeline.file} has "
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
    tables_of(pipeline).require_columns()
    _papers(pipeline, planned.run).keep_manifest(planned)
    return planned.run


def remove_leftovers(pipeline: Pipeline, run_id: str) -> list[str]:
    """Remove what killed runs of exactly these slices left unfinished; return a line for each place that had any.

    What a living process still writes is left alone.
    """
    found = [
        f"{folder}, a folder of temporary files" for folder in scratch.remove_abandoned(scratch_name(pipeline, run_id))
    ]
    places = {pipeline.outputs[0].table: [f"{FOLDER}/{_range_of(run_id)}-"]}
    start, end = (
        datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC) for text in _range_of(run_id).split("-")
    )
    slices = [f"slice_start={compact(each.start)}/" for each in _slices(pipeline, start, end)]
    tables = tables_of(pipeline)
    for table in (tables.publications, *tables.others.values()):
        places.setdefault(table.url, []).extend(slices)
    for url, prefixes in places.items():
        container = open_container(url)
        files = [name for prefix in prefixes for name in container.remove_abandoned(prefix)]
        if files:
            found.append(f"{len(files):,} unfinished files in {url}, such as {files[0]}")
    return found


def scratch_name(pipeline: Pipeline, run_id: str) -> str:
    """Return what the folders of temporary files of all runs of the same slices of the same table are called."""
    table = pipeline.outputs[0].publications_table
    return f"{pipeline.name}-{hashlib.sha256(table.encode()).hexdigest()[:12]}-{_range_of(run_id)}"


def _range_of(run_id: str) -> str:
    return run_id.rpartition("-")[0]


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
            loaded[output.alias] = suites.load(path, [*columns, SLICE])
    return loaded


def audit(pipeline: Pipeline, run_id: str) -> dict[str, Any]:
    """Judge what is staged and keep the result with the run. Raises AuditError where something critical failed."""
    import pandas as pd

    from recapture.quality import checkpoint, passage, report

    papers = _papers(pipeline, run_id)
    planned = papers.manifest()
    loaded = load_suites(pipeline)
    rows, staged = papers.read("metrics.json"), papers.staged()
    written: dict[str, dict[str, int]] = {}
    for each in staged:
        written.setdefault(each.slice_start, {})[each.output] = each.rows
    passages = [passage.Passage(start, counts, written[start]) for start, counts in metrics.by_slice(rows).items()]

    def example(start: str) -> passage.Example | None:
        partitions = [row["partition"] for row in rows if row["slice_start"] == start and _unusable(row)]
        first = papers.quarantined_first(partitions[0], _slice_of(planned, start)) if partitions else None
        return passage.Example(**first) if first else None

    with scratch.scratch_folder(scratch_name(pipeline, run_id)) as folder:
        found = checkpoint.audit(
            pd.DataFrame(rows).drop(columns=list(metrics.BESIDE)),
            {
                output.alias: _local_rows(output, _of(staged, output), run_id, folder)
                for output in pipeline.outputs
                if output.alias in loaded
            },
            loaded,
            run_start=ticks.to_datetime(planned.slices[0].slice.start),
            run_end=ticks.to_datetime(planned.slices[-1].slice.end),
            slice_count=len(planned.slices),
            of_slices=passage.results(
                passages,
                example,
                {alias: suite.severities for alias, suite in loaded.items()},
                pipeline.query.ends_windows_every(_slice_length(pipeline)),
            ),
        )
    reason = report.reason(found)
    outcome = {"verdict": found.verdict, "reason": reason, "report": report.text(found), "json": found.json}
    papers.write("audit.json", outcome)
    if found.verdict == "failed":
        unusable = sum(map(_unusable, rows))
        place = f"{papers.table.url}/{papers.name('quarantine')}"
        aside = f"; {unusable:,} quarantined events are in {place}" if unusable else ""
        raise AuditError(f"run {run_id} was stopped by its audit, nothing was published: {reason}{aside}")
    return {"verdict": found.verdict, "report": outcome["report"]}


def _unusable(row: Mapping[str, Any]) -> int:
    return sum(row[verdict] for verdict in metrics.UNUSABLE)


def _slice_of(planned: Manifest, start: str) -> Slice:
    return next(each.slice for each in planned.slices if ticks.to_text(each.slice.start) == start)


def publish(pipeline: Pipeline, run_id: str) -> dict[str, Any]:
    """Publish the run's slices in every table, once it passed its audit. Raises AuditError where it did not.

    What was interrupted between two commits is finished by the next call.
    """
    papers = _papers(pipeline, run_id)
    verdict = papers.read("audit.json")["verdict"]
    if verdict == "failed":
        raise AuditError(f"run {run_id} was stopped by its audit: nothing is published")
    planned, rows, staged = papers.manifest(), papers.read("metrics.json"), papers.staged()
    files: dict[str, dict[str, File]] = {}
    for output in pipeline.outputs:
        of_output = _of(staged, output)
        files[output.alias] = {each.slice_start: File(each.path, each.size, each.rows) for each in of_output}
        counted = _counted(rows, of_output)
        files[_metrics_name(output)] = _staged_metrics(output.metrics_table, counted, planned)
    files[QUARANTINE], reasons = _staged_quarantine(pipeline, papers, planned, rows)
    totals = metrics.by_slice(rows)
    now = datetime.now(UTC)
    publications = {
        start: Publication(
            run=run_id,
            quality=verdict,
            published=now,
            digest=each.digest,
            manifest=planned.digest,
            definition=planned.definition_digest,
            input_events=totals[start]["InputEvents"],
            late_events=totals[start]["LateInputEvents"],
            files={name: of_slices.get(start) for name, of_slices in files.items()},
        )
        for each in planned.slices
        for start in (ticks.to_text(each.slice.start),)
    }
    outcome = delta.publish(tables_of(pipeline), publications)
    published = {
        "slices": list(publications),
        "quality": verdict,
        "outputs": [_published_output(output, outcome) for output in pipeline.outputs],
        "quarantine": {
            "table": pipeline.outputs[0].quarantine_table,
            "version": outcome.versions[QUARANTINE],
            **reasons,
        },
        "warnings": list(_publish_warnings(outcome)),
    }
    try:
        papers.write("outcome.json", published)
    except RunError as error:
        raise UnfinishedError(f"run {run_id} is published, but: {error}; run the same again for its report") from error
    return published


def _published_output(output: Output, outcome: delta.Outcome) -> dict[str, Any]:
    return {
        "alias": output.alias,
        "table": output.table,
        "version": outcome.versions[output.alias],
        "changed": bool(outcome.changed[output.alias]),
        "metrics_table": output.metrics_table,
        "metrics_version": outcome.versions[_metrics_name(output)],
    }


def _publish_warnings(outcome: delta.Outcome) -> Iterator[str]:
    if outcome.finished:
        count, first = len(outcome.finished), outcome.finished[0]
        yield (
            f"{count} slices, the first {first}: finished a change that an earlier call had begun; every table agrees "
            "now"
        )
    for run, slices in _by_run(outcome.superseded):
        what = f"published by run {run}" if run else "rolled back"
        yield f"{len(slices)} slices, the first {slices[0]}, were {what} at the same time: they hold that now"


def _by_run(superseded: Mapping[str, str | None]) -> Iterator[tuple[str | None, list[str]]]:
    for run in sorted(set(superseded.values()), key=str):
        yield run, [start for start, other in superseded.items() if other == run]


def _staged_metrics(url: str, counted: Mapping[str, Mapping[str, Any]], planned: Manifest) -> dict[str, File]:
    """Write each slice's rows of the metrics table."""
    folder = open_container(url)
    digests = {ticks.to_text(each.slice.start): each.digest for each in planned.slices}

    def write(start: str) -> File:
        rows = metrics.table_rows(counted[start])
        return File(*stage(folder, _ticks(start), digests[start], rows), rows.num_rows)

    return dict(zip(counted, side_by_side(write, counted), strict=True))


def _staged_quarantine(
    pipeline: Pipeline, papers: Run, planned: Manifest, rows: Iterable[Mapping[str, Any]]
) -> tuple[dict[str, File], dict[str, Any]]:
    """Write each slice's rows of the quarantine; a slice in which nothing was quarantined has none.

    Return the files, and how many rows there are, in all and for the most frequent reasons.
    """
    folder = open_container(pipeline.outputs[0].quarantine_table)
    partitions: dict[str, list[str]] = {}
    for row in rows:
        if any(row[count] for count in metrics.SET_ASIDE):
            partitions.setdefault(row["slice_start"], []).append(row["partition"])

    def write(planned_slice: manifest.PlannedSlice) -> tuple[File, pa.Table]:
        slice_ = planned_slice.slice
        of_slice = partitions[ticks.to_text(slice_.start)]
        quarantined = pa.concat_tables([papers.quarantined(partition, slice_) for partition in of_slice])
        counted = quarantined.group_by(["verdict", "reason"]).aggregate([([], "count_all")])
        return File(*stage(folder, slice_.start, planned_slice.digest, quarantined), quarantined.num_rows), counted

    slices = {start: each for each in planned.slices if (start := ticks.to_text(each.slice.start)) in partitions}
    written = side_by_side(write, slices.values())
    reasons: Counter[tuple[str, str]] = Counter()
    for _, counted in written:
        for row in counted.to_pylist():
            reasons[row["verdict"], row["reason"]] += row["count_all"]
    frequent = [
        {"verdict": verdict, "reason": reason, "rows": count}
        for (verdict, reason), count in sorted(reasons.items(), key=lambda each: (-each[1], each[0]))[:REASONS_TOLD]
    ]
    files = {start: file for start, (file, _) in zip(slices, written, strict=True)}
    return files, {"rows": reasons.total(), "reasons": frequent}


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
    rows, staged = papers.read("metrics.json"), papers.staged()
    slices = _counted(rows, staged)
    outputs = []
    for output in pipeline.outputs:
        counted = _counted(rows, _of(staged, output))
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
            *_without_block(rows),
            *outcome.get("warnings", []),
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
    tables = tables_of(pipeline)
    entries = OpenTable(tables.publications).slices()
    published = {start: entry for start, entry in entries.items() if entry["run"] is not None}
    gaps = _gaps(pipeline, published)
    outputs = []
    for output in pipeline.outputs:
        held = OpenTable(tables.others[output.alias]).slices()
        slices = [_published_slice(start, held.get(start), entry) for start, entry in published.items()]
        outputs.append({"alias": output.alias, "table": output.table, "slices": slices, "gaps": gaps})
    return {"pipeline": pipeline.name, "outputs": outputs, **_of_the_only(outputs, "table", "slices", "gaps")}


def _published_slice(start: str, held: Mapping[str, Any] | None, entry: Mapping[str, Any]) -> dict[str, Any]:
    events = entry["input_events"]
    holds = held is not None and is_of(held["path"], entry["digest"])
    return {
        "slice_start": start,
        "rows": held["rows"] if held is not None and holds else None,
        "quality": entry["quality"],
        "late_share": entry["late_events"] / events if events else None,
        "published": entry["published"],
        "run": entry["run"],
        "finished": holds,
    }


def rollback(pipeline: Pipeline, start: datetime, end: datetime, run: str | None = None) -> dict[str, Any]:
    """Give the range's slices back what they held before their publication, in every table: see `publish.rollback`.

    A pipeline of one output has its version and slices at the top as well.
    """
    check_range(pipeline, start, end)
    starts = [ticks.to_text(each.start) for each in _slices(pipeline, start, end)]
    outcome = delta.rollback(tables_of(pipeline), starts, run)
    outputs = [
        {
            "alias": output.alias,
            "table": output.table,
            "version": outcome.versions[output.alias],
            "slices": outcome.changed[output.alias],
        }
        for output in pipeline.outputs
    ]
    slices = [
        {"slice_start": start, "taken_back": entry.taken_back, "run": entry.run}
        for start, entry in outcome.entries.items()
    ]
    return {
        "pipeline": pipeline.name,
        "rolled_back": slices,
        "outputs": outputs,
        "warnings": list(_publish_warnings(outcome)),
        **_of_the_only(outputs, "version", "slices"),
    }


def staged_rows(pipeline: Pipeline, output: Output, run_id: str, most: int | None = None) -> pa.Table:
    """The rows that a run computed for an output, all or the first ones: the query's columns, then slice_start."""
    staged = _of(_papers(pipeline, run_id).staged(), output)
    tables: list[pa.Table] = []
    for number, each in enumerate(staged):
        left = each.rows if most is None else min(each.rows, most - sum(table.num_rows for table in tables))
        if left or not number:
            with pq.ParquetFile(io.BytesIO(_content(output, each, run_id))) as file:
                if left == each.rows:
                    rows = file.read()
                else:
                    rows = pa.Table.from_batches([next(file.iter_batches(left))]).slice(0, left)
            start = pa.scalar(datetime.fromisoformat(each.slice_start), pa.timestamp("us", tz="UTC"))
            tables.append(rows.append_column(SLICE, pa.repeat(start, rows.num_rows)))
    return pa.concat_tables(tables)


def _local_rows(output: Output, staged: Iterable[StagedSlice], run_id: str, folder: Path) -> Rows:
    """Write the rows that a run staged for an output to a local folder."""
    parts = []
    for number, each in enumerate(staged):
        file = folder / f"{output.alias}-{number}.parquet"
        file.write_bytes(_content(output, each, run_id))
        parts.append(Part(file, datetime.fromisoformat(each.slice_start)))
    return Rows(pq.read_schema(parts[0].file), SLICE, parts)


def _content(output: Output, staged: StagedSlice, run_id: str) -> bytes:
    content = open_container(output.table).read_current(staged.path)
    if content is None:
        raise RunError(f"{staged.path}, which run {run_id} staged, is gone: start the run again from its plan")
    return content


def _of(staged: Iterable[StagedSlice], output: Output) -> list[StagedSlice]:
    return [each for each in staged if each.output == output.alias]


def _papers(pipeline: Pipeline, run_id: str) -> Run:
    return Run(open_container(pipeline.outputs[0].table), run_id)


def tables_of(pipeline: Pipeline) -> delta.Tables:
    """The tables, in the order in which they are committed to."""
    others: dict[str, Table] = {}
    for output in pipeline.outputs:
        others[output.alias] = Table(output.table, published_schema(pipeline.compiled(output).columns))
        others[_metrics_name(output)] = Table(output.metrics_table, metrics.TABLE_SCHEMA)
    others[QUARANTINE] = Table(pipeline.outputs[0].quarantine_table, ordering.QUARANTINE)
    return delta.Tables(Table(pipeline.outputs[0].publications_table, PUBLICATIONS), others)


def _metrics_name(output: Output) -> str:
    """The name of an output's metrics among the tables; no alias has a blank."""
    return f"{output.alias} metrics"


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


def _without_block(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    names = [name for row in rows for name in row["without_block"]]
    if names:
        yield (
            f"{len(names):,} blobs are Avro files of a header alone, such as {min(names)}: they are "
            "read as empty; Capture always writes a block, so restore those that are as Capture wrote them"
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
