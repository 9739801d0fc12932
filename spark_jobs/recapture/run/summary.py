"""Summarise a run: what it read, counted and published, what its audit said, and its warnings."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from recapture.archive.definitions import ArrivalTime
from recapture.archive.pinning import PlannedInput
from recapture.archive.progress import far_blobs
from recapture.definition.pipeline import Pipeline
from recapture.definition.sections import Output
from recapture.formats.sections import Input
from recapture.pages.page import duration
from recapture.process.wording import counted, of_input, values_of_only
from recapture.quality import metrics
from recapture.quality.metrics import Gap, SliceTotals, Totals
from recapture.run.progress import capture_warnings
from recapture.run_files.computed import Computed
from recapture.run_files.contents import OUTCOME, Audited, Outcome, PublishedOutput
from recapture.run_files.metrics import output_metrics
from recapture.run_files.planned import PlannedRun
from recapture.table.publications import Approval
from recapture.time_model.partition_metrics import EventAhead, PartitionMetrics

SHOWN_GAPS = 5
"""Maximum number of gaps that a warning names; a run's metrics name more."""


def summary(
    run: PlannedRun, computed: Computed, audited: Audited, outcome: Outcome | None, approval: Approval | None = None
) -> dict[str, Any]:
    """Return everything that is known about a run in JSON types; `outcome` is None if nothing was published.

    If the pipeline has one input or one output, its values are also at the top level of the result.
    """
    pipeline, manifest = run.pipeline, run.manifest
    published = {output.alias: output for output in outcome.outputs} if outcome else {}
    rows, slices = computed.metrics, computed.slices
    totals, written = [slice_totals.totals for slice_totals in slices.values()], output_metrics(computed.staged)
    outputs = [
        _output_summary(output, output_metrics(computed.staged_of(output.alias)), published.get(output.alias))
        for output in pipeline.outputs
    ]
    inputs = [
        _input_summary(planned, [row for row in rows if row.input == planned.alias]) for planned in manifest.inputs
    ]
    output_totals = {name: sum(output["metrics"][name] for output in outputs) for name in metrics.OUTPUT_METRICS}
    return {
        "run": run.id,
        "pipeline": pipeline.name,
        "slices": [
            {"slice_start": start, "rows": written[start]["OutputEvents"], **slice_totals.to_dict(), **written[start]}
            for start, slice_totals in slices.items()
        ],
        "metrics": metrics.combine(slice_totals.values for slice_totals in totals) | output_totals,
        "quality": {
            "verdict": audited.verdict,
            "reason": audited.reason,
            "parameters": audited.audit.parameters,
            "text": audited.text,
            "approval": approval.to_dict() if approval else None,
        },
        "changed": any(output["changed"] for output in outputs),
        "inputs": inputs,
        **values_of_only(inputs, "partitions", "silent_partitions", "far_blobs"),
        "outputs": outputs,
        **values_of_only(outputs, "table", "version"),
        "quarantine": (
            OUTCOME.json_types(outcome)["quarantine"]
            if outcome
            else {"table": pipeline.outputs[0].quarantine_table, "version": None}
        ),
        "warnings": warnings_of(run, computed, outcome),
    }


def warnings_of(run: PlannedRun, computed: Computed, outcome: Outcome | None) -> list[str]:
    """Return the warnings of a run; `outcome` is None if nothing was published."""
    pipeline, slices = run.pipeline, computed.slices.values()
    totals, name_input = [slice_totals.totals for slice_totals in slices], len(run.manifest.inputs) > 1
    return [
        *pipeline.warnings,
        *capture_warnings(pipeline, run.manifest),
        *_without_block(computed.metrics),
        *(outcome.warnings if outcome else ()),
        *_unanchored(pipeline, computed),
        *_losses(totals, pipeline.outputs[0].quarantine_table, name_input),
        *_tolerance_warnings(slices, pipeline, name_input),
    ]


def _input_summary(planned: PlannedInput, rows: list[PartitionMetrics]) -> dict[str, Any]:
    return {
        "alias": planned.alias,
        "metrics": metrics.combine(row.values for row in rows),
        "partitions": metrics.by_partition(rows),
        "silent_partitions": list(planned.silent),
        "far_blobs": far_blobs(planned),
    }


def _output_summary(
    output: Output, slices: Mapping[str, Mapping[str, int]], published: PublishedOutput | None
) -> dict[str, Any]:
    return {
        "alias": output.alias,
        "table": output.table,
        "version": published and published.version,
        "changed": published is not None and published.changed,
        "unchanged_slices": published and published.unchanged_slices,
        "metrics_table": output.metrics_table,
        "metrics_version": published and published.metrics_version,
        "metrics": {name: sum(counts[name] for counts in slices.values()) for name in metrics.OUTPUT_METRICS},
        "slices": [{"slice_start": start, **counts} for start, counts in slices.items()],
    }


def _without_block(rows: Iterable[PartitionMetrics]) -> Iterator[str]:
    names = [name for row in rows for name in row.without_block]
    if names:
        blobs = counted(len(names), "blob is an Avro file", "blobs are Avro files")
        yield (
            f"{blobs} with a header and no blocks, such as {min(names)}: read as empty; "
            "Capture always writes a block, so restore those that Capture wrote"
        )


def _unanchored(pipeline: Pipeline, computed: Computed) -> Iterator[str]:
    for output in pipeline.outputs:
        counts = output_metrics(computed.staged_of(output.alias))
        sessions = sum(slice_counts["UnanchoredSessions"] for slice_counts in counts.values())
        if sessions:
            rows = counted(sessions, "row is a session", "rows are sessions")
            yield (
                f"{output.alias}: {rows} cut at even multiples of maxDuration: the events are too sparse to "
                "tell where the live job cut; it may be at odd multiples (docs/time-model.md, section 4.2)"
            )


def _losses(slices: Sequence[Totals], quarantine: str, name_input: bool) -> Iterator[str]:
    damaged = sum(totals.count("DamagedBlobs") for totals in slices)
    if damaged:
        blobs = counted(damaged, "blob is damaged and was quarantined", "blobs are damaged and were quarantined")
        yield f"{blobs}: see {quarantine}; events of damaged blobs are in no row"
    gaps = sum(totals.count("SequenceGaps") for totals in slices)
    if gaps:
        missing = sum(totals.missing for totals in slices)
        shown = [gap for totals in slices for gap in totals.gaps][:SHOWN_GAPS]
        ranges = ", ".join(_gap(gap, name_input) for gap in shown)
        more = f" and {counted(gaps - len(shown), 'more gap')}" if gaps > len(shown) else ""
        yield f"{counted(missing, 'sequence number')} never arrived: {ranges}{more}"


def _gap(gap: Gap, name_input: bool) -> str:
    return f"{gap.first} to {gap.last} of partition {gap.partition}{of_input(gap.input if name_input else None)}"


def _tolerance_warnings(slices: Collection[SliceTotals], pipeline: Pipeline, name_input: bool) -> Iterator[str]:
    for compiled in pipeline.query.inputs:
        totals = [
            read.totals for slice_totals in slices for read in slice_totals.inputs if read.alias == compiled.alias
        ]
        yield from _tolerance_warnings_of_input(
            totals, pipeline.section(compiled.alias), compiled.alias if name_input else None
        )


def _tolerance_warnings_of_input(slices: Sequence[Totals], section: Input, alias: str | None) -> Iterator[str]:
    by_blob = section.arrival_time is ArrivalTime.BLOB_LAST_MODIFIED
    totals = metrics.combine(slice_totals.values for slice_totals in slices)
    events, late, disordered = (totals[name] for name in ("InputEvents", "LateInputEvents", "DroppedOrAdjustedEvents"))
    if events and late > events / 2:
        yield (
            f"{late / events:.1%} of the events{of_input(alias)} were late: raise eventsLateArrivalMaxDelayInSeconds "
            f"to at least what the devices need{f' plus the {section.interval_name}' if by_blob else ''}; recapture "
            "advise shows which value keeps how many events on time"
        )
    if events and disordered > events / 10:
        pushers = [slice_totals.furthest_ahead for slice_totals in slices if slice_totals.furthest_ahead]
        ahead = max(pushers, key=lambda pusher: pusher.seconds, default=None)
        pushed = "earlier events" if ahead else "events before this range"
        remedy = (
            "recapture advise shows which out-of-order tolerance, or which key after OVER, would keep their times"
            if ahead and ahead.seconds <= 0
            else "if a clock is ahead, TIMESTAMP BY … OVER the key of the devices confines its effect to its own device"
        )
        yield (
            f"{disordered / events:.1%} of the events{of_input(alias)} were out of order: {pushed} pushed the "
            f"watermark past them{f' {_furthest_ahead(ahead)}' if ahead else ''}; {remedy}"
        )


def _furthest_ahead(event: EventAhead) -> str:
    number = event.place if event.sequence_number is None else event.sequence_number
    side = "after" if event.seconds > 0 else "before"
    place = f"event {number} of {event.blob}"
    return f"(furthest ahead: {place}, whose time is {duration(abs(event.seconds))} {side} its arrival)"
