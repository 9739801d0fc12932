"""What is computed now, what updates failed at, and what people requested: one file for all runs of a pipeline."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from recapture.process.versions import APART_FORMAT, FORMAT
from recapture.run_files.files import FOLDER
from recapture.run_files.json_file import JsonFile
from recapture.run_files.shared_file import SharedFile
from recapture.time_model import ticks


@dataclass(frozen=True)
class Lease:
    """Range that an update or a backfill computes, so that no other update does; times are in ticks."""

    id: str
    start: int
    end: int
    began: int
    until: int
    """Time from which updates may compute the range: the run that holds the lease renews it before."""


@dataclass(frozen=True)
class Failure:
    """Run of an update that ended with another error than that of its audit; times are in ticks."""

    start: int
    """Start of the run's range."""
    end: int
    slices: tuple[int, ...]
    """Starts of those of its slices that no later run computed."""
    first: int
    """Time at which a run of this range failed first."""
    last: int
    error: str
    parts: Mapping[str, str]
    """Parts of the definition and of the suite, as `run.outdated.parts_of`."""
    read: Mapping[str, str]
    """What the slices would have read (`archive.manifest.slice_read`), by slice_start, where that is known."""
    runs: Mapping[str, str]
    """Run that was published for a slice at that time, by slice_start."""


class RequestState(StrEnum):
    """State of a request."""

    WAITING = "waiting"
    STARTED = "started"
    PUBLISHED = "published"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Request:
    """Slices that a person wants to have computed, whether they are up to date or not; times are in ticks."""

    id: str
    by: str
    """Name of the person."""
    start: int
    """Start of the first slice."""
    end: int
    at: int
    """Time from which the slices may be computed."""
    made: int
    reason: str | None = None
    only: tuple[int, ...] = ()
    """Starts of the requested slices, if not all of the range are requested."""
    started: int | None = None
    """Time at which an update began with the first of the slices; None if none has."""
    ended: int | None = None
    """Time at which the last of the slices was computed, or the request was cancelled; None if it has not ended."""
    cancelled_by: str | None = None
    published: Mapping[str, str] = field(default_factory=dict)
    """Run that published a slice for the request, by slice_start."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Why a slice could not be published for the request, by slice_start."""

    def slices(self, length: int) -> Sequence[int]:
        """Return the starts of the requested slices; `length` is that of a slice, in ticks."""
        return self.only or range(self.start, self.end, length)

    def wants(self, start: int, end: int) -> bool:
        """Return whether the slice from `start` to `end` has to be computed for the request."""
        if self.ended is not None or start < self.start or self.end < end or (self.only and start not in self.only):
            return False
        text = ticks.to_text(start)
        return text not in self.published and text not in self.failed

    @property
    def state(self) -> RequestState:
        if self.cancelled_by is not None:
            return RequestState.CANCELLED
        if self.ended is None:
            return RequestState.WAITING if self.started is None else RequestState.STARTED
        return RequestState.FAILED if self.failed else RequestState.PUBLISHED


@dataclass(frozen=True)
class Work:
    """The work of the updates of a pipeline."""

    leases: tuple[Lease, ...] = ()
    failures: tuple[Failure, ...] = ()
    requests: tuple[Request, ...] = ()
    """Requests in the order in which they were made."""

    @property
    def open_requests(self) -> Iterator[Request]:
        return (request for request in self.requests if request.ended is None)


class _WorkFile(JsonFile[Work]):
    @property
    def formats(self) -> tuple[int, ...]:
        return FORMAT, APART_FORMAT

    def format_of(self, content: Work) -> int:
        return APART_FORMAT if any(request.only for request in content.open_requests) else FORMAT


WORK = SharedFile(
    _WorkFile(f"{FOLDER}/work.json", Work),
    Work(),
    "the record of requests and failed runs, is damaged: restore it, or delete it and make the requests again",
)
