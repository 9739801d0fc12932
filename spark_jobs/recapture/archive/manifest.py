"""Pin the blobs that a run reads, and no others, in a manifest, and record which partitions are incomplete."""

import hashlib
import itertools
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from recapture.archive.blob_names import BlobNames
from recapture.archive.listing import (
    FAR,
    FarBlobs,
    ListedBlob,
    Listing,
    NewestBlob,
    Search,
    UnmatchedNames,
    by_number,
    list_blobs,
    partition_folders,
)
from recapture.errors import RunError, SetupError
from recapture.storage import Blob, Container
from recapture.time_model import ticks
from recapture.time_model.policies import Policies
from recapture.time_model.slices import Arrivals, Slice, arrivals_of
from recapture.versions import FORMAT, require_format

MAX_CLOCK_SKEW = ticks.from_seconds(300)
"""Largest difference between the hub's clock, which stamps events, and the clocks of the writer and the storage; ticks.

The clocks of one service differ by seconds. If an event was enqueued before or after its blob's enqueued range by more
than this, the run that reads the blob stops (docs/time-model.md, section 1.2).
"""

SEARCH_HOURS = 168
"""Default of `input.search_hours`: the longest time that a hub keeps events, except in the premium tiers.

Capture cannot lag further than that.
"""

_PROBED = 10_000
"""Number of names to check before the input's names are reported as wrong."""


class ArrivalTime(StrEnum):
    """The time that is an event's arrival (docs/time-model.md, section 1)."""

    BLOB_LAST_MODIFIED = "BlobLastModified"
    EVENT_ENQUEUED = "EventEnqueuedUtcTime"


@dataclass(frozen=True, slots=True)
class EnqueuedRange:
    """The range in which the events of a blob were enqueued, judging by its name and the next blob's name; ticks."""

    first: int
    """Time in the blob's name; one interval earlier if names are not exact."""
    last: int
    """The earliest of three times, or the end of the previous blob's range if that is later.

    The three are LastModified, the time in the next blob's name (one interval later if names are not exact), and the
    time in the blob's own name plus `RunDefinition.longest_write_delay`.
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


@dataclass(frozen=True)
class PlannedSlice:
    """A slice of a run."""

    slice: Slice
    arrivals: Arrivals
    """Arrivals that are read for the slice."""
    digest: str
    """SHA-256 of what decides the slice's rows: its bounds, the run's definition, and the blobs that it reads."""
    incomplete_partitions: Annotated[tuple[str, ...], Field(alias="incomplete")]
    """Partitions from which more may still arrive for the slice."""


@dataclass(frozen=True)
class Manifest:
    """Everything that a run reads, and the digest of the definition with which it was planned."""

    run: str
    pipeline: str
    container: str
    engine: str
    definition_digest: str
    """SHA-256 of what decides the rows besides the blobs: `RunDefinition.digest`."""
    slices: tuple[PlannedSlice, ...]
    partitions: tuple[str, ...]
    blobs: tuple[PinnedBlob, ...]
    """Blobs, sorted by partition, arrival and name."""
    format: int = FORMAT
    newest: tuple[NewestBlob, ...] = ()
    """Newest blob of each partition that had any near the range, at the time of planning."""
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
    def digest(self) -> str:
        """SHA-256 of the slices' digests: equal for runs that read the same and compute the same."""
        return _digest([planned_slice.digest for planned_slice in self.slices])

    @property
    def size(self) -> int:
        """Size of all blobs in bytes."""
        return sum(pinned.blob.size for pinned in self.blobs)

    def to_json(self) -> bytes:
        """Return the manifest as JSON: the run's digest, the digest of the content, then the content.

        The digests do not depend on the layout of the JSON.
        """
        content = _content(self)
        header = f'{{\n "digest": "{self.digest}",\n "content_digest": "{hashlib.sha256(content).hexdigest()}",'
        return b"".join([header.encode(), memoryview(content)[1:]])


@dataclass(frozen=True)
class _Seal:
    """The format and the digest that a written manifest states."""

    content_digest: str
    format: int | None = None


_MANIFEST = TypeAdapter(Manifest)
_SEAL = TypeAdapter(_Seal)


def from_json(content: bytes) -> Manifest:
    """Return the manifest that `Manifest.to_json` wrote.

    Raise RunError if the content is not a manifest or does not match its digests.
    """
    try:
        seal = _SEAL.validate_json(content)
        require_format(seal.format, "the run's manifest")
        manifest = _MANIFEST.validate_json(content)
    except ValidationError as error:
        raise RunError(
            "the run's manifest cannot be read: it is damaged or was written by another version; plan again"
        ) from error
    _require_unchanged(manifest, seal.content_digest)
    return manifest


def _content(manifest: Manifest) -> bytes:
    return _MANIFEST.dump_json(manifest, by_alias=True, indent=1)


def _require_unchanged(manifest: Manifest, content_digest: str) -> None:
    """Raise RunError if the manifest does not match its digests: it would compute other rows under the run's name."""
    reads = blobs_for(manifest.blobs, [planned_slice.arrivals for planned_slice in manifest.slices])
    digests = [
        _slice_digest(manifest.definition_digest, planned_slice.slice, blobs)
        for planned_slice, blobs in zip(manifest.slices, reads, strict=True)
    ]
    same_content = content_digest == hashlib.sha256(_content(manifest)).hexdigest()
    same_slices = digests == [planned_slice.digest for planned_slice in manifest.slices]
    same_run = manifest.run.endswith(f"-{manifest.digest[:12]}")
    if not (same_content and same_slices and same_run):
        raise RunError(
            f"the manifest of run {manifest.run} does not match its digests, so it was edited: use the one in the run "
            "files, or plan again"
        )


@dataclass(frozen=True)
class RunDefinition:
    """The parts of a pipeline that decide which blobs a slice needs and what becomes of their events."""

    name: str
    names: BlobNames
    engine: str
    canonical_query: str
    policies: Policies | None
    """Policies of the job; None without TIMESTAMP BY."""
    look_back: int
    """Time before a slice for which the query's windows need events, in ticks."""
    interval_seconds: int
    """Longest time from the time in a blob's name to its last event, in seconds; 0 if names have no time."""
    input: str
    """Alias of the input."""
    reading: Mapping[str, Any]
    """Keys of the input section that decide how blobs are read, as JSON."""
    arrival_time: ArrivalTime = ArrivalTime.BLOB_LAST_MODIFIED
    search_hours: int = SEARCH_HOURS
    partitions: int | None = None
    """Number of partitions of the hub; None if it is not known."""
    functions: Sequence[Mapping[str, Any]] = ()
    """JavaScript functions that the query calls, with their scripts, as JSON."""

    @property
    def longest_write_delay(self) -> int:
        """Longest time from the time in a blob's name to its LastModified; ticks."""
        return ticks.from_seconds(self.interval_seconds + 3600 * self.search_hours)

    @property
    def by_enqueued_time(self) -> bool:
        """Whether events arrive when they are enqueued, so that the times in the names decide which blobs are read."""
        return self.arrival_time is ArrivalTime.EVENT_ENQUEUED

    @property
    def time_until_written(self) -> timedelta:
        """Time after an event's arrival by which its blob must have been written.

        If events arrive at their blob's LastModified and blobs are not written on a schedule, a blob exists as soon as
        its events arrive. The time is then only MAX_CLOCK_SKEW.
        """
        waits = self.names.on_schedule or self.by_enqueued_time
        return timedelta(seconds=self.interval_seconds if waits else MAX_CLOCK_SKEW // ticks.TICKS_PER_SECOND)

    def archived_until(self, newest: NewestBlob) -> int:
        """Return the arrival, in ticks, up to which a partition is archived according to its newest blob."""
        return newest.name_time if self.by_enqueued_time else newest.written

    def last_needed(self, slice_: Slice) -> int:
        """Return the last arrival that must have been written before a slice is complete, in ticks.

        With enqueued times, MAX_CLOCK_SKEW is added. Without a late limit, later arrivals can still change the slice.
        """
        late = 0 if self.policies is None else self.policies.late_tolerance or 0
        return slice_.end + late + (MAX_CLOCK_SKEW if self.by_enqueued_time else 0)

    def search_for(self, needed: Sequence[Arrivals]) -> Search:
        """Return the search for all of these arrivals."""
        by_enqueued_time = self.by_enqueued_time
        ends = [arrivals.last for arrivals in needed if arrivals.last is not None]
        return Search(
            Arrivals(min(arrivals.first for arrivals in needed), max(ends) if len(ends) == len(needed) else None),
            by_enqueued_time,
            ticks.from_seconds(self.interval_seconds),
            max(ticks.from_seconds(3600 * self.search_hours), FAR),
            MAX_CLOCK_SKEW if by_enqueued_time else 0,
        )

    @property
    def digest(self) -> str:
        """SHA-256 of what decides the rows besides the blobs: engine, query, policies and input."""
        return _digest(
            {
                "format": FORMAT,
                "engine": self.engine,
                "query": self.canonical_query,
                "functions": list(self.functions),
                "policies": None if self.policies is None else asdict(self.policies),
                "arrival_time": self.arrival_time,
                "input": self.reading,
            }
        )


def pin_blobs(definition: RunDefinition, container: Container, slices: Iterable[Slice], now: datetime) -> Manifest:
    """Return the manifest of these slices: list the container and pin the blobs that they need.

    Blobs whose names do not belong to the input are not read. Raise RunError if there are no partitions; other errors
    are those of `survey`.
    """
    needs = [(slice_, arrivals_of(slice_, definition.policies, definition.look_back)) for slice_ in slices]
    listing, partitions = survey(definition, container, [arrivals for _, arrivals in needs], now)
    if not partitions:
        raise no_partitions(definition.names, container)
    ordered = in_order(listing.blobs, definition)
    planned_slices = []
    pinned_names: set[str] = set()
    reads = blobs_for(ordered, [arrivals for _, arrivals in needs])
    for (slice_, arrivals), blobs in zip(needs, reads, strict=True):
        pinned_names.update(pinned.blob.name for pinned in blobs)
        incomplete_partitions = tuple(
            name for name in partitions if not is_complete(definition, slice_, listing.newest.get(name), now)
        )
        planned_slices.append(
            PlannedSlice(slice_, arrivals, _slice_digest(definition.digest, slice_, blobs), incomplete_partitions)
        )
    start, end = planned_slices[0].slice.start, planned_slices[-1].slice.end
    digest = _digest([planned_slice.digest for planned_slice in planned_slices])
    return Manifest(
        run=f"{ticks.to_compact_text(start)}-{ticks.to_compact_text(end)}-{digest[:12]}",
        pipeline=definition.name,
        container=container.url,
        engine=definition.engine,
        definition_digest=definition.digest,
        slices=tuple(planned_slices),
        partitions=partitions,
        blobs=tuple(pinned for pinned in ordered if pinned.blob.name in pinned_names),
        newest=tuple(listing.newest[name] for name in partitions if name in listing.newest),
        far=listing.far,
        unmatched=listing.unmatched,
    )


def no_partitions(names: BlobNames, container: Container) -> RunError:
    """Return the error for a survey that finds no partition.

    If names have no partition folders, only blobs near the range reveal partitions.
    """
    message = f"no blob of this input under {container.url}/{names.prefix}"
    advice = "check input.container, input.path and the other names in the input section"
    if names.partitioned and names.folder_of_partitions() is None:
        return RunError(f"{message} is near this range: choose another range, or {advice}")
    return RunError(f"{message}: {advice}")


def survey(
    definition: RunDefinition, container: Container, needed: Sequence[Arrivals], now: datetime
) -> tuple[Listing, tuple[str, ...]]:
    """Return what the container lists for these arrivals, and the sorted partitions, silent ones included.

    There are no partitions if there is no blob of the input at all. If names have a partition but no partition folder,
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
    return listing, tuple(sorted(present | configured, key=by_number)) if present else ()


def _require_matching_name(names: BlobNames, container: Container) -> None:
    """Raise SetupError if there are blobs under the prefix, but none of the first _PROBED belongs to the input."""
    probed = [blob.name for blob in itertools.islice(container.list(names.prefix), _PROBED)]
    if probed and not any(names.parse(name) for name in probed):
        raise SetupError(
            f"none of the first {len(probed):,} blob names under {container.url}/{names.prefix} belongs to this input, "
            f"for example {probed[0]}: check input.path and the other names in the input section"
        )


def in_order(blobs: Iterable[ListedBlob], definition: RunDefinition) -> list[PinnedBlob]:
    """Return the blobs, sorted by partition, arrival and name.

    With LastModified, the time in a blob's name says nothing about its arrival. With enqueued times, the order is that
    of the blobs' ranges, no matter when the blobs were copied.
    """
    if definition.by_enqueued_time:
        ordered = list(_with_enqueued_ranges(blobs, definition))
    else:
        ordered = [PinnedBlob(definition.input, blob.partition, blob.blob) for blob in blobs]
    return sorted(ordered, key=lambda pinned: (by_number(pinned.partition), pinned.arrival, pinned.blob.name))


def _with_enqueued_ranges(blobs: Iterable[ListedBlob], definition: RunDefinition) -> Iterator[PinnedBlob]:
    """Yield the blobs with their enqueued ranges.

    If names are not exact, a blob may have the time of its first event or of its last. So its range begins one
    interval earlier and ends one interval later.
    """
    longest = definition.longest_write_delay
    margin = 0 if definition.names.exact else ticks.from_seconds(definition.interval_seconds)
    by_time = sorted(blobs, key=lambda blob: (blob.partition, blob.name_time))
    for _, group in itertools.groupby(by_time, lambda blob: blob.partition):
        of_partition = list(group)
        starts = [blob.name_time for blob in of_partition]
        last = 0
        for blob in of_partition:
            index = bisect_right(starts, blob.name_time)
            following = [start + margin for start in starts[index : index + 1]]
            last = max(last, min([blob.written, blob.name_time + longest, *following]))
            enqueued = EnqueuedRange(blob.name_time - margin, last)
            yield PinnedBlob(definition.input, blob.partition, blob.blob, enqueued)


def blobs_for(blobs: Iterable[PinnedBlob], needed: Iterable[Arrivals]) -> Iterator[list[PinnedBlob]]:
    """Yield the blobs that are read for each of these ranges of arrivals; `blobs` are in a manifest's order."""
    partitions = [list(group) for _, group in itertools.groupby(blobs, lambda pinned: pinned.partition)]
    for arrivals in needed:
        yield [pinned for of_partition in partitions for pinned in blobs_that_may_hold(of_partition, arrivals)]


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


def is_complete(definition: RunDefinition, slice_: Slice, newest: NewestBlob | None, now: datetime) -> bool:
    """Return whether a partition has all its arrivals for a slice (docs/time-model.md, section 3.3).

    Either the partition's newest blob proves it, or enough time has passed for all blobs with these arrivals to have
    been written. With enqueued times, a blob proves that everything enqueued before the time in its name has been
    written.
    """
    needed = definition.last_needed(slice_)
    archived_until = 0 if newest is None else definition.archived_until(newest)
    return archived_until > needed or now > ticks.to_datetime(needed) + definition.time_until_written


def _slice_digest(definition_digest: str, slice_: Slice, pinned_blobs: Iterable[PinnedBlob]) -> str:
    blobs = (pinned.blob for pinned in pinned_blobs)
    evidence = [[blob.name, blob.etag, blob.size, blob.last_modified.isoformat()] for blob in blobs]
    return _digest([definition_digest, slice_.start, slice_.end, evidence])


def _digest(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON: sorted keys, no white space."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
