"""The manifest: the blobs that a run reads, pinned, and how complete they are. What is not in it is not read."""

import hashlib
import itertools
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from pydantic import TypeAdapter, ValidationError

from spark_jobs.capture.names import CaptureNames
from spark_jobs.errors import RunError
from spark_jobs.storage import Blob, Container
from spark_jobs.time_model import ticks
from spark_jobs.time_model.policies import Policies
from spark_jobs.time_model.slices import Arrivals, Slice, arrivals_of


@dataclass(frozen=True)
class CaptureBlob:
    """A blob of the manifest; its arrival time is that of every event in it."""

    partition: str
    blob: Blob

    @property
    def arrival(self) -> int:
        """LastModified in ticks."""
        return ticks.from_datetime(self.blob.last_modified)


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
    """In arrival order within a partition: by LastModified, then name."""

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

    @property
    def digest(self) -> str:
        policies = None if self.policies is None else asdict(self.policies)
        return _digest([self.engine, self.canonical_query, policies])


def plan(definition: Definition, container: Container, slices: Iterable[Slice], now: datetime) -> Manifest:
    """List the container and pin what the slices need.

    A listing by LastModified: the time in a blob's path says nothing certain of its arrival. Blobs whose names are
    not of this event hub's Capture are not read. Raises RunError where there is no Capture blob at all.
    """
    listed = list_capture(definition.names, container)
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


def list_capture(names: CaptureNames, container: Container) -> list[CaptureBlob]:
    """The event hub's Capture blobs, by partition, arrival and name."""
    found = []
    for blob in container.list(names.prefix):
        partition = names.partition(blob.name)
        if partition is not None:
            found.append(CaptureBlob(partition, blob))
    return sorted(found, key=lambda pinned: (_by_number(pinned.partition), pinned.blob.last_modified, pinned.blob.name))


def arrived_in(blobs: Sequence[CaptureBlob], arrivals: Arrivals) -> Sequence[CaptureBlob]:
    """Those of a partition's blobs, given in arrival order, that arrived in a range."""
    first = bisect_left(blobs, arrivals.first, key=_arrival)
    last = None if arrivals.last is None else bisect_right(blobs, arrivals.last, key=_arrival)
    return blobs[first:last]


def _arrival(pinned: CaptureBlob) -> int:
    return pinned.arrival


def is_complete(definition: Definition, wanted: Slice, newest_arrival: int, now: datetime) -> bool:
    """Whether all of a partition's arrivals for this slice are there (time model, section 3).

    Either a later blob proves it, or the clock says that Capture must have written it.
    """
    late = 0 if definition.policies is None else definition.policies.late or 0
    last_needed = wanted.end + late
    interval = timedelta(seconds=definition.capture_interval_seconds)
    return newest_arrival > last_needed or now > ticks.to_datetime(last_needed) + interval


def _by_number(partition: str) -> tuple[int, str]:
    return (int(partition), partition) if partition.isdecimal() else (1 << 62, partition)


def _compact(instant: int) -> str:
    return f"{ticks.to_datetime(instant):%Y%m%dT%H%M%SZ}"


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
