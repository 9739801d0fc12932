"""Audit a run: judge its staged rows and its metrics before anything is published."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Output
from recapture.errors import AuditError
from recapture.process.wording import counted
from recapture.quality import metrics
from recapture.quality.audit import Result, reason_of, text_of
from recapture.quality.suites import Check, RunParameters, Severity, require_installed
from recapture.run.holes import Rows, holes_of
from recapture.run.leftovers import scratch_name
from recapture.run.losses import losses_of
from recapture.run.outdated import parts_of
from recapture.run.published import earlier_metrics, with_history
from recapture.run.slices import slice_length
from recapture.run.staged import write_locally
from recapture.run.stages import Stage
from recapture.run.suites import NONE_GIVEN, Parameters, load_suites
from recapture.run.tables import tables_of
from recapture.run.vanished import vanished_keys
from recapture.run_files.computed import Computed
from recapture.run_files.contents import AUDIT, Audited
from recapture.run_files.cost import recorded
from recapture.run_files.marks import STAGED_RUNS, STOPPED_RUNS, Unpublished
from recapture.run_files.planned import PlannedRun
from recapture.storage.scratch import scratch_folder
from recapture.table.publications import Publications
from recapture.time_model import ticks
from recapture.time_model.partition_metrics import PartitionMetrics

if TYPE_CHECKING:
    from recapture.quality.verdict_checks import NotedVerdicts

_LOG = logging.getLogger(__name__)


@recorded(Stage.AUDIT)
def audit(
    run: PlannedRun,
    computed: Computed,
    parameters: Parameters = NONE_GIVEN,
    *,
    accept_loss: bool = False,
    is_staged: bool = False,
) -> Audited:
    """Judge what a run computed, write the result to the run files and return it.

    If a critical expectation fails, also mark the run as stopped; see `stopped`. If the run `is_staged` and none fails,
    mark it as one that waits for a person. `parameters` are the values that the run gives to the parameters of its
    suites. If `accept_loss`, the archive may have holes, and slices may lose events that are published.
    """
    require_installed()
    from recapture.quality import archive_checks, checkpoint, key_checks, slice_checks, verdict_checks

    pipeline, loaded = run.pipeline, load_suites(run.pipeline, parameters)
    rows, staged = computed.metrics, computed.staged
    row_counts: dict[str, dict[str, int]] = {}
    for file in staged:
        row_counts.setdefault(file.slice_start, {})[file.output] = file.rows
    slices = [
        slice_checks.SliceCounts(
            start,
            [
                slice_checks.InputCounts(read.alias, read.totals.counts(slice_checks.COUNTS))
                for read in slice_totals.inputs
            ],
            row_counts[start],
        )
        for start, slice_totals in computed.slices.items()
    ]

    read_as = {input_.alias: input_.read_as for input_ in pipeline.inputs}

    def example(start: str, alias: str) -> slice_checks.Example | None:
        partitions = [
            row.partition for row in rows if row.slice_start == start and row.input == alias and _unusable(row)
        ]
        first = run.files.first_unusable(alias, partitions[0], run.slices[start].slice) if partitions else None
        return slice_checks.Example(*first, read_as=read_as[alias]) if first else None

    name_input = len(run.manifest.inputs) > 1
    publications = Publications(tables_of(pipeline).publications)
    held = {start: entry.run for start, entry in publications.entries(run.slices).items()}
    provisional = pipeline.schedule is not None and pipeline.schedule.provisional
    holes = holes_of(run, rows, publications, provisional=provisional)
    severities = {alias: suite.severities for alias, suite in loaded.items()}
    archive_results = [
        archive_checks.holes_result(
            holes,
            slice_checks.strictest(severities, "archive_has_no_holes"),
            accepted=accept_loss,
            can_be_judged=_shows_holes(pipeline, rows),
            name_input=name_input,
            in_gaps=sum(row.gaps.missing for row in rows),
        ),
        archive_checks.losses_result(
            losses_of(run, computed, publications),
            slice_checks.strictest(severities, "no_published_event_is_lost"),
            accepted=accept_loss,
            name_input=name_input,
        ),
        key_checks.unreached_result(rows, slice_checks.strictest(severities, "events_of_every_key_reach_the_query")),
        *(_vanished_result(run, output, computed, severities) for output in pipeline.outputs),
    ]
    if pipeline.verdicts is not None:
        severity = slice_checks.strictest(severities, "verdicts_equal_the_metrics")
        archive_results.append(verdict_checks.verdicts_result(list(_noted_verdicts(run, rows)), severity))

    with scratch_folder(scratch_name(pipeline, run.id)) as folder:
        outputs = [output for output in pipeline.outputs if output.alias in loaded]
        aggregates = {
            output.alias: with_history(
                run,
                output,
                loaded[output.alias],
                write_locally(output, computed.staged_of(output.alias), run.id, folder),
                folder,
            )
            for output in outputs
        }
        result = checkpoint.audit(
            list(map(metrics.columns, rows)),
            aggregates,
            loaded,
            RunParameters(
                len(run.manifest.slices),
                run_start=ticks.to_datetime(run.manifest.slices[0].slice.start),
                run_end=ticks.to_datetime(run.manifest.slices[-1].slice.end),
            ),
            slice_results=[
                *archive_results,
                *slice_checks.results(
                    slices,
                    example,
                    severities,
                    pipeline.query.ends_windows_every(slice_length(pipeline)),
                    {output.alias for output in pipeline.outputs if not pipeline.expects_rows(output)},
                ),
            ],
            earlier_metrics=earlier_metrics(run, loaded.values()),
            provisional=provisional,
        )
    _LOG.info("run %s: audit %s, %d results", run.id, result.verdict, len(result.results))
    audited = Audited(result.verdict, reason_of(result), text_of(result), result, tuple(holes))
    audited = run.files.write(AUDIT, audited)
    if audited.verdict == "failed" or is_staged:
        marks = STOPPED_RUNS if audited.verdict == "failed" else STAGED_RUNS
        read, now = dict(zip(run.slices, run.manifest.reads, strict=True)), ticks.whole_seconds(datetime.now(UTC))
        incomplete = tuple(sorted(run.manifest.incomplete_slices))
        marks.record(run.files, Unpublished(now, parts_of(pipeline), read, held, incomplete))
    return audited


def stopped(run: PlannedRun, computed: Computed, audited: Audited) -> AuditError | None:
    """Return the error of a run that its audit stopped; None if it passed."""
    if audited.verdict != "failed":
        return None
    unusable = sum(map(_unusable, computed.metrics))
    quarantined = (
        f"; {counted(unusable, 'quarantined event is', 'quarantined events are')} in {run.files.quarantine_url}"
        if unusable
        else ""
    )
    return AuditError(f"run {run.id} was stopped by its audit, nothing was published: {audited.reason}{quarantined}")


def _noted_verdicts(run: PlannedRun, rows: Rows) -> Iterator["NotedVerdicts"]:
    """Yield how often the run noted and counted each verdict, in each partition and slice with such events."""
    from recapture.quality.verdict_checks import NotedVerdicts

    for row in rows:
        counts = {verdict: row.count(verdict) for verdict in metrics.NOT_ON_TIME}
        if any(counts.values()):
            table = run.files.verdicts(row.input, row.partition, run.slices[row.slice_start].slice)
            noted = Counter(table["verdict"].to_pylist())
            for verdict, count in counts.items():
                yield NotedVerdicts(row.slice_start, row.partition, verdict, noted[verdict], count)


def _vanished_result(
    run: PlannedRun, output: Output, computed: Computed, severities: Mapping[str, Mapping[Check, Severity]]
) -> Result:
    from recapture.quality import key_checks

    vanished, why_unjudged = vanished_keys(run, output, computed.staged_of(output.alias))
    severity = severities.get(output.alias, {}).get("no_key_disappears")
    return key_checks.vanished_result(output.alias, vanished, severity, why_unjudged=why_unjudged)


def _shows_holes(pipeline: Pipeline, rows: Rows) -> bool:
    """Return whether every input shows its holes: a blob has to exist for each interval, or events are numbered."""
    definitions = run_definition(pipeline).inputs
    numbered = {row.input for row in rows if row.numbers}
    return all(definition.has_blob_in_each_interval or definition.alias in numbered for definition in definitions)


def _unusable(row: PartitionMetrics) -> int:
    return sum(map(row.count, metrics.UNUSABLE))
