"""How far the archives reach, and whether they hold all that a range needs."""

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from recapture.archive import pinning
from recapture.archive.definitions import InputDefinition
from recapture.archive.manifest import Manifest
from recapture.archive.pinning import PlannedInput
from recapture.archive.progress import PartitionProgress, far_blobs, partition_progress, warnings
from recapture.archive.references import ALWAYS
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.formats.sections import Input
from recapture.run.planned import planned_inputs
from recapture.run.slices import slices_of
from recapture.storage import open_container
from recapture.time_model import ticks
from recapture.time_model.slices import Arrivals, Slice
from recapture.wording import values_of_only


@dataclass(frozen=True)
class Completeness:
    """How far the archives reach, and what a range still waits for."""

    partitions: tuple[PartitionProgress, ...]
    """Progress of each partition of the inputs."""
    waiting: tuple[str, ...]
    """Reasons to wait, a line each; empty when every slice is complete (docs/time-model.md, section 3)."""
    not_before: datetime
    """Time before which the range cannot be complete, unless a blob's time is ahead of the clock."""


def completeness(
    pipeline: Pipeline, start: datetime, end: datetime, now: datetime, environment: Mapping[str, str] = os.environ
) -> Completeness:
    """Return how far the archives reach and what a range waits for. Only blobs from the last slice on are listed.

    The containers are opened with the credentials of `environment`.
    """
    last = slices_of(pipeline, start, end)[-1]
    inputs = run_definition(pipeline).inputs
    of_inputs = [
        _completeness_of_input(definition, pipeline.section(definition.alias), last, now, environment, len(inputs) > 1)
        for definition in inputs
    ]
    return Completeness(
        tuple(partition for of_input in of_inputs for partition in of_input.partitions),
        tuple(reason for of_input in of_inputs for reason in of_input.waiting),
        max(of_input.not_before for of_input in of_inputs),
    )


def first_incomplete(
    pipeline: Pipeline, slices: Sequence[Slice], now: datetime, environment: Mapping[str, str] = os.environ
) -> Slice | None:
    """Return the first of these slices, in order of time, of which more may still be written; None if there is none.

    If a slice is complete, so are those before it. A slice that is complete by the clock needs no listing.
    """
    definitions = run_definition(pipeline).inputs
    open_ = [slice_ for slice_ in slices if not all(_complete_by_clock(of, slice_, now) for of in definitions)]

    def is_waiting(slice_: Slice) -> bool:
        start, end = ticks.to_datetime(slice_.start), ticks.to_datetime(slice_.end)
        return bool(completeness(pipeline, start, end, now, environment).waiting)

    first = bisect_left(open_, True, key=is_waiting)
    return open_[first] if first < len(open_) else None


def _complete_by_clock(definition: InputDefinition, slice_: Slice, now: datetime) -> bool:
    return pinning.is_complete(definition, slice_, None, now)


def _completeness_of_input(
    definition: InputDefinition,
    section: Input,
    last: Slice,
    now: datetime,
    environment: Mapping[str, str],
    name_input: bool,
) -> Completeness:
    definition = replace(definition, search_hours=0)
    needed = Arrivals(last.start, definition.last_needed(last))
    container = open_container(section.container, environment)
    listing, partitions = pinning.survey(definition, container, [needed], now)
    slice_start, not_before = ticks.to_text(last.start), ticks.to_datetime(definition.last_needed(last))
    if not partitions:
        reason = f"no blob of input {definition.alias} under {definition.names.prefix} for slice {slice_start} yet"
        return Completeness((), (reason,), not_before)
    progresses = tuple(
        partition_progress(definition, name, listing.newest.get(name), section.empty_blobs, now, name_input)
        for name in partitions
    )
    waiting = tuple(
        f"{partition}; slice {slice_start} needs more"
        for partition in progresses
        if not pinning.is_complete(definition, last, listing.newest.get(partition.partition), now)
    )
    return Completeness(progresses, waiting, not_before)


def capture_progress(pipeline: Pipeline, manifest: Manifest, now: datetime) -> dict[str, list[PartitionProgress]]:
    """Return how far the archive reaches in each partition of a plan, by the alias of the input."""
    definitions = {definition.alias: definition for definition in run_definition(pipeline).inputs}
    return {
        planned.alias: _progress_of_input(definitions[planned.alias], section, planned, now, len(manifest.inputs) > 1)
        for section, planned in planned_inputs(pipeline, manifest)
    }


def _progress_of_input(
    definition: InputDefinition, section: Input, planned: PlannedInput, now: datetime, name_input: bool
) -> list[PartitionProgress]:
    newest_blobs = {newest.partition: newest for newest in planned.newest}
    return [
        partition_progress(definition, name, newest_blobs.get(name), section.empty_blobs, now, name_input)
        for name in planned.partitions
    ]


def capture_warnings(pipeline: Pipeline, manifest: Manifest) -> Iterator[str]:
    """Yield the warnings about the inputs of a plan."""
    for section, planned in planned_inputs(pipeline, manifest):
        yield from warnings(planned, section.empty_blobs, name_input=len(manifest.inputs) > 1)


def plan_summary(
    pipeline: Pipeline, manifest: Manifest, progress: Mapping[str, Iterable[PartitionProgress]]
) -> dict[str, Any]:
    """Return what a backfill of a manifest would read, slice by slice, and how complete that is, in JSON types.

    `progress` says how far the archives reach. If there is one input, its values are also at the top level. The
    warnings are those of the plan, without the pipeline's own.
    """
    compiled = {of_input.alias: of_input for of_input in pipeline.query.inputs}
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
        }
        for planned in manifest.inputs
    ]
    slices = list(map(_slice_summary, zip(*(_slices_of_input(planned) for planned in manifest.inputs), strict=True)))
    return {
        "run": manifest.run,
        "pipeline": pipeline.name,
        "slices": slices,
        "blobs": manifest.blob_count,
        "bytes": manifest.size,
        "complete": not any(of_input["incomplete"] for slice_ in slices for of_input in slice_["inputs"]),
        "inputs": inputs,
        "needs_spark": pipeline.query.needs_spark,
        "outputs": [
            {"alias": output.alias, "needs_spark_because": pipeline.compiled(output).needs_spark_because}
            for output in pipeline.outputs
        ],
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
        "warnings": list(capture_warnings(pipeline, manifest)),
    }


def _slices_of_input(planned: PlannedInput) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the start of each slice, and what it reads of an input."""
    for planned_slice, blobs in zip(planned.slices, planned.blobs_by_slice(), strict=True):
        yield (
            ticks.to_text(planned_slice.slice.start),
            {
                "alias": planned.alias,
                "blobs": len(blobs),
                "bytes": sum(pinned.blob.size for pinned in blobs),
                "incomplete": list(planned_slice.incomplete_partitions),
            },
        )


def _slice_summary(of_inputs: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    inputs = [of_input for _, of_input in of_inputs]
    return {
        "slice_start": of_inputs[0][0],
        "blobs": sum(of_input["blobs"] for of_input in inputs),
        "bytes": sum(of_input["bytes"] for of_input in inputs),
        "inputs": inputs,
        **values_of_only(inputs, "incomplete"),
    }
