"""Pin the blobs of an input that each slice needs, and no others, and record which partitions are incomplete."""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from recapture.archive.blob_names import BlobNames
from recapture.archive.definitions import MAX_CLOCK_SKEW, InputDefinition, digest_of, version_of
from recapture.archive.listing import (
    FarBlobs,
    ListedBlob,
    Listing,
    NewestBlob,
    UnmatchedNames,
    by_number,
    list_blobs,
    partition_folders,
)
from recapture.archive.pauses import Pause, pauses
from recapture.errors import RunError, SetupError
from recapture.storage import Archive, Blob
from recapture.time_model import ticks
from recapture.time_model.slices import Arrivals, Slice, arrivals_of

_PROBED = 10_000
"""Number of names to check before the input's names are reported as wrong."""


@dataclass(frozen=True, slots=True)
class EnqueuedRange:
    """The range in which the events of a blob were enqueued, judging by its name and the next blob's name; ticks."""

    first: int
    """Time in the blob's name; one interval earlier if names are not exact."""
    last: int
    """The earliest of three times, or the end of the previous blob's range if that is later.

    The three are LastModified, the time in the next blob's name (one interval later if names are not exact), and the
    time in the blob's own name plus `InputDefinition.longest_write_delay`.
    """


@dataclass(frozen=True, slots=True)
class PinnedBlob:
    """A blob of a manifest, in the version that was listed."""

    input: str
    """Alias of the blob's input."""
    partition: str
    blob: Blob
    enqueued: EnqueuedRange | None = None
    """Range in which the blob's events were enqueued; None if all of them arrive at LastModified."""

    @property
    def arrival(self) -> int:
        """Arrival of the blob in ticks: the start of its enqueued range, or LastModified if it has none."""
        return ticks.from_datetime(self.blob.last_modified) if self.enqueued is None else self.enqueued.first


@dataclass(frozen=True, slots=True)
class DisplacedBlobs:
    """Blobs of a partition that belong to a slice by their names, but were written in another one."""

    partition: str
    blobs: int
    start: int
    """Earliest time in their names, in ticks."""
    end: int
    """End of the interval of the latest of these times, in ticks."""
    written: int
    """Earliest LastModified, in ticks."""
    written_until: int
    """Latest LastModified, in ticks."""


@dataclass(frozen=True)
class PlannedSlice:
    """What a slice reads of an input."""

    slice: Slice
    arrivals: Arrivals
    """Arrivals that are read for the slice."""
    digest: str
    """SHA-256 of the blobs that are read for the slice."""
    incomplete_partitions: Annotated[tuple[str, ...], Field(alias="incomplete")]
    """Partitions from which more may still arrive for the slice."""
    displaced: tuple[DisplacedBlobs, ...] = ()
    """Blobs that belong to the slice by their names and arrive in another one, by partition."""


@dataclass(frozen=True)
class PlannedInput:
    """Everything that a run reads of an input."""

    alias: str
    container: str
    slices: tuple[PlannedSlice, ...]
    partitions: tuple[str, ...]
    blobs: tuple[PinnedBlob, ...]
    """Blobs, sorted by partition, arrival and name."""
    newest: tuple[NewestBlob, ...] = ()
    """Newest blob of each partition that had any near the range, at the time of planning."""
    pauses: tuple[Pause, ...] = ()
    """Intervals that must have a blob and have none, if events of them could reach the rows of the run."""
    far: FarBlobs | None = None
    """Blobs that were written far from the time in their names."""
    unmatched: Annotated[UnmatchedNames | None, Field(alias="passed_over")] = None
    """Names in the partition folders that do not belong to the input."""

    @property
    def silent(self) -> tuple[str, ...]:
        """Partitions from which nothing is read."""
        read = {pinned.partition for pinned in self.blobs}
        return tuple(name for name in self.partitions if name not in read)

    @property
    def size(self) -> int:
        """Size of all blobs in bytes."""
        return sum(pinned.blob.size for pinned in self.blobs)

    def blobs_by_slice(self) -> Iterator[list[PinnedBlob]]:
        """Yield the blobs that are read for each slice."""
        return blobs_for(self.blobs, [planned_slice.arrivals for planned_slice in self.slices])


def pin_input(definition: InputDefinition, container: Archive, slices: Iterable[Slice], now: datetime) -> PlannedInput:
    """List the container, and return what these slices read of an input.

    Blobs whose names do not belong to the input are not read. Raise RunError if there are no partitions; other errors
    are those of `survey`.
    """
    needs = [(slice_, arrivals_of(slice_, definition.policies, definition.look_back)) for slice_ in slices]
    listing, partitions = survey(definition, container, [arrivals for _, arrivals in needs], now)
    if not partitions:
        raise no_partitions(definition.names, container)
    ordered = in_order(listing.blobs, definition)
    planned_slices = []
    displaced = _displaced(definition, listing)
    pinned_names: set[str] = set()
    reads = blobs_for(ordered, [arrivals for _, arrivals in needs])
    for (slice_, arrivals), blobs in zip(needs, reads, strict=True):
        pinned_names.update(pinned.blob.name for pinned in blobs)
        incomplete_partitions = tuple(
            name for name in partitions if not is_complete(definition, slice_, listing.newest.get(name), now)
        )
        digest = digest_of_blobs(blobs)
        planned_slices.append(PlannedSlice(slice_, arrivals, digest, incomplete_partitions, tuple(displaced(slice_))))
    first, last = definition.first_needed(needs[0][0]), definition.last_needed(needs[-1][0])
    return PlannedInput(
        alias=definition.alias,
        container=container.url,
        slices=tuple(planned_slices),
        partitions=partitions,
        blobs=tuple(pinned for pinned in ordered if pinned.blob.name in pinned_names),
        newest=tuple(listing.newest[name] for name in partitions if name in listing.newest),
        pauses=tuple(pauses(definition, partitions, listing.name_times, first, last)),
        far=listing.far,
        unmatched=listing.unmatched,
    )


def _displaced(definition: InputDefinition, listing: Listing) -> Callable[[Slice], Iterator[DisplacedBlobs]]:
    """Return the function that yields the displaced blobs of a slice, by partition."""
    if definition.by_enqueued_time or not definition.names.on_schedule:
        return lambda slice_: iter(())
    expected = sorted(
        ((definition.last_arrival(blob.name_time + definition.interval), blob) for blob in listing.displaced),
        key=lambda item: item[0],
    )
    times = [time for time, _ in expected]

    def displaced_in(slice_: Slice) -> Iterator[DisplacedBlobs]:
        own = expected[bisect_right(times, slice_.start) : bisect_right(times, slice_.end)]
        elsewhere = [blob for _, blob in own if not slice_.start < blob.written <= slice_.end]
        for partition, group in itertools.groupby(
            sorted(elsewhere, key=lambda blob: by_number(blob.partition)), lambda blob: blob.partition
        ):
            blobs = list(group)
            names, written = [blob.name_time for blob in blobs], [blob.written for blob in blobs]
            end = max(names) + definition.interval
            yield DisplacedBlobs(partition, len(blobs), min(names), end, min(written), max(written))

    return displaced_in


def no_partitions(names: BlobNames, container: Archive) -> RunError:
    """Return the error for a survey without partitions. Without folders, only blobs near the range reveal them."""
    message = f"no blob of this input under {container.url}/{names.prefix}"
    advice = "check input.container, input.path and the other names in the input section"
    if names.partitioned and names.folder_of_partitions() is None:
        return RunError(f"{message} is near this range: choose another range, or {advice}")
    return RunError(f"{message}: {advice}")


def survey(
    definition: InputDefinition, container: Archive, needed: Sequence[Arrivals], now: datetime
) -> tuple[Listing, tuple[str, ...]]:
    """Return what the container lists for these arrivals, and the sorted partitions, silent ones included.

    There are no partitions if the input has no blob at all. If names have a partition but no partition folder,
    there are none either if no blob is near these arrivals. Raise SetupError if there are partition folders but their
    blobs do not have the input's names, or if there are too many of these folders.
    """
    with_folder, too_large = partition_folders(definition.names, container)
    configured = {str(number) for number in range(definition.partitions or 0)}
    listing = list_blobs(definition.names, container, definition.search_for(needed), with_folder | configured, now)
    for folder in too_large:
        listing.count_unmatched(folder)
    if with_folder and not listing.newest:
        _require_matching_name(definition.names, container)
    present = with_folder | set(listing.newest)
    promised = _below(present, definition.names.most_partitions) if definition.has_blob_in_each_interval else set()
    return listing, tuple(sorted(present | configured | promised, key=by_number)) if present else ()


def _below(partitions: Iterable[str], most: int) -> set[str]:
    """Return the partitions below the highest one: a hub numbers its partitions from 0, and leaves none out.

    Numbers that no hub has, from `most` on, say nothing.
    """
    numbers = (int(partition) for partition in partitions if partition.isdecimal())
    return {str(number) for number in range(max((number for number in numbers if number < most), default=0))}


def _require_matching_name(names: BlobNames, container: Archive) -> None:
    """Raise SetupError if there are blobs under the prefix, but none of the first _PROBED belongs to the input."""
    probed = [blob.name for blob in itertools.islice(container.list(names.prefix), _PROBED)]
    if probed and not any(names.parse(name) for name in probed):
        raise SetupError(
            f"none of the first {len(probed):,} blob names under {container.url}/{names.prefix} belongs to this input, "
            f"for example {probed[0]}: check input.path and the other names in the input section"
        )


def in_order(blobs: Iterable[ListedBlob], definition: InputDefinition) -> list[PinnedBlob]:
    """Return the blobs, sorted by partition, arrival and name.

    With LastModified, the time in a blob's name says nothing about its arrival. With enqueued times, the order is that
    of the blobs' ranges, no matter when the blobs were copied.
    """
    if definition.by_enqueued_time:
        ordered = list(_with_enqueued_ranges(blobs, definition))
    else:
        ordered = [PinnedBlob(definition.alias, blob.partition, blob.blob) for blob in blobs]
    return sorted(ordered, key=lambda pinned: (by_number(pinned.partition), pinned.arrival, pinned.blob.name))


def _with_enqueued_ranges(blobs: Iterable[ListedBlob], definition: InputDefinition) -> Iterator[PinnedBlob]:
    """Yield the blobs with their enqueued ranges.

    If names are not exact, a blob may have the time of its first event or of its last. So its range begins one
    interval earlier and ends one interval later.
    """
    longest = definition.longest_write_delay
    margin = 0 if definition.names.exact else definition.interval
    by_time = sorted(blobs, key=lambda blob: (blob.partition, blob.name_time))
    for _, group in itertools.groupby(by_time, lambda blob: blob.partition):
        partition_blobs = list(group)
        starts = [blob.name_time for blob in partition_blobs]
        last = 0
        for blob in partition_blobs:
            index = bisect_right(starts, blob.name_time)
            following = [start + margin for start in starts[index : index + 1]]
            last = max(last, min([blob.written, blob.name_time + longest, *following]))
            enqueued = EnqueuedRange(blob.name_time - margin, last)
            yield PinnedBlob(definition.alias, blob.partition, blob.blob, enqueued)


def blobs_for(blobs: Iterable[PinnedBlob], needed: Iterable[Arrivals]) -> Iterator[list[PinnedBlob]]:
    """Yield the blobs that are read for each of these ranges of arrivals; `blobs` are in a manifest's order."""
    partitions = [list(group) for _, group in itertools.groupby(blobs, lambda pinned: pinned.partition)]
    for arrivals in needed:
        yield [pinned for partition_blobs in partitions for pinned in blobs_that_may_hold(partition_blobs, arrivals)]


def blobs_that_may_hold(blobs: Sequence[PinnedBlob], arrivals: Arrivals) -> Sequence[PinnedBlob]:
    """Return the blobs of one partition, given in arrival order, that may hold these arrivals.

    They are contiguous: no blob between two of them is left out, whatever the enqueued times of its events.
    """
    first = bisect_left(blobs, arrivals.first, key=_latest)
    last = None if arrivals.last is None else bisect_right(blobs, arrivals.last, key=_earliest)
    return blobs[first:last]


def _earliest(pinned: PinnedBlob) -> int:
    """Return the time, in ticks, before which no event of this or a later blob arrived."""
    return pinned.arrival if pinned.enqueued is None else pinned.enqueued.first - MAX_CLOCK_SKEW


def _latest(pinned: PinnedBlob) -> int:
    """Return the time, in ticks, after which no event of this or an earlier blob arrived."""
    return pinned.arrival if pinned.enqueued is None else pinned.enqueued.last + MAX_CLOCK_SKEW


def is_complete(definition: InputDefinition, slice_: Slice, newest: NewestBlob | None, now: datetime) -> bool:
    """Return whether a partition has all its arrivals for a slice (docs/time-model.md, section 3.3).

    Either the partition's newest blob proves it, or enough time has passed for all blobs with these arrivals to have
    been written. With enqueued times, a blob proves that everything enqueued before the time in its name has been
    written.
    """
    needed = definition.last_needed(slice_)
    archived_until = 0 if newest is None else definition.archived_until(newest)
    return archived_until > needed or now > ticks.to_datetime(needed) + definition.time_until_written


def digest_of_blobs(pinned_blobs: Iterable[PinnedBlob]) -> str:
    """Return the SHA-256 of the names and the versions of blobs."""
    return digest_of([version_of(pinned.blob) for pinned in pinned_blobs])
