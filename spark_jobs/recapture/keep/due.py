"""Decide which slices are due and why, from the state of the archive and of what is published. This does no I/O.

An update that was missed, killed, repeated or delayed changes nothing in the end.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from recapture.definition.sections import Schedule
from recapture.process.wording import counted
from recapture.run.outdated import in_words, is_outdated
from recapture.run_files.work import Lease, Request
from recapture.time_model import ticks

MISSING = "missing"
EARLY = "missing: will be published provisionally"
PROVISIONAL = "provisional: it was published before Capture had written everything"


@dataclass(frozen=True)
class Difference:
    """How the blobs of a published slice differ from those that it read."""

    added: int = 0
    modified: int = 0
    deleted: int = 0
    references: tuple[str, ...] = ()
    """Reference data that changed."""
    last_change: int = 0
    """Time of the last change that is known, in ticks."""

    def __str__(self) -> str:
        counts = [(self.added, "added"), (self.modified, "modified"), (self.deleted, "deleted")]
        changes = [f"{counted(count, 'blob')} {what}" for count, what in counts if count]
        changes += [f"reference data {name} changed" for name in self.references]
        return ", ".join(changes) or "its blobs changed"


@dataclass(frozen=True)
class Stop:
    """Run that ended without publishing anything, because of its audit or of an error."""

    run: str
    """Id of a run that its audit stopped; the range of another one."""
    start: int
    """Start of its first slice, in ticks."""
    slices: int
    """Number of its slices."""
    repeats: bool
    """Whether its input and its definition are those of now, as far as that is known, so that it would end the same."""
    error: str | None = None
    """Error that ended the run; None if its audit stopped it."""
    retry: int | None = None
    """Time at which a slice that failed alone is tried again, in ticks; None if a person has to decide."""

    @property
    def is_alone(self) -> bool:
        """Whether the slice is known to be at fault: it was the only one, and would end the same."""
        return self.repeats and self.slices == 1


@dataclass(frozen=True, kw_only=True)
class SliceFacts:
    """What is known of a slice."""

    waits_for: tuple[str, ...] = ()
    """Reasons why Capture may not have written the slice, a line each; empty if the slice is complete."""
    size: int | None = None
    """Size of the blobs that a run of the slice reads, in bytes; None if they were not listed."""
    read: str | None = None
    """What a run of the slice reads, as `archive.manifest.slice_read`; None if its blobs were not listed."""
    run: str | None = None
    """Run that is published; None if nothing is."""
    is_provisional: bool = False
    """Whether the slice was published before Capture had written everything."""
    is_unfinished: bool = False
    """Whether a table does not hold what is published, because a publication or a rollback was interrupted."""
    difference: Difference | None = None
    """Difference between what the archive has and what the slice read; None if there is none."""
    outdated: tuple[str, ...] = ()
    """Parts of the definition that differ from the present ones, as in `run.outdated.PARTS`."""
    rolled_back: str | None = None
    """Run that a person rolled back; None if the slice was published since."""
    stop: Stop | None = None
    """Last run that ended without publishing anything; None if the slice was published since."""


@dataclass(frozen=True, kw_only=True)
class State:
    """State of the archive and of what is published; all times are in ticks."""

    now: int
    since: int
    """Start of the first slice that is kept."""
    end: int
    """End of the last slice that has ended."""
    until: int
    """End of the last slice that has ended and is kept."""
    length: int
    """Length of a slice."""
    schedule: Schedule
    slices: Mapping[int, SliceFacts]
    """Slices of which something is known, by their starts. All others are complete, and nothing is published."""
    requests: Sequence[Request] = ()
    """Requests that have not ended."""
    leases: Sequence[Lease] = ()
    """Ranges that other updates and backfills compute now."""


@dataclass(frozen=True)
class DueSlice:
    """A slice that has to be computed."""

    start: int
    reasons: tuple[str, ...]
    size: int | None
    half: tuple[str, bool] | None = field(default=None, repr=False)
    """Stopped run to which the slice belongs, and whether it is in its second half: only slices of a half are computed
    together, until the slice at fault is alone. None if no such run is known."""
    requests: tuple[str, ...] = ()
    """Ids of the requests that want the slice."""
    is_retry: bool = False
    """Whether the slice failed alone: everything else goes first."""


@dataclass(frozen=True)
class WaitingSlice:
    """A slice that is not computed now."""

    start: int
    reasons: tuple[str, ...]
    """What would be done, such as `missing`."""
    waits_for: tuple[str, ...]


@dataclass(frozen=True)
class DueRange:
    """Contiguous slices that are computed in one run."""

    slices: tuple[DueSlice, ...]
    """Slices in order of time."""
    length: int = field(repr=False)

    @property
    def start(self) -> int:
        return self.slices[0].start

    @property
    def end(self) -> int:
        return self.slices[-1].start + self.length


@dataclass(frozen=True)
class Tick:
    """What one update does, what it leaves, and why."""

    ranges: tuple[DueRange, ...]
    """Ranges to compute: the newest complete slice, what people requested, then the others, newest first each.

    Those of slices that failed alone are last.
    """
    left: tuple[DueSlice, ...]
    """Slices that are left for the next update, in the order in which they would be computed."""
    waiting: tuple[WaitingSlice, ...]
    """Slices that wait, in order of time."""
    unfinished: tuple[int, ...]
    """Starts of the slices whose tables have to be brought in line with what is published."""


def tick(state: State) -> Tick:
    """Return what an update does in this state."""
    due, waiting = [], []
    requested = set(_requested(state))
    for start in sorted({*range(state.since, state.until, state.length), *requested}):
        if start not in requested and is_up_to_date(state.slices.get(start, _NOTHING)):
            continue
        verdict = _verdict(state, start, state.slices.get(start, _NOTHING))
        if isinstance(verdict, DueSlice):
            due.append(verdict)
        elif verdict is not None:
            waiting.append(verdict)
    live = _newest_complete(state)
    ordered = sorted(
        due, key=lambda slice_: (slice_.is_retry, not (slice_.requests or slice_.start == live), -slice_.start)
    )
    taken = _within_budget(ordered, state.schedule)
    unfinished = sorted(start for start, facts in state.slices.items() if facts.is_unfinished)
    return Tick(
        tuple(_ranges(ordered[:taken], state.length)),
        tuple(ordered[taken:]),
        tuple(waiting),
        tuple(unfinished),
    )


_NOTHING = SliceFacts()


def _newest_complete(state: State) -> int | None:
    """Return the start of the newest kept slice that Capture has written; None if there is none."""
    starts = range(state.until - state.length, state.since - 1, -state.length)
    return next((start for start in starts if not state.slices.get(start, _NOTHING).waits_for), None)


def is_up_to_date(facts: SliceFacts) -> bool:
    """Return whether a slice has to be computed only if a person requests it, or if its blobs change."""
    return facts.run is not None and facts.difference is None and not (facts.outdated or facts.is_provisional)


def _requested(state: State) -> Iterator[int]:
    for request in state.requests:
        yield from (
            start
            for start in request.slices(state.length)
            if start < state.end and request.wants(start, start + state.length)
        )


def _verdict(state: State, start: int, facts: SliceFacts) -> DueSlice | WaitingSlice | None:
    """Return whether a slice is due or waits; None if it is up to date."""
    requests = [request for request in state.requests if request.wants(start, start + state.length)]
    is_kept = state.since <= start < state.until
    requested = tuple(request.id for request in requests if request.at <= state.now)
    reasons = [*_requests(requests, state.now), *(_own_reasons(state, facts) if is_kept else ())]
    due = tuple(reason for reason, hold in reasons if hold is None)
    if not due:
        holds = tuple(hold for _, hold in reasons if hold is not None)
        return WaitingSlice(start, tuple(reason for reason, _ in reasons), holds) if reasons else None
    is_early = _is_early(state.schedule, facts)
    waits_for = (
        (() if is_early else facts.waits_for)
        or (() if requested else tuple(_stop_holds(facts, state.now)))
        or _leases(state, start)
    )
    if waits_for:
        return WaitingSlice(start, due, waits_for)
    stop, half = facts.stop, None
    if stop is not None and stop.repeats:
        half = stop.run, (start - stop.start) // state.length >= stop.slices // 2
    is_retry = stop is not None and stop.is_alone and not requested
    return DueSlice(start, due, facts.size, half, requested, is_retry)


def _is_early(schedule: Schedule, facts: SliceFacts) -> bool:
    """Return whether a slice is published although Capture may not have written everything: it has some blobs."""
    return schedule.provisional and facts.run is None and bool(facts.waits_for) and bool(facts.size)


def _requests(requests: Iterable[Request], now: int) -> Iterator[tuple[str, str | None]]:
    """Yield the requests of a slice as reasons, each with the time that it waits for; None if it does not wait."""
    for request in requests:
        yield f"requested by {request.by}", None if request.at <= now else ticks.to_text(request.at)


def _stop_holds(facts: SliceFacts, now: int) -> Iterator[str]:
    """Yield what a slice waits for because of what became of its last run, unless a person requests it."""
    stop = facts.stop
    if facts.rolled_back is not None:
        yield f"a person, because run {facts.rolled_back} was rolled back"
    elif stop is not None and stop.is_alone and stop.error is None:
        yield f"a person, because the audit stopped run {stop.run}"
    elif stop is not None and stop.is_alone and stop.retry is not None and now < stop.retry:
        yield f"{ticks.to_text(stop.retry)}, because its last run failed: {stop.error}"


def _leases(state: State, start: int) -> tuple[str, ...]:
    """Return the runs that compute a slice now."""
    return tuple(
        f"another run, which has been computing it since {ticks.to_text(lease.began)}"
        for lease in state.leases
        if lease.start <= start < lease.end
    )


def _own_reasons(state: State, facts: SliceFacts) -> Iterator[tuple[str, str | None]]:
    """Yield the reasons to compute a slice, each with what it waits for; None if it does not wait."""
    schedule = state.schedule
    if facts.run is None:
        yield EARLY if _is_early(schedule, facts) else MISSING, None
        return
    if facts.is_provisional:
        yield PROVISIONAL, None
    if facts.difference is not None:
        quiet_until = facts.difference.last_change + ticks.from_seconds(60 * schedule.quiet_minutes)
        hold = None
        if schedule.late_data == "mark":
            hold = "a person, because schedule.late_data is mark"
        elif state.now < quiet_until:
            hold = f"{ticks.to_text(quiet_until)}, or later if a blob changes again"
        yield f"stale: {facts.difference}", hold
    if is_outdated(facts.outdated):
        hold = "a person, because schedule.outdated is keep" if schedule.outdated == "keep" else None
        yield f"outdated: {in_words([facts.outdated])}", hold


def _within_budget(due: Sequence[DueSlice], schedule: Schedule) -> int:
    """Return the number of slices, in their order, that one update may take; one at least, if any is due."""
    size = 0
    for number, slice_ in enumerate(due[: schedule.at_most_slices]):
        size += slice_.size or 0
        if number and schedule.at_most_bytes is not None and size > schedule.at_most_bytes:
            return number
    return min(len(due), schedule.at_most_slices)


def _ranges(ordered: Iterable[DueSlice], length: int) -> Iterator[DueRange]:
    """Yield the contiguous ranges, in order. Slices of a stopped run are only together with those of their half."""
    numbered = enumerate(ordered)
    for _, group in groupby(numbered, lambda item: (item[1].start + item[0] * length, item[1].half)):
        yield DueRange(tuple(slice_ for _, slice_ in reversed([*group])), length)
