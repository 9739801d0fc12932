"""Requests: slices that people want to have computed, now or later. Updates compute them, each once."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.run.slices import require_whole_slices, slice_length
from recapture.run.tables import tables_of
from recapture.run_files.work import WORK, Request, Work
from recapture.storage import Container, open_container
from recapture.table.delta import OpenTable
from recapture.time_model import ticks

REMEMBERED = 100
"""Number of ended requests that are remembered."""


@dataclass(frozen=True)
class NewRequest:
    """What somebody asks for. Times are aware."""

    start: datetime
    end: datetime
    by: str
    """Name of the person or program that asks."""
    at: datetime | None = None
    """Time from which the slices may be computed; None for the next update."""
    reason: str | None = None
    only: Sequence[datetime] = ()
    """Starts of the requested slices, if not all of the range are requested."""
    id: str | None = None
    """Id that the request gets, however often it is made; None for one of its own each time."""

    def made(self, now: int) -> Request:
        """Return the request, made at this time in ticks."""
        return Request(
            id=uuid4().hex[:8] if self.id is None else self.id,
            by=self.by,
            start=ticks.from_datetime(self.start),
            end=ticks.from_datetime(self.end),
            at=now if self.at is None else ticks.from_datetime(self.at),
            made=now,
            reason=self.reason,
            only=tuple(sorted(set(map(ticks.from_datetime, self.only)))),
        )


def make_request(pipeline: Pipeline, new: NewRequest, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Request the slices of a range, and return the request in JSON types.

    If there is a request with this id already, return it, and make none. Raise DefinitionError if the range is not one
    of whole slices that have ended, if `only` has others than its slices, if the tables belong to another pipeline, or
    if the request with this id asks for something else.
    """
    require_whole_slices(pipeline, new.start, new.end)
    OpenTable(tables_of(pipeline).publications, environment).require_writable()
    request = new.made(ticks.from_datetime(datetime.now(UTC)))
    outside = [
        start for start in request.only if start not in range(request.start, request.end, slice_length(pipeline))
    ]
    if outside:
        raise DefinitionError(
            f"{ticks.to_text(outside[0])} is not the start of a slice of the range: choose the slices again"
        )
    work = WORK.change(_run_files(pipeline, environment), lambda work: with_request(work, request))
    made = next(other for other in work.requests if other.id == request.id)
    if _asked(made) != _asked(request):
        raise DefinitionError(
            f"request {made.id} of {pipeline.name}, by {made.by} at {_text(made.made)}, asks for something else under "
            "the same id: give each request its own"
        )
    return summary(made, slice_length(pipeline))


def with_request(work: Work, request: Request) -> Work:
    """Return the record with another request, and without the oldest ended ones."""
    if any(other.id == request.id for other in work.requests):
        return work
    ended = [other for other in work.requests if other.ended is not None]
    forgotten = {other.id for other in ended[: max(len(ended) - REMEMBERED, 0)]}
    return replace(work, requests=(*(other for other in work.requests if other.id not in forgotten), request))


def requests_of(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Return the requests for a pipeline in JSON types: those that have not ended, and the last ones that have."""
    length = slice_length(pipeline)
    return [summary(request, length) for request in WORK.read(_run_files(pipeline, os.environ)).requests]


def cancel_request(pipeline: Pipeline, id: str, by: str, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Cancel a request that has not started, and return it in JSON types.

    Raise DefinitionError if there is no such request, or if it has started or ended.
    """
    now = ticks.from_datetime(datetime.now(UTC))
    work = WORK.change(_run_files(pipeline, environment), lambda work: cancelled(work, id, by, now))
    request = next((request for request in work.requests if request.id == id), None)
    if request is None:
        raise DefinitionError(f"there is no request {id} for {pipeline.name}: see recapture requests")
    if (request.cancelled_by, request.ended) != (by, now):
        raise DefinitionError(_why_not(request))
    return summary(request, slice_length(pipeline))


def cancelled(work: Work, id: str, by: str, now: int) -> Work:
    """Return the record with a request cancelled; unchanged if the request has started or ended."""
    return replace(
        work,
        requests=tuple(
            replace(request, ended=now, cancelled_by=by)
            if request.id == id and request.started is None and request.ended is None
            else request
            for request in work.requests
        ),
    )


def summary(request: Request, length: int) -> dict[str, Any]:
    """Return a request in JSON types; `length` is that of a slice, in ticks."""
    fields = asdict(request) | {"only": [ticks.to_text(start) for start in request.only]}
    bounds = {"from": ticks.to_text(fields.pop("start")), "to": ticks.to_text(fields.pop("end"))}
    times = {name: _text(fields.pop(name)) for name in ("at", "made", "started", "ended")}
    return {"state": request.state.value, **fields, **bounds, **times, "slices": len(request.slices(length))}


def _asked(request: Request) -> tuple[object, ...]:
    """Return what a request asks for; None stands for the first update after it was made."""
    at = None if request.at == request.made else request.at
    return request.start, request.end, request.only, at, request.by, request.reason


def _why_not(request: Request) -> str:
    if request.cancelled_by is not None:
        return f"request {request.id} is cancelled already, by {request.cancelled_by} at {_text(request.ended)}"
    if request.ended is not None:
        return f"request {request.id} ended at {_text(request.ended)} ({request.state}): roll the slices back instead"
    return f"request {request.id} started at {_text(request.started)}: what it published can be rolled back"


def _text(time: int | None) -> str | None:
    return None if time is None else ticks.whole_seconds(ticks.to_datetime(time))


def _run_files(pipeline: Pipeline, environment: Mapping[str, str]) -> Container:
    return open_container(pipeline.outputs[0].table, environment)
