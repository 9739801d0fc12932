"""What the archive has for slices now, and how that differs from what published slices read."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from recapture.archive import pinning
from recapture.archive.definitions import InputDefinition, RunDefinition, version_of
from recapture.archive.manifest import Manifest, slice_read
from recapture.archive.pinning import PinnedBlob
from recapture.archive.progress import partition_progress
from recapture.archive.references import PlannedReference, versions
from recapture.keep.due import Difference
from recapture.storage import Archive
from recapture.time_model import ticks
from recapture.time_model.slices import Arrivals, Slice, arrivals_of

MOST_AT_ONCE = 744
"""Number of slices whose blobs are listed and held in memory at the same time."""


Blobs = Mapping[str, Sequence[PinnedBlob]]
"""Blobs by the alias of their input."""


@dataclass(frozen=True)
class ArchivedSlice:
    """What the archive has for a slice."""

    slice: Slice
    read: str
    """What a run of the slice reads, as `archive.manifest.slice_read`."""
    size: int
    """Size of the blobs that it reads from the inputs, in bytes."""
    waits_for: tuple[str, ...]
    """Reasons why more may still be written, a line each."""
    before: Blobs
    """Blobs with the arrivals that the published slice read, which another definition may have chosen."""
    read_before: str
    """What a run with these arrivals reads, as `archive.manifest.slice_read`."""
    references: Sequence[PlannedReference]

    def difference_from(
        self, manifest: Manifest | None, noticed: int, *, same_definition: bool = True
    ) -> Difference | None:
        """Return how the blobs differ from those that a run read; None if they do not.

        `manifest` is that of the run, None if it cannot be read. `noticed` is the time at which it was noticed that
        blobs are gone, in ticks. Reference data is compared only if the run had the `same_definition`.
        """
        now = {alias: {pinned.blob.name: pinned for pinned in blobs} for alias, blobs in self.before.items()}
        if manifest is None:
            written = [_written(pinned) for blobs in now.values() for pinned in blobs.values()]
            return Difference(last_change=max(written, default=noticed))
        then = {
            alias: {pinned.blob.name: pinned for pinned in blobs} for alias, blobs in _blobs_read(manifest, self.slice)
        }
        added, modified, deleted = [], [], 0
        for alias in then.keys() & now.keys():
            before, after = then[alias], now[alias]
            added += [after[name] for name in after.keys() - before.keys()]
            deleted += len(before.keys() - after.keys())
            common = before.keys() & after.keys()
            modified += [
                after[name] for name in common if version_of(before[name].blob) != version_of(after[name].blob)
            ]
        references = self.references if same_definition else ()
        changed = [reference for reference in references if self._differs(reference, manifest)]
        if not (added or modified or deleted or changed):
            return None
        changes = [_written(pinned) for pinned in (*added, *modified)]
        in_force = [reference.needed(self.slice, self.slice) for reference in changed]
        changes += [ticks.from_datetime(versions[-1].blob.last_modified) for versions in in_force if versions]
        changes += [noticed] if deleted or not all(in_force) else []
        aliases = tuple(reference.alias for reference in changed)
        return Difference(len(added), len(modified), deleted, aliases, max(changes))

    def _differs(self, reference: PlannedReference, manifest: Manifest) -> bool:
        then = next((other for other in manifest.references if other.alias == reference.alias), None)
        return then is None or then.digest_content(self.slice) != reference.digest_content(self.slice)


def archived_slices(
    definition: RunDefinition,
    containers: Mapping[str, Archive],
    slices: Iterable[Slice],
    now: datetime,
    read: Callable[[Slice], Mapping[str, Arrivals]] = lambda slice_: {},
    references: Sequence[PlannedReference] | None = None,
) -> Iterator[ArchivedSlice]:
    """Yield what the archive has for each of these slices, which are in order of time.

    The containers are given by alias. `read` returns the arrivals that a published slice read of an input, by alias.
    `references` are `all_references`, which are listed unless they are given.
    """
    ordered = list(slices)
    if not ordered:
        return
    references = all_references(definition, containers) if references is None else references
    for chunk in _chunks(ordered):
        arrivals_before = list(map(read, chunk))
        listed = [
            _listed(
                input_definition,
                containers[input_definition.alias],
                chunk,
                [arrivals.get(input_definition.alias) for arrivals in arrivals_before],
                now,
                name_input=len(definition.inputs) > 1,
            )
            for input_definition in definition.inputs
        ]
        for slice_, *inputs in zip(chunk, *listed, strict=True):
            read_now = _read(inputs, references, slice_, lambda read: read.now)
            is_same = all(read.before is read.now for read in inputs)
            yield ArchivedSlice(
                slice_,
                read_now,
                sum(pinned.blob.size for read in inputs for pinned in read.now.blobs),
                tuple(itertools.chain.from_iterable(read.waits_for for read in inputs)),
                {read.alias: read.before.blobs for read in inputs},
                read_now if is_same else _read(inputs, references, slice_, lambda read: read.before),
                references,
            )


def all_references(definition: RunDefinition, containers: Mapping[str, Archive]) -> list[PlannedReference]:
    """Return all versions of the reference data of a definition, by alias. Raise RunError if one has no version."""
    look_back = max(input_definition.look_back for input_definition in definition.inputs)
    return [
        PlannedReference(
            reference.alias,
            containers[reference.alias].url,
            look_back,
            tuple(versions(reference.alias, reference.names, containers[reference.alias])),
        )
        for reference in sorted(definition.references, key=lambda reference: reference.alias)
    ]


@dataclass(frozen=True)
class _Blobs:
    """Blobs of an input that may hold some arrivals."""

    arrivals: Arrivals
    blobs: Sequence[PinnedBlob]

    @cached_property
    def digest(self) -> str:
        return pinning.digest_of_blobs(self.blobs)


@dataclass(frozen=True)
class _InputOfSlice:
    """What the archive has of an input for a slice."""

    alias: str
    now: _Blobs
    """Blobs that a run of the slice reads."""
    before: _Blobs
    """Blobs with the arrivals that the published slice read."""
    waits_for: tuple[str, ...]


def _read(
    inputs: Iterable[_InputOfSlice],
    references: Iterable[PlannedReference],
    slice_: Slice,
    blobs_of: Callable[[_InputOfSlice], _Blobs],
) -> str:
    blobs = {read.alias: blobs_of(read) for read in inputs}
    arrivals = {alias: read.arrivals for alias, read in blobs.items()}
    return slice_read(arrivals, {alias: read.digest for alias, read in blobs.items()}, references, slice_)


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
    definition: InputDefinition,
    container: Archive,
    slices: Sequence[Slice],
    arrivals_before: Sequence[Arrivals | None],
    now: datetime,
    *,
    name_input: bool,
) -> list[_InputOfSlice]:
    """Return what the archive has of an input for each slice."""
    needed = [arrivals_of(slice_, definition.policies, definition.look_back) for slice_ in slices]
    before = [
        arrivals if earlier is None or _same(earlier, arrivals) else earlier
        for arrivals, earlier in zip(needed, arrivals_before, strict=True)
    ]
    listing, partitions = pinning.survey(definition, container, [*needed, *before], now)
    pinned = pinning.in_order(listing.blobs, definition)
    read_now = [_Blobs(*item) for item in zip(needed, pinning.blobs_for(pinned, needed), strict=True)]
    read_before = (
        read if arrivals is read.arrivals else _Blobs(arrivals, next(iter(pinning.blobs_for(pinned, [arrivals]))))
        for read, arrivals in zip(read_now, before, strict=True)
    )

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

    return [
        _InputOfSlice(definition.alias, now_, before_, reasons(slice_))
        for slice_, now_, before_ in zip(slices, read_now, read_before, strict=True)
    ]


def _same(left: Arrivals, right: Arrivals) -> bool:
    return (left.first, left.last) == (right.first, right.last)


def _blobs_read(manifest: Manifest, slice_: Slice) -> Iterator[tuple[str, list[PinnedBlob]]]:
    """Yield the blobs that a run read for one of its slices, by the alias of the input."""
    for planned in manifest.inputs:
        arrivals = [planned_slice.arrivals for planned_slice in planned.slices if planned_slice.slice == slice_]
        for blobs in pinning.blobs_for(planned.blobs, arrivals):
            yield planned.alias, blobs


def _written(pinned: PinnedBlob) -> int:
    return ticks.from_datetime(pinned.blob.last_modified)
