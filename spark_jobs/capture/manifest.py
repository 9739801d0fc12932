"""The manifest: the blobs that a run reads, pinned, and how complete they are. What is not in it is not read."""

import hashlib
import itertools
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import TypeAdapter, ValidationError

from spark_jobs.capture.names import CaptureNames, opened
from spark_jobs.errors import RunError
from spark_jobs.storage import Blob, Container
from spark_jobs.time_model import ticks
from spark_jobs.time_model.policies import Policies
from spark_jobs.time_model.slices import Arrivals, Slice, arrivals_of

CLOCKS_APART = ticks.from_seconds(300)
"""By how much the hub's clock, which stamps the events, may differ from those of Capture and the storage.

The clocks of one service differ by seconds. What differs by more stops the run that reads it (see `ordering`).
"""


class ArrivalTime(StrEnum):
    """Which time of an event is its arrival (time model, section 1)."""

    BLOB_LAST_MODIFIED = "BlobLastModified"
    EVENT_ENQUEUED = "EventEnqueuedUtcTime"


@dataclass(frozen=True)
class Window:
    """When the events of a blob were enqueued, as far as its name and those of its neighbours tell; ticks."""

    first: int
    """The time in the blob's name."""
    last: int
    """The time in the next blob's name, or LastModified where that is earlier; it never falls from blob to blob."""


@dataclass(frozen=True)
class CaptureBlob:
    """A blob of the manifest."""

    partition: str
    blob: Blob
    window: Window | None = None
    """Where each event arrives when it was enqueued; None where LastModified is the arrival of all."""

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

    @property
    def digest(self) -> str:
        """Of the slices' digests: equal for runs that read the same and compute the same."""
        return _digest([planned.digest for planned in self.slices])

    @property
    def size(self) -> int:
        """Bytes of all blobs."""
        return sum(pinned.blob.size for pinned in self.blobs)

    def to_json(self) -> bytes:
        return _MANIFEST.dump_json(self, indent=1)


_MANIFEST = TypeAdapter(Manifest)


def from_json(content: bytes) -> Manifest:
    """Read a kept manifest. Raises RunError where it is not one."""
    try:
        return _MANIFEST.validate_json(content)
    except ValidationError as error:
        raise RunError(
            "the run's manifest cannot be read: it was written by another version or damaged; plan again"
        ) from error


@dataclass(frozen=True)
class Definition:
    """What of a pipeline decides which blobs a slice needs and what becomes of them."""

    name: str
    names: CaptureNames
    engine: str
    canonical_query: str
    policies: Policies | None
    look_back: int
    capture_interval_seconds: int
    arrival_time: ArrivalTime = ArrivalTime.BLOB_LAST_MODIFIED

    @property
    def digest(self) -> str:
        policies = None if self.policies is None else asdict(self.policies)
        return _digest([self.engine, self.canonical_query, policies, self.arrival_time])


def plan(definition: Definition, container: Container, slices: Iterable[Slice], now: datetime) -> Manifest:
    """List the container and pin what the slices need.

    Blobs whose names are not of this event hub's Capture are not read. Raises RunError where there is no Capture blob
    at all.
    """
    listed = list_capture(definition.names, container, definition.arrival_time)
    if not listed:
        raise RunError(
            f"no Capture blob under {container.url}/{definition.names.prefix}: check namespace, event_hub and container"
        )
    partitions = {name: list(blobs) for name, blobs in itertools.groupby(listed, lambda pinned: pinned.partition)}
    planned = []
    read: set[str] = set()
    for wanted in slices:
        arrivals = arrivals_of(wanted, definition.policies, definition.look_back)
        pinned = [each.blob for blobs in partitions.values() for each in arrived_in(blobs, arrivals)]
        read.update(blob.name for blob in pinned)
        evidence = [[blob.name, blob.etag, blob.size, blob.last_modified.isoformat()] for blob in pinned]
        digest = _digest([definition.digest, wanted.start, wanted.end, evidence])
        incomplete = tuple(
            name for name, blobs in partitions.items() if not is_complete(definition, wanted, blobs[-1].arrival, now)
        )
        planned.append(PlannedSlice(wanted, arrivals, digest, incomplete))
    pinned_blobs = tuple(each for each in listed if each.blob.name in read)
    start, end = planned[0].slice.start, planned[-1].slice.end
    digest = _digest([each.digest for each in planned])
    run = f"{_compact(start)}-{_compact(end)}-{digest[:12]}"
    return Manifest(
        run=run,
        pipeline=definition.name,
        container=container.url,
        engine=definition.engine,
        definition_digest=definition.digest,
        slices=tuple(planned),
        partitions=tuple(partitions),
        blobs=pinned_blobs,
    )


def list_capture(names: CaptureNames, container: Container, arrival_time: ArrivalTime) -> list[CaptureBlob]:
    """The event hub's Capture blobs, by partition, arrival and name.

    By LastModified the time in a blob's name says nothing of its arrival. Where events arrive when they were enqueued,
    their order is that of the windows in which they were captured, whenever the blobs were written or copied.
    """
    found = []
    for blob in container.list(names.prefix):
        partition = names.partition(blob.name)
        if partition is not None:
            found.append(CaptureBlob(partition, blob))
    if arrival_time is ArrivalTime.EVENT_ENQUEUED:
        found = list(_with_windows(found))
    return sorted(found, key=lambda pinned: (_by_number(pinned.partition), pinned.arrival, pinned.blob.name))


def _with_windows(blobs: Sequence[CaptureBlob]) -> Iterator[CaptureBlob]:
    begun = [(pinned.partition, ticks.from_datetime(opened(pinned.blob.name)), pinned) for pinned in blobs]
    begun.sort(key=lambda each: each[:2])
    for _, group in itertools.groupby(begun, lambda each: each[0]):
        windows = list(group)
        starts = [start for _, start, _ in windows]
        last = 0
        for _, start, pinned in windows:
            place = bisect_right(starts, start)
            last = max(last, min([pinned.arrival, *starts[place : place + 1]]))
            yield replace(pinned, window=Window(start, last))


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


def is_complete(definition: Definition, wanted: Slice, newest_arrival: int, now: datetime) -> bool:
    """Whether all of a partition's arrivals for this slice are there (time model, section 3).

    Either a later blob proves it, or the clock says that Capture must have written it. `newest_arrival` is that of the
    partition's newest blob: where it is the start of a window, what was captured before it has been written.
    """
    late = 0 if definition.policies is None else definition.policies.late or 0
    apart = CLOCKS_APART if definition.arrival_time is ArrivalTime.EVENT_ENQUEUED else 0
    last_needed = wanted.end + late + apart
    interval = timedelta(seconds=definition.capture_interval_seconds)
    return newest_arrival > last_needed or now > ticks.to_datetime(last_needed) + interval


def _by_number(partition: str) -> tuple[int, str]:
    return (int(partition), partition) if partition.isdecimal() else (1 << 62, partition)


def _compact(instant: int) -> str:
    return f"{ticks.to_datetime(instant):%Y%m%dT%H%M%SZ}"


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
