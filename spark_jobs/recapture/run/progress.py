"""How far the archives reach, and whether they hold all that a range needs."""

import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recapture.archive import pinning
from recapture.archive.definitions import InputDefinition
from recapture.archive.manifest import Manifest
from recapture.archive.progress import PartitionProgress, partition_progress, warnings
from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.formats.sections import Input
from recapture.run.slices import slices_of
from recapture.run_files.planned import planned_inputs
from recapture.storage import open_container
from recapture.time_model import ticks
from recapture.time_model.slices import Arrivals, Slice


@dataclass(frozen=True)
class Completeness:
    """How far the archives reach, and what a range still waits for."""

    partitions: tuple[PartitionProgress, ...]
    waiting: tuple[str, ...]
    """Reasons to wait, a line each; empty when every slice is complete (docs/time-model.md, section 3)."""


def storage_time(pipeline: Pipeline, now: datetime, environment: Mapping[str, str] = os.environ) -> datetime:
    """Return the earliest of `now`, this machine's time, and the times of the storages that hold the inputs.

    A machine whose clock is ahead must not prove that Capture has written an hour.
    """
    urls = {section.container for section in pipeline.inputs}
    return min(now, *(open_container(url, environment).clock() for url in urls))


def completeness(
    pipeline: Pipeline, start: datetime, end: datetime, now: datetime, environment: Mapping[str, str] = os.environ
) -> Completeness:
    """Return how far the archives reach and what a range waits for. Only blobs from the last slice on are listed."""
    last = slices_of(pipeline, start, end)[-1]
    inputs, now = run_definition(pipeline).inputs, storage_time(pipeline, now, environment)
    input_progress = [
        _completeness_of_input(definition, pipeline.section(definition.alias), last, now, environment, len(inputs) > 1)
        for definition in inputs
    ]
    return Completeness(
        tuple(partition for read in input_progress for partition in read.partitions),
        tuple(reason for read in input_progress for reason in read.waiting),
    )


def first_incomplete(
    pipeline: Pipeline, slices: Sequence[Slice], now: datetime, environment: Mapping[str, str] = os.environ
) -> Slice | None:
    """Return the first of these slices, in order of time, of which more may still be written; None if there is none.

    If a slice is complete, so are those before it. A slice that is complete by the clock needs no listing.
    """
    definitions, now = run_definition(pipeline).inputs, storage_time(pipeline, now, environment)
    open_ = [slice_ for slice_ in slices if not all(pinning.is_complete(of, slice_, None, now) for of in definitions)]

    def is_waiting(slice_: Slice) -> bool:
        start, end = ticks.to_datetime(slice_.start), ticks.to_datetime(slice_.end)
        return bool(completeness(pipeline, start, end, now, environment).waiting)

    first = bisect_left(open_, True, key=is_waiting)
    return open_[first] if first < len(open_) else None


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
    slice_start = ticks.to_text(last.start)
    if not partitions:
        reason = f"no blob of input {definition.alias} under {definition.names.prefix} for slice {slice_start} yet"
        return Completeness((), (reason,))
    progresses = tuple(
        partition_progress(definition, name, listing.newest.get(name), section.empty_blobs, now, name_input)
        for name in partitions
    )
    waiting = tuple(
        f"{partition}; slice {slice_start} needs more"
        for partition in progresses
        if not pinning.is_complete(definition, last, listing.newest.get(partition.partition), now)
    )
    return Completeness(progresses, waiting)


def capture_progress(pipeline: Pipeline, manifest: Manifest, now: datetime) -> dict[str, list[PartitionProgress]]:
    """Return how far the archive reaches in each partition of a plan, by the alias of the input."""
    definitions = {definition.alias: definition for definition in run_definition(pipeline).inputs}
    name_input, progress = len(manifest.inputs) > 1, {}
    for section, planned in planned_inputs(pipeline, manifest):
        definition, newest = definitions[planned.alias], {blob.partition: blob for blob in planned.newest}
        progress[planned.alias] = [
            partition_progress(definition, name, newest.get(name), section.empty_blobs, now, name_input)
            for name in planned.partitions
        ]
    return progress


def capture_warnings(pipeline: Pipeline, manifest: Manifest) -> Iterator[str]:
    """Yield the warnings about the inputs of a plan."""
    for section, planned in planned_inputs(pipeline, manifest):
        yield from warnings(planned, section.empty_blobs, name_input=len(manifest.inputs) > 1)
