"""The requests for slices of a pipeline, as the calendar lists them."""

from collections.abc import Iterable
from dataclasses import dataclass

from recapture.process.wording import counted
from recapture.run_files.work import Request, RequestState
from recapture.time_model import ticks
from recapture.tools.coverage.ranges import Range

ENDED_SHOWN = 10
"""Number of ended requests that are listed."""
_KINDS = {
    RequestState.WAITING: ("…", "waiting"),
    RequestState.STARTED: ("▸", "waiting"),
    RequestState.PUBLISHED: ("✓", "good"),
    RequestState.FAILED: ("⚠", "bad"),
    RequestState.CANCELLED: ("\N{EN DASH}", "missing"),
}


@dataclass(frozen=True)
class ShownRequest:
    """A request in the list."""

    id: str
    state: RequestState
    sign: str
    kind: str
    bounds: Range
    slices: str
    """The requested slices, in words."""
    made: str
    """Who made the request and when."""
    progress: str
    """What the request waits for, or what became of it."""
    reason: str | None
    failed: tuple[tuple[str, str], ...]
    """Slices that could not be published, each with why."""

    @property
    def can_be_cancelled(self) -> bool:
        return self.state is RequestState.WAITING


def shown_requests(requests: Iterable[Request], chosen: Range | None, length: int) -> tuple[list[ShownRequest], int]:
    """Return the requests to list, the newest first, and the number of ended ones that are left out.

    All that have not ended are listed, and the last ended ones. If slices are chosen, only requests for them are.
    `length` is that of a slice, in ticks.
    """
    inside = [
        request for request in requests if chosen is None or (request.start < chosen.end and chosen.start < request.end)
    ]
    ended = [request for request in inside if request.ended is not None]
    left_out = {request.id for request in ended[:-ENDED_SHOWN]}
    return [_shown(request, length) for request in reversed(inside) if request.id not in left_out], len(left_out)


def _shown(request: Request, length: int) -> ShownRequest:
    sign, kind = _KINDS[request.state]
    bounds = Range(request.start, request.end)
    failed = tuple((Range(start, start + length).text, error) for start, error in _failed(request))
    made = f"{request.by} at {_time(request.made)}"
    return ShownRequest(
        request.id,
        request.state,
        sign,
        kind,
        bounds,
        bounds.text if not request.only else f"{counted(len(request.only), 'slice')} of {bounds.text}",
        made,
        _progress(request, length),
        request.reason,
        failed,
    )


def _failed(request: Request) -> list[tuple[int, str]]:
    return [(ticks.from_datetime(ticks.parse_utc(start)), error) for start, error in sorted(request.failed.items())]


def _progress(request: Request, length: int) -> str:
    published = f"{len(request.published):,} of {counted(len(request.slices(length)), 'slice')} published"
    match request.state:
        case RequestState.WAITING if request.at > request.made:
            return f"for the first update from {_time(request.at)} on"
        case RequestState.WAITING:
            return "for the next update"
        case RequestState.CANCELLED:
            return f"by {request.cancelled_by} at {_time(request.ended)}"
        case RequestState.STARTED:
            return f"at {_time(request.started)}, {published}"
    return f"at {_time(request.ended)}, {published}"


def _time(instant: int | None) -> str:
    return "" if instant is None else f"{ticks.to_datetime(instant):%Y-%m-%d %H:%M}"
