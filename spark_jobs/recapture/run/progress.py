"""How far the archive reaches, and whether it holds all that a range needs."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from recapture.archive import manifest as manifests
from recapture.archive.manifest import Manifest
from recapture.archive.progress import PartitionProgress, far_blobs, partition_progress, warnings
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.run.slices import slices_of
from recapture.storage import open_container
from recapture.time_model import ticks
from recapture.time_model.slices import Arrivals


@dataclass(frozen=True)
class Completeness:
    """How far the archive reaches, and what a range still waits for."""

    partitions: tuple[PartitionProgress, ...]
    """Progress of each partition."""
    waiting: tuple[str, ...]
    """Reasons to wait, a line each; empty when every slice is complete (docs/time-model.md, section 3)."""


def completeness(
    pipeline: Pipeline, start: datetime, end: datetime, now: datetime, environment: Mapping[str, str] = os.environ
) -> Completeness:
    """Return how far the archive reaches and what a range waits for. Only blobs from the last slice on are listed.

    The container is opened with the credentials of `environment`.
    """
    last = slices_of(pipeline, start, end)[-1]
    definition = replace(run_definition(pipeline), search_hours=0)
    needed = Arrivals(last.start, definition.last_needed(last))
    container = open_container(pipeline.input.container, environment)
    listing, partitions = manifests.survey(definition, container, [needed], now)
    if not partitions:
        slice_start = ticks.to_text(last.start)
        return Completeness((), (f"no blob of this input under {definition.names.prefix} for slice {slice_start} yet",))
    progresses = tuple(
        partition_progress(definition, name, listing.newest.get(name), pipeline.input.empty_blobs, now)
        for name in partitions
    )
    waiting = tuple(
        f"{partition}; slice {ticks.to_text(last.start)} needs more"
        for partition in progresses
        if not manifests.is_complete(definition, last, listing.newest.get(partition.partition), now)
    )
    return Completeness(progresses, waiting)


def capture_progress(pipeline: Pipeline, manifest: Manifest, now: datetime) -> list[PartitionProgress]:
    """Return how far the archive reaches in each partition of a plan."""
    definition, newest = run_definition(pipeline), {newest.partition: newest for newest in manifest.newest}
    return [
        partition_progress(definition, name, newest.get(name), pipeline.input.empty_blobs, now)
        for name in manifest.partitions
    ]


def plan_summary(pipeline: Pipeline, manifest: Manifest, progress: Iterable[PartitionProgress]) -> dict[str, Any]:
    """Return what a backfill of a manifest would read, slice by slice, and how complete that is, in JSON types.

    `progress` says how far the archive reaches. The warnings are those of the plan, without the pipeline's own.
    """
    blobs_of_slices = manifests.blobs_for(manifest.blobs, [planned_slice.arrivals for planned_slice in manifest.slices])
    slices = [
        {
            "slice_start": ticks.to_text(planned_slice.slice.start),
            "blobs": len(blobs),
            "bytes": sum(pinned.blob.size for pinned in blobs),
            "incomplete": list(planned_slice.incomplete_partitions),
        }
        for planned_slice, blobs in zip(manifest.slices, blobs_of_slices, strict=True)
    ]
    return {
        "run": manifest.run,
        "pipeline": pipeline.name,
        "partitions": list(manifest.partitions),
        "slices": slices,
        "blobs": len(manifest.blobs),
        "bytes": manifest.size,
        "complete": not any(planned_slice.incomplete_partitions for planned_slice in manifest.slices),
        "capture": [partition.to_dict() for partition in progress],
        "silent_partitions": list(manifest.silent),
        "far_blobs": far_blobs(manifest),
        "warnings": list(warnings(manifest, pipeline.input.empty_blobs)),
    }
