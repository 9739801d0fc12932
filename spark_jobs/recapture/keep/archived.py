"""What the archive has for slices now, and how that differs from what published slices read."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from recapture.archive import pinning
from recapture.archive.definitions import InputDefinition, RunDefinition, version_of
from recapture.archive.manifest import Manifest, read_digest
from recapture.archive.pinning import PinnedBlob
from recapture.archive.progress import partition_progress
from recapture.archive.references import PlannedReference, versions
from recapture.keep.due import Difference
from recapture.storage import Container
from recapture.time_model import ticks
from recapture.time_model.slices import Slice, arrivals_of

MOST_AT_ONCE = 744
"""Number of slices whose blobs are listed and held in memory at the same time."""


@dataclass(frozen=True)
class ArchivedSlice:
    """What the archive has for a slice."""

    slice: Slice
    inputs: Mapping[str, Sequence[PinnedBlob]]
    """Blobs that a run of the slice reads, by the alias of the input."""
    references: Sequence[PlannedReference]
    read: str
    """Digest of all of these (`archive.manifest.read_digest`)."""
    waits_for: tuple[str, ...]
    """Reasons why more may still be written, a line each."""

    @property
    def size(self) -> int:
        """Size of the blobs of the inputs, in bytes."""
        return sum(pinned.blob.size for blobs in self.inputs.values() for pinned in blobs)

    def difference_from(self, manifest: Manifest | None, noticed: int) -> Difference | None:
        """Return how the blobs differ from those that a run read; None if they do not.

        `manifest` is that of the run, None if it cannot be read. `noticed` is the time at which it was noticed that
        blobs are gone, in ticks.
        """
        planned = None if manifest is None else dict(_blobs_read(manifest, self.slice))
        now = {alias: {pinned.blob.name: pinned for pinned in blobs} for alias, blobs in self.inputs.items()}
        if manifest is None or planned is None:
            written = [_written(pinned) for blobs in now.values() for pinned in blobs.values()]
            return Difference(last_change=max(written, default=noticed))
        then = {alias: {pinned.blob.name: pinned for pinned in blobs} for alias, blobs in planned.items()}
        added, modified, deleted = [], [], 0
        for alias in then.keys() | now.keys():
            before, after = then.get(alias, {}), now.get(alias, {})
            added += [after[name] for name in after.keys() - before.keys()]
            deleted += len(before.keys() - after.keys())
            common = before.keys() & after.keys()
            modified += [
                after[name] for name in common if version_of(before[name].blob) != version_of(after[name].blob)
            ]
        changed = [reference for reference in self.references if self._differs(reference, manifest)]
        if not (added or modified or deleted or changed):
            return None
        changes = [_written(pinned) for pinned in (*added, *modified)]
        changes += [ticks.from_datetime(r.needed(self.slice, self.slice)[-1].blob.last_modified) for r in changed]
        changes += [noticed] if deleted else []
        aliases = tuple(reference.alias for reference in changed)
        return Difference(len(added), len(modified), deleted, aliases, max(changes))

    def _differs(self, reference: PlannedReference, manifest: Manifest) -> bool:
        then = next((other for other in manifest.references if other.alias == reference.alias), None)
        return then is None or then.digest_content(self.slice) != reference.digest_content(self.slice)


def archived_slices(
    definition: RunDefinition, containers: Mapping[str, Container], slices: Iterable[Slice], now: datetime
) -> Iterator[ArchivedSlice]:
    """Yield what the archive has for each of these slices, which are in order of time.

    The containers are given by alias. Raise RunError if reference data has no version.
    """
    ordered = list(slices)
    if not ordered:
        return
    look_back = max(input_definition.look_back for input_definition in definition.inputs)
    references = [
        PlannedReference(
            reference.alias,
            containers[reference.alias].url,
            look_back,
            tuple(versions(reference.alias, reference.names, containers[reference.alias])),
        )
        for reference in sorted(definition.references, key=lambda reference: reference.alias)
    ]
    for chunk in _chunks(ordered):
        listed = [
            _listed(input_definition, containers[input_definition.alias], chunk, now, len(definition.inputs) > 1)
            for input_definition in definition.inputs
        ]
        aliases = [input_definition.alias for input_definition in definition.inputs]
        for slice_, *inputs in zip(chunk, *listed, strict=True):
            blobs = dict(zip(aliases, (pinned for pinned, _ in inputs), strict=True))
            digests = {alias: pinning.digest_of_blobs(pinned) for alias, pinned in blobs.items()}
            waits_for = tuple(itertools.chain.from_iterable(reasons for _, reasons in inputs))
            yield ArchivedSlice(slice_, blobs, references, read_digest(digests, references, slice_), waits_for)


def _chunks(slices: Sequence[Slice]) -> Iterator[list[Slice]]:
    """Yield contiguous slices, at most MOST_AT_ONCE at a time."""
    chunk: list[Slice] = []
    for slice_ in slices:
        if chunk and (chunk[-1].end != slice_.start or len(chunk) == MOST_AT_ONCE):
            yield chunk
            chunk = []
        chunk.append(slice_)
    yield chunk


def _listed(
    definition: InputDefinition, container: Container, slices: Sequence[Slice], now: datetime, name_input: bool
) -> list[tuple[list[PinnedBlob], tuple[str, ...]]]:
    """Return what the archive has of an input for each slice: its blobs, and reasons why more may be written."""
    needed = [arrivals_of(slice_, definition.policies, definition.look_back) for slice_ in slices]
    listing, partitions = pinning.survey(definition, container, needed, now)
    blobs = pinning.blobs_for(pinning.in_order(listing.blobs, definition), needed)

    def reasons(slice_: Slice) -> tuple[str, ...]:
        if not partitions:
            return (f"the first blob of input {definition.alias} under {definition.names.prefix}",)
        waiting = (
            name for name in partitions if not pinning.is_complete(definition, slice_, listing.newest.get(name), now)
        )
        empty_blobs = definition.empty_blobs
        return tuple(
            str(partition_progress(definition, name, listing.newest.get(name), empty_blobs, now, name_input))
            for name in waiting
        )

    return [(pinned, reasons(slice_)) for slice_, pinned in zip(slices, blobs, strict=True)]


def _blobs_read(manifest: Manifest, slice_: Slice) -> Iterator[tuple[str, list[PinnedBlob]]]:
    """Yield the blobs that a run read for one of its slices, by the alias of the input."""
    for planned in manifest.inputs:
        for planned_slice, blobs in zip(planned.slices, planned.blobs_by_slice(), strict=True):
            if planned_slice.slice == slice_:
                yield planned.alias, blobs


def _written(pinned: PinnedBlob) -> int:
    return ticks.from_datetime(pinned.blob.last_modified)
