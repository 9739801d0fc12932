"""The live job: it receives one event after another, and emits a window when the watermark passes its end."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.live_job.query import Query
from tests.live_job.windows import Row, open_windows
from tests.live_job.world import Event

EARLY = timedelta(minutes=5)


@dataclass(frozen=True)
class Policy:
    """The event ordering settings of a job."""

    late: timedelta
    out_of_order: timedelta
    adjusts: bool
    """Whether the times of late and out-of-order events are adjusted. Otherwise these events are dropped."""


class Job:
    """A running job. It begins without any state."""

    def __init__(self, query: Query, policy: Policy, partitions: Collection[str]) -> None:
        self._query = query
        self._policy = policy
        self._partitions = partitions
        self._newest: dict[tuple[str, str | None], datetime] = {}
        """The largest System.Timestamp of each scope: a partition or, with OVER, a partition and a device."""
        self._waiting: list[tuple[datetime, datetime, str, int, Event]] = []
        """Events after the watermark, as (System.Timestamp, arrival, partition, sequence number, event)."""
        self._windows = open_windows(query.window)
        self.emitted: list[Row] = []

    def receive(self, event: Event, arrival: datetime) -> None:
        """Give an event its System.Timestamp, or drop it."""
        time = self.system_timestamp(event, arrival)
        if time is not None and self._query.passes(event):
            self._waiting.append((time, arrival, event.partition, event.sequence, event))

    def system_timestamp(self, event: Event, arrival: datetime) -> datetime | None:
        """Return the System.Timestamp of the next event of its partition; None if the event is dropped."""
        policy = self._policy
        time = event.time
        if event.is_malformed or time is None or (self._query.over and event.device is None):
            return None
        if time - arrival > EARLY:
            return None
        if arrival - time > policy.late:
            if not policy.adjusts:
                return None
            time = arrival - policy.late
        scope = (event.partition, event.device if self._query.over else None)
        newest = self._newest.get(scope, time)
        if time < newest - policy.out_of_order:
            if not policy.adjusts:
                return None
            time = newest - policy.out_of_order
        self._newest[scope] = max(newest, time)
        return time

    def advance(self, clock: datetime) -> None:
        """Emit what is final, now that everything has been received that arrived before `clock`."""
        watermark = min(self._watermark(partition, clock) for partition in self._partitions)
        final = sorted(waiting for waiting in self._waiting if waiting[0] < watermark)
        self._waiting = [waiting for waiting in self._waiting if waiting[0] >= watermark]
        for time, *_, event in final:
            self._windows.add(time, event)
        self.emitted.extend(self._windows.closed(watermark))

    def _watermark(self, partition: str, clock: datetime) -> datetime:
        """Return a time before which no event of a partition can come any more.

        With OVER, this is the clock's only: a device that has not sent anything yet has no watermark of its own.
        """
        by_clock = clock - self._policy.late
        newest = self._newest.get((partition, None))
        if self._query.over or newest is None:
            return by_clock
        return max(by_clock, newest - self._policy.out_of_order)
