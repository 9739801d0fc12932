"""The open windows of a job. They take events in the order of their System.Timestamps."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tests.live_job.query import Hopping, Session
from tests.live_job.world import Event

ZERO = datetime(1, 1, 1, tzinfo=UTC)
"""Ends of windows are multiples of their hop from here on."""
Identity = tuple[datetime, str | None]
"""The window end and the device of a row."""


@dataclass(frozen=True)
class Row:
    """A row that a job emits."""

    end: datetime
    device: str | None
    events: int
    average: float | None
    least: float | None
    greatest: float | None

    @property
    def identity(self) -> Identity:
        return self.end, self.device


def row(end: datetime, device: str | None, events: Iterable[Event]) -> Row:
    """Return the row of the events of one device in a window."""
    members = list(events)
    values = [event.temperature for event in members if event.temperature is not None]
    if not values:
        return Row(end, device, len(members), None, None, None)
    return Row(end, device, len(members), sum(values) / len(values), min(values), max(values))


def multiple_from(instant: datetime, length: timedelta, shift: timedelta = timedelta()) -> datetime:
    """Return the first multiple of a length that is not before an instant."""
    below = instant - (instant - ZERO - shift) % length
    return instant if below == instant else below + length


class HoppingWindows:
    """The open hopping or tumbling windows."""

    def __init__(self, window: Hopping) -> None:
        self._window = window
        self._open: dict[Identity, list[Event]] = {}

    def add(self, time: datetime, event: Event) -> None:
        """Put an event into every window (end - size, end] that holds its time."""
        end = multiple_from(time, self._window.hop)
        while time > end - self._window.size:
            self._open.setdefault((end, event.device), []).append(event)
            end += self._window.hop

    def closed(self, watermark: datetime) -> Iterator[Row]:
        """Yield the rows of the windows that end before the watermark, and forget the windows."""
        for end, device in sorted(self._open, key=lambda identity: (identity[0], identity[1] or "")):
            if end < watermark:
                yield row(end, device, self._open.pop((end, device)))


@dataclass
class OpenSession:
    """A session that may still get events."""

    first: datetime
    last: datetime
    timeout: timedelta
    deadline: datetime | None
    """When it ends, whatever comes; None until its second event sets it."""
    was_cut: bool
    """Whether it continues a session that was cut at its deadline."""
    events: list[Event] = field(default_factory=list)

    @property
    def end(self) -> datetime:
        pause = self.last + self.timeout
        return pause if self.deadline is None else min(pause, self.deadline)


class SessionWindows:
    """The session of each device: docs/time-model.md, section 4.2."""

    def __init__(self, window: Session) -> None:
        self._window = window
        self._sessions: dict[str | None, OpenSession] = {}
        """The last session of each device, without its events once its row is emitted."""
        self._rows: list[Row] = []

    def _span_end(self, time: datetime) -> datetime:
        """Return the end of the span of a time: the first multiple of the maximum duration that is not before it."""
        return multiple_from(time, self._window.max_duration, self._window.shift)

    def add(self, time: datetime, event: Event) -> None:
        """Extend the session of a device, or open the next one."""
        session = self._sessions.get(event.device)
        if session is not None and time > session.end:
            self._close(session, event.device)
        if session is None or time > session.end:
            session = self._sessions[event.device] = self._opened(time, session)
        elif session.deadline is None:
            after = timedelta() if session.was_cut else self._window.max_duration
            session.deadline = self._span_end(time) + after
        session.last = time
        session.events.append(event)

    def _opened(self, time: datetime, previous: OpenSession | None) -> OpenSession:
        """Return the session that an event opens; only the first one of a device has a deadline at once."""
        window = self._window
        is_first = previous is None or time - previous.last > window.timeout + window.max_duration
        was_cut = previous is not None and time - previous.last <= window.timeout
        deadline = self._span_end(time) + window.max_duration if is_first else None
        return OpenSession(time, time, window.timeout, deadline, was_cut)

    def _close(self, session: OpenSession, device: str | None) -> None:
        if session.events:
            self._rows.append(row(session.end, device, session.events))
            session.events = []

    def closed(self, watermark: datetime) -> Iterator[Row]:
        """Yield the rows of the sessions that ended before the watermark."""
        for device, session in self._sessions.items():
            if session.end < watermark:
                self._close(session, device)
        yield from self._rows
        self._rows = []


def open_windows(window: Hopping | Session) -> HoppingWindows | SessionWindows:
    """Return the open windows of a job that has just started."""
    return HoppingWindows(window) if isinstance(window, Hopping) else SessionWindows(window)
