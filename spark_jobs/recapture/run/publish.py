"""Publish a run that passed its audit: stage its metrics and quarantine, then change every table."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import pyarrow as pa

from recapture.archive.holes import MAX_HOLES, Hole
from recapture.definition.sections import Output
from recapture.errors import AuditError, PermanentError, RunError, UnfinishedError
from recapture.process import log
from recapture.process.wording import counted, named_slices
from recapture.quality import metrics
from recapture.quality.metrics import SliceTotals
from recapture.run.approval import APPROVED, held_at_audit
from recapture.run.holes import Rows, inputs_read, missing_blobs_by_slice
from recapture.run.outdated import parts_of
from recapture.run.stages import Stage
from recapture.run.tables import QUARANTINE, VERDICTS, metrics_key, tables_of
from recapture.run_files.computed import Computed, StagedSlice
from recapture.run_files.contents import (
    OUTCOME,
    Audited,
    Outcome,
    PublishedOutput,
    PublishedQuarantine,
    QuarantineReason,
)
from recapture.run_files.cost import recorded
from recapture.run_files.marks import STAGED_RUNS, STOPPED_RUNS
from recapture.run_files.metrics import output_metrics
from recapture.run_files.planned import PlannedRun
from recapture.storage import in_parallel, open_container
from recapture.table import publish as table_publish
from recapture.table.files import write_slice_file
from recapture.table.publications import Approval, Publication
from recapture.table.snapshot import File
from recapture.time_model import ticks

_LOG = logging.getLogger(__name__)
MAX_REASONS = 20
"""Maximum number of quarantine reasons in the result; the most frequent ones come first."""


@recorded(Stage.PUBLISH)
def publish(
    run: PlannedRun,
    computed: Computed,
    audited: Audited,
    approval: Approval | None = None,
    *,
    is_staged: bool = False,
    take_over: bool = False,
) -> Outcome:
    """Publish the run's slices in every table, and return what was published.

    Raise AuditError if its audit failed and nobody approved it, and PermanentError if another run was published for a
    slice after the audit of a run that was approved or `is_staged`. If a call is interrupted between two commits, the
    next call finishes it. With `take_over`, tables of another pipeline become this pipeline's. Other errors are those
    of `table.publish.publish`.
    """
    if audited.verdict == "failed" and approval is None:
        raise AuditError(f"run {run.id} was stopped by its audit: nothing is published")
    is_approved = audited.verdict == "failed"
    quality = APPROVED if is_approved else audited.verdict
    held = held_at_audit(run, STOPPED_RUNS if is_approved else STAGED_RUNS) if is_approved or is_staged else None
    files: dict[str, dict[str, File]] = {}
    for output in run.pipeline.outputs:
        staged = computed.staged_of(output.alias)
        files[output.alias] = {file.slice_start: File(file.path, file.size, file.rows) for file in staged}
        files[metrics_key(output)] = _stage_metrics(run, output, computed.slices, staged)
    files[QUARANTINE], reasons = _stage_quarantine(run, computed.metrics)
    if run.pipeline.verdicts is not None:
        files[VERDICTS] = _stage_verdicts(run, computed.metrics)
    publications = _publications(run, quality, approval, computed, audited.holes, files)
    with log.logged(_LOG, f"run {run.id}: publish {counted(len(publications), 'slice')}") as results:
        tables = tables_of(run.pipeline)
        changes = table_publish.publish(tables, publications, take_over=take_over, unless_newer_than=held)
        results += [f"{name} version {version}" for name, version in changes.versions.items()]
    most_frequent = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))[:MAX_REASONS]
    outcome = Outcome(
        slices=tuple(publications),
        quality=quality,
        outputs=tuple(_published_output(output, changes) for output in run.pipeline.outputs),
        quarantine=PublishedQuarantine(
            run.pipeline.outputs[0].quarantine_table,
            changes.versions[QUARANTINE],
            reasons.total(),
            tuple(QuarantineReason(verdict, reason, rows) for (verdict, reason), rows in most_frequent),
        ),
        warnings=tuple(warnings(changes)),
    )
    try:
        return run.files.write(OUTCOME, outcome)
    except RunError as error:
        again = "run the same command again for its report"
        raise UnfinishedError(
            f"run {run.id} is published, but its outcome could not be recorded: {error}; {again}"
        ) from error


def warnings(outcome: table_publish.Outcome) -> Iterator[str]:
    """Yield the warnings about a publication or a rollback."""
    if outcome.repaired:
        changed = named_slices(outcome.repaired)
        yield (
            f"restored what is published in {changed}: a table held something else, because a command was interrupted "
            "or another program changed the table"
        )
    for name, starts in outcome.whole_in_feed.items():
        yield (
            f"the change data feed of {name} cannot tell which rows of {named_slices(starts)} changed, because a file "
            "was gone or damaged, or another program had deleted rows of it; consumers must read these slices again"
        )
    for run_id in sorted(set(outcome.superseded.values()), key=str):
        slices = [start for start, other in outcome.superseded.items() if other == run_id]
        published = f"run {run_id}" if run_id else "nothing"
        change = "another call changed the same slices at the same time"
        yield f"{change}; {published} is now published in {named_slices(slices)}"


def _publications(
    run: PlannedRun,
    verdict: str,
    approval: Approval | None,
    computed: Computed,
    holes: Sequence[Hole],
    files: Mapping[str, Mapping[str, File]],
) -> dict[str, Publication]:
    manifest_digest, now = run.manifest.digest, datetime.now(UTC)
    read, missing_blobs = inputs_read(run.pipeline, computed.metrics), missing_blobs_by_slice(run, holes)
    parts = parts_of(run.pipeline)
    holes_of_slice = {
        start: [hole for hole in holes if ticks.to_text(hole.slice_start) == start] for start in run.slices
    }
    return {
        start: Publication(
            run=run.id,
            quality=verdict,
            published=now,
            digest=run_slice.digest,
            manifest=manifest_digest,
            definition=run.manifest.definition_digest,
            input_events=computed.slices[start].totals.count("InputEvents"),
            late_events=computed.slices[start].totals.count("LateInputEvents"),
            files={name: file_by_slice.get(start) for name, file_by_slice in files.items()},
            approval=approval,
            parts=parts,
            inputs=read[start],
            holes=tuple(holes_of_slice[start][:MAX_HOLES]),
            missing_events=sum(hole.events or 0 for hole in holes_of_slice[start] if hole.severity != "info"),
            missing_blobs=missing_blobs[start],
            read=slice_read,
            provisional=start in run.manifest.incomplete_slices,
        )
        for (start, run_slice), slice_read in zip(run.slices.items(), run.manifest.reads, strict=True)
    }


def _published_output(output: Output, changes: table_publish.Outcome) -> PublishedOutput:
    return PublishedOutput(
        output.alias,
        output.table,
        changes.versions[output.alias],
        bool(changes.changed[output.alias]),
        output.metrics_table,
        changes.versions[metrics_key(output)],
        len(changes.entries) - len(changes.changed[output.alias]),
    )


def _stage_metrics(
    run: PlannedRun, output: Output, slices: Mapping[str, SliceTotals], staged: Iterable[StagedSlice]
) -> dict[str, File]:
    folder, outputs = open_container(output.metrics_table), output_metrics(staged)

    def write(start: str) -> File:
        rows, run_slice = metrics.table_rows(slices[start], outputs[start]), run.slices[start]
        path, size = write_slice_file(folder, run_slice.slice.start, run_slice.digest, rows)
        return File(path, size, rows.num_rows)

    return dict(zip(slices, in_parallel(write, slices), strict=True))


def _stage_verdicts(run: PlannedRun, rows: Rows) -> dict[str, File]:
    """Write the rows of each slice for the table of verdicts; a slice in which all events are on time has no file.

    Raise PermanentError unless the run noted as many verdicts as it counted.
    """
    folder = open_container(run.pipeline.outputs[0].verdicts_table)
    counted_events: dict[str, dict[tuple[str, str], int]] = {}
    for row in rows:
        if count := sum(map(row.count, metrics.NOT_ON_TIME)):
            counted_events.setdefault(row.slice_start, {})[row.input, row.partition] = count
    starts = [start for start in run.slices if start in counted_events]

    def write(slice_start: str) -> File:
        run_slice = run.slices[slice_start]
        partitions = counted_events[slice_start]
        verdicts = pa.concat_tables([run.files.verdicts(*place, run_slice.slice) for place in partitions])
        if len(verdicts) != sum(partitions.values()):
            raise PermanentError(
                f"run {run.id} noted {len(verdicts):,} verdicts in slice {slice_start}, and counted "
                f"{sum(partitions.values()):,}: its run files are damaged; start the run again from its plan"
            )
        path, size = write_slice_file(folder, run_slice.slice.start, run_slice.digest, verdicts.combine_chunks())
        return File(path, size, len(verdicts))

    return dict(zip(starts, in_parallel(write, starts), strict=True))


def _stage_quarantine(run: PlannedRun, rows: Rows) -> tuple[dict[str, File], Counter[tuple[str, str]]]:
    """Write the rows of each slice for the quarantine table; a slice without quarantined events has no file.

    Return the files, and the number of rows by verdict and reason.
    """
    folder = open_container(run.pipeline.outputs[0].quarantine_table)
    partitions: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        if any(map(row.count, metrics.QUARANTINED)):
            partitions.setdefault(row.slice_start, []).append((row.input, row.partition))
    starts = [start for start in run.slices if start in partitions]

    def write(slice_start: str) -> tuple[File, pa.Table]:
        run_slice = run.slices[slice_start]
        slice_ = run_slice.slice
        partition_tables = [run.files.quarantined(*partition, slice_) for partition in partitions[slice_start]]
        quarantined = pa.concat_tables(partition_tables)
        path, size = write_slice_file(folder, slice_.start, run_slice.digest, quarantined)
        rows_by_reason = quarantined.group_by(["verdict", "reason"]).aggregate([([], "count_all")])
        return File(path, size, quarantined.num_rows), rows_by_reason

    written = in_parallel(write, starts)
    reasons: Counter[tuple[str, str]] = Counter()
    for _, rows_by_reason in written:
        for row in rows_by_reason.to_pylist():
            reasons[row["verdict"], row["reason"]] += row["count_all"]
    return {start: file for start, (file, _) in zip(starts, written, strict=True)}, reasons
