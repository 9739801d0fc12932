"""Summarise a plan: what a backfill would read, what is missing from it, and what is published."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from recapture.archive.hole_sentences import sentence
from recapture.archive.holes import MAX_HOLES, Hole
from recapture.archive.manifest import Manifest
from recapture.archive.pinning import PlannedInput
from recapture.archive.progress import PartitionProgress, far_blobs
from recapture.archive.references import ALWAYS
from recapture.definition.pipeline import Pipeline
from recapture.execute.engine import available_cores
from recapture.execute.memory import memory_warnings
from recapture.process.wording import counted, values_of_only
from recapture.run.holes import holes_of_plan
from recapture.run.progress import capture_warnings
from recapture.run.slice_state import Standing, State
from recapture.run.undocumented import undocumented
from recapture.time_model import ticks
from recapture.time_model.slices import Slice

STORED_BYTES = 200
"""Bytes that an event may take in a blob: few, so that its number is rather too large."""


def plan_summary(
    pipeline: Pipeline, manifest: Manifest, progress: Mapping[str, Iterable[PartitionProgress]], standing: Standing
) -> dict[str, Any]:
    """Return what a backfill of a manifest would read, slice by slice, and how complete that is, in JSON types.

    `progress` says how far the archives reach, and `standing` what is published. If there is one input, its values are
    also at the top level. The warnings are those of the plan, without the pipeline's own.
    """
    compiled = {read.alias: read for read in pipeline.query.inputs}
    inputs = [
        {
            "alias": planned.alias,
            "partitions": list(planned.partitions),
            "blobs": len(planned.blobs),
            "bytes": planned.size,
            "capture": [partition.to_dict() for partition in progress[planned.alias]],
            "silent_partitions": list(planned.silent),
            "far_blobs": far_blobs(planned),
            "aggregated_in_tasks": bool(compiled[planned.alias].aggregations),
            "not_aggregated_because": compiled[planned.alias].not_aggregated_because,
            "index": list(pipeline.section(planned.alias).index or ()),
        }
        for planned in manifest.inputs
    ]
    starts = [ticks.to_text(run_slice.slice.start) for run_slice in manifest.slices]
    read_by_slice = zip(starts, *map(_slices_of_input, manifest.inputs), strict=True)
    slices = [_slice_summary(start, read_in_slice, standing) for start, *read_in_slice in read_by_slice]
    holes = holes_of_plan(pipeline, manifest)
    return {
        "run": manifest.run,
        "pipeline": pipeline.name,
        "slices": slices,
        "blobs": manifest.blob_count,
        "bytes": manifest.size,
        "complete": not any(input_summary["incomplete"] for slice_ in slices for input_summary in slice_["inputs"]),
        "inputs": inputs,
        "references": [
            {
                "alias": reference.alias,
                "bytes": reference.size,
                "versions": [
                    {
                        "name": version.blob.name,
                        "valid_from": None if version.valid_from == ALWAYS else ticks.to_text(version.valid_from),
                    }
                    for version in reference.versions
                ],
            }
            for reference in manifest.references
        ],
        **values_of_only(inputs, "partitions", "capture", "silent_partitions", "far_blobs"),
        "warnings": [
            *capture_warnings(pipeline, manifest),
            *_hole_warnings(holes, len(manifest.inputs) > 1),
            *undocumented(pipeline.query),
            *memory_warnings(pipeline.query, _events_by_slice(pipeline, manifest), available_cores()),
        ],
    }


def _events_by_slice(pipeline: Pipeline, manifest: Manifest) -> dict[Slice, int]:
    """Return about how many events of each slice are held in memory: tasks aggregate those of some inputs."""
    aggregated = {read.alias for read in pipeline.query.inputs if read.aggregations}
    held = [[*planned.blobs_by_slice()] for planned in manifest.inputs if planned.alias not in aggregated]
    return {
        run_slice.slice: sum(pinned.blob.size for slice_blobs in held for pinned in slice_blobs[number]) // STORED_BYTES
        for number, run_slice in enumerate(manifest.slices)
    }


def _slices_of_input(planned: PlannedInput) -> Iterator[dict[str, Any]]:
    for planned_slice, blobs in zip(planned.slices, planned.blobs_by_slice(), strict=True):
        yield {
            "alias": planned.alias,
            "blobs": len(blobs),
            "bytes": sum(pinned.blob.size for pinned in blobs),
            "incomplete": list(planned_slice.incomplete_partitions),
        }


def _hole_warnings(holes: Sequence[Hole], name_input: bool) -> Iterator[str]:
    """Yield a line for each hole, and one that says what a run makes of them."""
    for hole in holes[:MAX_HOLES]:
        yield sentence(hole, name_input=name_input)
    if len(holes) > MAX_HOLES:
        yield f"and {counted(len(holes) - MAX_HOLES, 'more hole')} in the archive"
    if any(hole.severity == "critical" for hole in holes):
        yield (
            "a run compares the sequence numbers on both sides of missing blobs: if they do not continue, the audit "
            "may stop the run"
        )


def _slice_summary(start: str, inputs: list[dict[str, Any]], standing: Standing) -> dict[str, Any]:
    is_complete = not any(input_summary["incomplete"] for input_summary in inputs)
    return {
        "slice_start": start,
        "state": standing.state(start) or (State.MISSING if is_complete else State.INCOMPLETE),
        "differing": list(standing.outdated.get(start, ())),
        "blobs": sum(input_summary["blobs"] for input_summary in inputs),
        "bytes": sum(input_summary["bytes"] for input_summary in inputs),
        "inputs": inputs,
        **values_of_only(inputs, "incomplete"),
    }
