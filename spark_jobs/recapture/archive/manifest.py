"""The manifest: the blobs that a run reads, pinned, and how complete they are. What is not in it is not read."""

import hashlib
import itertools
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter, ValidationError

from recapture.archive import listing
from recapture.archive.blob_names import BlobNames
from recapture.archive.listing import FarBlobs, Found, Newest, PassedOver, Search
from recapture.errors import RunError, SetupError
from recapture.storage import Blob, Container
from recapture.time_model import ticks
from recapture.time_model.policies import Policies
from recapture.time_model.slices import Arrivals, Slice, arrivals_of
from recapture.versions import FORMAT, require_format

CLOCKS_APART = ticks.from_seconds(300)
"""By how much the hub's clock, which stamps the events, may differ from those of the writer and the storage.

The clocks of one service differ by seconds. What differs by more stops the run that reads it (see `ordering`).
"""

SEARCH_HOURS = 168
"""Capture cannot be behind by more than the hub keeps: a week, but for the premium tiers."""

PROBED = 10_000
"""Names that are looked at, where none was found that fits, before they are said not to."""


class ArrivalTime(StrEnum):
    """Which time of an event is its arrival (time model, section 1)."""

    BLOB_LAST_MODIFIED = "BlobLastModified"
    EVENT_ENQUEUED = "EventEnqueuedUtcTime"


@dataclass(frozen=True, slots=True)
class Window:
    """When the events of a blob were enqueued, as far as its name and those of its neighbours tell; ticks."""

    first: int
    """The time in the blob's name, or an interval before it where names are not exact."""
    last: int
    """As much as that after the time in the next blob's name, or LastModified where that is earlier.

    It never falls from blob to blob.
    """


@dataclass(frozen=True, slots=True)
class CaptureBlob:
    """A blob of the manifest."""

    partition: str
    blob: Blob
    window: Window | None = None
    """Where each event arrives when it was enqueued; None where LastModified is the arrival of all."""
    input: str = ""
    """Alias of the input that the blob belongs to."""

    @property
    def arrival(self) -> int:
        """The blob's own arrival in ticks: LastModified, or the start of its window where that is given."""
        return ticks.from_datetime(self.blob.last_modified) if self.window is None else self.window.first


@dataclass(frozen=True)
class PlannedSlice:
    """A slice of a run."""

    slice: Slice
    arrivals: Arrivals
    """What is read for it."""
    digest: str
    """Of all that decides its rows: engine, query, policies, and the blobs read for it."""
    incomplete: tuple[str, ...]
    """The partitions from which more may still arrive for this slice."""


@dataclass(frozen=True)
class Manifest:
    """All that a run reads, and of which definition."""

    run: str
    pipeline: str
    container: str
    engine: str
    definition_digest: str
    """Of the query in its canonical spelling and of the policies."""
    slices: tuple[PlannedSlice, ...]
    partitions: tuple[str, ...]
    blobs: tuple[CaptureBlob, ...]
    """In arrival order within a partition: by arrival, then name."""
    format: int = FORMAT
    newest: tuple[Newest, ...] = ()
    """How far Capture had got when this was planned, for each partition in which it was seen."""
    far: FarBlobs | None = None
    passed_over: PassedOver | None = None

    @property
    def silent(self) -> tuple[str, ...]:
        """The partitions from which nothing is read."""
        read = {pinned.partition for pinned in self.blobs}
        return tuple(name for name in self.partitions if name not in read)

    @property
    def digest(self) -> str:
        """Of the slices' digests: equal for runs that read the same and compute the same."""
        return _digest([planned.digest for planned in self.slices])

    @property
    def size(self) -> int:
        """Bytes of all blobs."""
        return sum(pinned.blob.size for pinned in self.blobs)

    def to_json(self) -> bytes:
        """Before all else the run's digest, and that of all that follows, however it is laid out."""
        content = _content(self)
        told = f'{{\n "digest": "{self.digest}",\n "content_digest": "{hashlib.sha256(content).hexdigest()}",'
        return b"".join([told.encode(), memoryview(content)[1:]])


@dataclass(frozen=True)
class _Sealed:
    """A kept manifest's own word for what it holds."""

    content_digest: str
    format: int | None = None


_MANIFEST = TypeAdapter(Manifest)
_SEALED = TypeAdapter(_Sealed)


def from_json(content: bytes) -> Manifest:
    """Read a kept manifest. Raises RunError where it is not one, and where it is not what its digests say."""
    try:
        sealed = _SEALED.validate_json(content)
        require_format(sealed.format, "the run's manifest")
        manifest = _MANIFEST.validate_json(content)
    except ValidationError as error:
        raise RunError(
            "the run's manifest cannot be read: it was written by another version or damaged; plan again"
        ) from error
    _require_whole(manifest, sealed.content_digest)
    return manifest


def _content(manifest: Manifest) -> bytes:
    return _MANIFEST.dump_json(manifest, indent=1)


def _require_whole(manifest: Manifest, told: str) -> None:
    """The run of a manifest that somebody changed would not be the run whose name it has."""
    reads = read_for(manifest.blobs, [each.arrivals for each in manifest.slices])
    digests = [
        _slice_digest(manifest.definition_digest, each.slice, read)
        for each, read in zip(manifest.slices, reads, strict=True)
    ]
    named = manifest.run.endswith(f"-{manifest.digest[:12]}")
    whole = told == hashlib.sha256(_content(manifest)).hexdigest()
    if not whole or digests != [each.digest for each in manifest.slices] or not named:
        raise RunError(
            f"the manifest of run {manifest.run} does not hold what its digests say: somebody changed it; take the one "
            "that lies with the run, or plan again"
        )


@dataclass(frozen=True)
class Definition:
    """What of a pipeline decides which blobs a slice needs and what becomes of them."""

    name: str
    names: BlobNames
    engine: str
    canonical_query: str
    policies: Policies | None
    look_back: int
    interval_seconds: int
    """After the time in its name, how long a blob may hold what came; 0 where the names tell no time."""
    arrival_time: ArrivalTime = ArrivalTime.BLOB_LAST_MODIFIED
    search_hours: int = SEARCH_HOURS
    partitions: int | None = None
    """How many the hub has; None where that was not told."""
    input: Mapping[str, Any] = field(default_factory=dict)
    """The keys of the input section that decide how blobs are read, as JSON."""
    alias: str = ""
    """Alias of the input."""

    @property
    def longest_window(self) -> int:
        """After the time in its name, how long a blob is looked for; ticks."""
        return ticks.from_seconds(self.interval_seconds + 3600 * self.search_hours)

    @property
    def by_name(self) -> bool:
        """Whether the windows in the names decide what is read, and not LastModified."""
        return self.arrival_time is ArrivalTime.EVENT_ENQUEUED

    @property
    def delay(self) -> timedelta:
        """How long after an event arrived the clock says that its blob is there.

        A blob that its own LastModified dates is there at once, for all that clocks differ.
        """
        waits = self.names.on_schedule or self.by_name
        return timedelta(seconds=self.interval_seconds if waits else CLOCKS_APART // ticks.TICKS_PER_SECOND)

    def reached(self, newest: Newest) -> int:
        """How far the archive reaches in a partition, as arrival; ticks."""
        return newest.opened if self.by_name else newest.written

    def last_needed(self, wanted: Slice) -> int:
        """The last arrival that a slice may hold; ticks."""
        late = 0 if self.policies is None else self.policies.late or 0
        return wanted.end + late + (CLOCKS_APART if self.by_name else 0)

    def search(self, needed: Sequence[Arrivals]) -> Search:
        """What is looked for, for all of these arrivals."""
        by_name = self.by_name
        ends = [each.last for each in needed if each.last is not None]
        return Search(
            Arrivals(min(each.first for each in needed), max(ends) if len(ends) == len(needed) else None),
            by_name,
            ticks.from_seconds(self.interval_seconds),
            max(ticks.from_seconds(3600 * self.search_hours), listing.FAR),
            CLOCKS_APART if by_name else 0,
        )

    @property
    def digest(self) -> str:
        return _digest(
            {
                "format": FORMAT,
                "engine": self.engine,
                "query": self.canonical_query,
                "policies": None if self.policies is None else asdict(self.policies),
                "arrival_time": self.arrival_time,
                "input": self.input,
            }
        )


def plan(definition: Definition, container: Container, slices: Iterable[Slice], now: datetime) -> Manifest:
    """List the container and pin what the slices need.

    Blobs whose names are not of this input are not read. Raises RunError where there is none at all.
    """
    wanted = [(each, arrivals_of(each, definition.policies, definition.look_back)) for each in slices]
    seen, partitions = survey(definition, container, [arrivals for _, arrivals in wanted], now)
    if not partitions:
        raise RunError(
            f"no blob of this input under {container.url}/{definition.names.prefix}: "
            "check input.container, input.path and the names in it"
        )
    listed = in_order(seen.kept, definition)
    planned = []
    needed: set[str] = set()
    reads = read_for(listed, [arrivals for _, arrivals in wanted])
    for (each, arrivals), read in zip(wanted, reads, strict=True):
        needed.update(pinned.blob.name for pinned in read)
        incomplete = tuple(name for name in partitions if not is_complete(definition, each, seen.newest.get(name), now))
        planned.append(PlannedSlice(each, arrivals, _slice_digest(definition.digest, each, read), incomplete))
    start, end = planned[0].slice.start, planned[-1].slice.end
    digest = _digest([each.digest for each in planned])
    return Manifest(
        run=f"{_compact(start)}-{_compact(end)}-{digest[:12]}",
        pipeline=definition.name,
        container=container.url,
        engine=definition.engine,
        definition_digest=definition.digest,
        slices=tuple(planned),
        partitions=partitions,
        blobs=tuple(each for each in listed if each.blob.name in needed),
        newest=tuple(seen.newest[name] for name in partitions if name in seen.newest),
        far=seen.far,
        passed_over=seen.passed_over,
    )


def survey(
    definition: Definition, container: Container, needed: Sequence[Arrivals], now: datetime
) -> tuple[listing.Seen, tuple[str, ...]]:
    """What the container lists for these arrivals, and the partitions in order, silent ones as well.

    No partitions where there is no blob of the input at all. Raises SetupError where there are folders of its
    partitions and no blob in them fits its names, and where there are too many of these folders.
    """
    found, numbered = listing.partitions(definition.names, container)
    told = {str(number) for number in range(definition.partitions or 0)}
    search = definition.search(needed)
    seen = listing.look(definition.names, container, search, found | told, now)
    for folder in numbered:
        seen.pass_over(folder)
    if found and not seen.newest:
        _require_fitting(definition.names, container)
    partitions = found | set(seen.newest)
    return seen, tuple(sorted(partitions | told, key=listing.by_number)) if partitions else ()


def _require_fitting(names: BlobNames, container: Container) -> None:
    """Raise SetupError where blobs lie under the input's prefix, and none of them has a name of the input."""
    there = [blob.name for blob in itertools.islice(container.list(names.prefix), PROBED)]
    if there and not any(names.parse(name) for name in there):
        raise SetupError(
            f"none of the first {len(there):,} names under {container.url}/{names.prefix} is of this input, such as "
            f"{there[0]}: check input.path, and the names that input has"
        )


def in_order(found: Iterable[Found], definition: Definition) -> list[CaptureBlob]:
    """By partition, arrival and name.

    By LastModified the time in a blob's name says nothing of its arrival. Where events arrive when they were enqueued,
    their order is that of the windows in which they were written, whenever the blobs were copied.
    """
    if definition.by_name:
        blobs = list(_with_windows(found, definition))
    else:
        blobs = [CaptureBlob(each.partition, each.blob, input=definition.alias) for each in found]
    return sorted(blobs, key=lambda pinned: (listing.by_number(pinned.partition), pinned.arrival, pinned.blob.name))


def _with_windows(found: Iterable[Found], definition: Definition) -> Iterator[CaptureBlob]:
    """Where names are not exact, a batch may be named by its first event or by its last."""
    longest = definition.longest_window
    around = 0 if definition.names.exact else ticks.from_seconds(definition.interval_seconds)
    begun = sorted(found, key=lambda each: (each.partition, each.opened))
    for _, group in itertools.groupby(begun, lambda each: each.partition):
        windows = list(group)
        starts = [each.opened for each in windows]
        last = 0
        for each in windows:
            place = bisect_right(starts, each.opened)
            following = [start + around for start in starts[place : place + 1]]
            last = max(last, min([each.written, each.opened + longest, *following]))
            window = Window(each.opened - around, last)
            yield CaptureBlob(each.partition, each.blob, window, definition.alias)


def read_for(blobs: Iterable[CaptureBlob], needed: Iterable[Arrivals]) -> Iterator[list[CaptureBlob]]:
    """What is read for each of these arrivals; the blobs are given as in a manifest."""
    partitions = [list(group) for _, group in itertools.groupby(blobs, lambda pinned: pinned.partition)]
    for arrivals in needed:
        yield [pinned for of_partition in partitions for pinned in arrived_in(of_partition, arrivals)]


def arrived_in(blobs: Sequence[CaptureBlob], arrivals: Arrivals) -> Sequence[CaptureBlob]:
    """Those of a partition's blobs, given in arrival order, that hold what arrived in a range.

    They lie side by side: nothing that was captured between two of them is left out, whatever its enqueued time.
    """
    first = bisect_left(blobs, arrivals.first, key=_latest)
    last = None if arrivals.last is None else bisect_right(blobs, arrivals.last, key=_earliest)
    return blobs[first:last]


def _earliest(pinned: CaptureBlob) -> int:
    """Before which no event of the blob arrived, nor of any later one."""
    return pinned.arrival if pinned.window is None else pinned.window.first - CLOCKS_APART


def _latest(pinned: CaptureBlob) -> int:
    """After which no event of the blob arrived, nor of any earlier one."""
    return pinned.arrival if pinned.window is None else pinned.window.last + CLOCKS_APART


def is_complete(definition: Definition, wanted: Slice, newest: Newest | None, now: datetime) -> bool:
    """Whether all of a partition's arrivals for this slice are there (time model, section 3).

    Either the partition's newest blob proves it, or the clock says that it must have been written. Where the start of
    its window is its arrival, what came before it has been written.
    """
    needed = definition.last_needed(wanted)
    reached = 0 if newest is None else definition.reached(newest)
    return reached > needed or now > ticks.to_datetime(needed) + definition.delay


def _slice_digest(definition_digest: str, wanted: Slice, read: Iterable[CaptureBlob]) -> str:
    blobs = (pinned.blob for pinned in read)
    evidence = [[blob.name, blob.etag, blob.size, blob.last_modified.isoformat()] for blob in blobs]
    return _digest([definition_digest, wanted.start, wanted.end, evidence])


def _compact(instant: int) -> str:
    return f"{ticks.to_datetime(instant):%Y%m%dT%H%M%SZ}"


def _digest(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON: sorted keys, no white space."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
