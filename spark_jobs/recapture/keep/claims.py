"""How the record of the updates' work changes: claim a range, renew the lease, and write down what became of it.

Each function returns the record after the change and does no I/O. Applied to its own result, it returns the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from recapture.keep.due import DueRange
from recapture.run_files.work import Failure, Lease, Request, Work
from recapture.time_model import ticks

LEASE = ticks.from_seconds(600)
"""Time after which an update may compute what a killed run was computing, in ticks."""
_LONGEST_ERROR = 500
"""Largest number of characters of an error that are kept."""


@dataclass(frozen=True)
class Result:
    """What became of a run of a range."""

    range: DueRange
    at: int
    """Time at which it ended, in ticks."""
    run: str | None = None
    """Run that was published; None if it failed."""
    error: str | None = None
    """Why nothing was published."""
    is_tried_again: bool = False
    """Whether updates compute its slices again after a time: not if the audit stopped the run, or if it may be
    published."""
    may_be_published: bool = False


@dataclass(frozen=True)
class Known:
    """What an update knows of the slices of a range before it computes them."""

    parts: Mapping[str, str]
    """Parts of the present definition, as `run.outdated.parts_of`."""
    read: Mapping[str, str]
    """What they read (`archive.manifest.slice_read`), by slice_start; not of slices whose blobs were not listed."""
    runs: Mapping[str, str]
    """Published run, by slice_start."""


def claim(work: Work, update: str, range_: DueRange, now: int) -> Work:
    """Claim a range for an update, given by its id, and start the requests for it; see `is_claimed`.

    Nothing changes if another run computes one of its slices, or if a request does not want its slice any more.
    """
    requests = {request for slice_ in range_.slices for request in slice_.requests}
    live = tuple(lease for lease in work.leases if lease.until > now)
    by_id = {request.id: request for request in work.requests if request.id in requests}
    is_wanted = all(
        id in by_id and by_id[id].wants(slice_.start, slice_.start + range_.length)
        for slice_ in range_.slices
        for id in slice_.requests
    )
    if is_taken(work, range_.start, range_.end, now) or not is_wanted:
        return work
    return replace(
        work,
        leases=(*live, Lease(update, range_.start, range_.end, now, now + LEASE)),
        requests=tuple(
            replace(request, started=now) if request.id in requests and request.started is None else request
            for request in work.requests
        ),
    )


def is_taken(work: Work, start: int, end: int, now: int) -> bool:
    """Return whether another run computes a part of a range now; all in ticks."""
    return any(lease.until > now and lease.start < end and start < lease.end for lease in work.leases)


def is_claimed(work: Work, id: str, range_: DueRange) -> bool:
    """Return whether an update may compute a range."""
    return any((lease.id, lease.start, lease.end) == (id, range_.start, range_.end) for lease in work.leases)


def hold(work: Work, id: str, start: int, end: int, now: int) -> Work:
    """Keep updates from computing a range that a backfill by hand computes, whoever else computes it; all in ticks."""
    return replace(work, leases=(*release(work, id).leases, Lease(id, start, end, now, now + LEASE)))


def renew(work: Work, id: str, now: int) -> Work:
    """Extend the leases of an update or a backfill."""
    leases = (replace(lease, until=now + LEASE) if lease.id == id else lease for lease in work.leases)
    return replace(work, leases=tuple(leases))


def release(work: Work, id: str) -> Work:
    """End the leases of an update or a backfill."""
    return replace(work, leases=tuple(lease for lease in work.leases if lease.id != id))


def record(work: Work, result: Result, known: Known, length: int) -> Work:
    """Write down what became of a run: its failure, and what the requests for its slices got.

    `known` is what was known of its slices before the run, and `length` that of a slice, in ticks.
    """
    slices = tuple(slice_.start for slice_ in result.range.slices)
    failures = [
        replace(failure, slices=tuple(start for start in failure.slices if start not in slices))
        for failure in work.failures
    ]
    if result.is_tried_again:
        before = (other.first for other in work.failures if (other.slices, other.read) == (slices, known.read))
        failures.append(
            Failure(
                start=result.range.start,
                end=result.range.end,
                slices=slices,
                first=min(before, default=result.at),
                last=result.at,
                error=str(result.error)[:_LONGEST_ERROR],
                parts=known.parts,
                read=known.read,
                runs=known.runs,
            )
        )
    requests = (_with_result(request, result, length) for request in work.requests)
    return replace(work, failures=tuple(failure for failure in failures if failure.slices), requests=tuple(requests))


def _with_result(request: Request, result: Result, length: int) -> Request:
    """Return a request with what became of its slices. Of several slices, only one may be at fault: none has failed."""
    starts = [
        ticks.to_text(slice_.start)
        for slice_ in result.range.slices
        if request.id in slice_.requests and request.wants(slice_.start, slice_.start + length)
    ]
    if result.run is not None:
        request = replace(request, published={**request.published, **dict.fromkeys(starts, result.run)})
    elif len(result.range.slices) == 1 or result.may_be_published:
        error = str(result.error)[:_LONGEST_ERROR]
        request = replace(request, failed={**request.failed, **dict.fromkeys(starts, error)})
    done = len(request.published) + len(request.failed) >= len(request.slices(length))
    return replace(request, ended=result.at) if done and request.ended is None else request
