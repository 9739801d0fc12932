"""Seeded worlds: what the devices sent to a hub, and the blobs that Capture wrote of it."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
INTERVAL = 5 * MINUTE
FIRST = datetime(2024, 3, 1, 8, 45, tzinfo=UTC)
"""When the first blobs of every world were opened."""
LAST = datetime(2024, 3, 1, 12, 45, tzinfo=UTC)
"""When the last blobs of every world were closed."""
RANGE_START = datetime(2024, 3, 1, 10, tzinfo=UTC)
RANGE_END = datetime(2024, 3, 1, 12, tzinfo=UTC)
"""The range (start, end] of window ends in which rows are compared: far from both ends of the world."""
MOST_EVENTS = 480


@dataclass(frozen=True)
class Event:
    """An event of the hub, and what its body says."""

    partition: str
    sequence: int
    enqueued: datetime
    time: datetime | None
    """The application time; None if the body lacks it."""
    device: str | None
    temperature: float | None
    is_malformed: bool = False
    """Whether the body is not JSON."""

    @property
    def body(self) -> bytes:
        if self.is_malformed:
            return b"{"
        fields: dict[str, object] = {"deviceId": self.device, "temperature": self.temperature}
        if self.time is not None:
            fields["eventTime"] = self.time.isoformat().replace("+00:00", "Z")
        return json.dumps(fields).encode()


@dataclass(frozen=True)
class Blob:
    """A blob of a partition: when Capture opened it, when it was last modified, and its events."""

    partition: str
    opened: datetime
    modified: datetime
    events: tuple[Event, ...] = ()


def world(random: Random) -> tuple[Blob, ...]:
    """Return the blobs of a world: for each partition one of every interval, with or without events.

    Temperatures are multiples of a quarter, so that sums of them are exact in every order.
    """
    partitions = [str(number) for number in range(random.randint(1, 3))]
    devices = [f"device-{number}" for number in range(random.randint(2, 4))]
    share_ahead = random.choice([0, 0.02, 0.1])
    instants = sorted(FIRST + random.random() * (LAST - FIRST) for _ in range(random.randint(250, MOST_EVENTS)))
    events: dict[str, list[Event]] = {partition: [] for partition in partitions}
    for instant in instants:
        partition, enqueued = random.choice(partitions), to_millisecond(instant)
        events[partition].append(
            Event(
                partition,
                sequence=len(events[partition]) + 1000,
                enqueued=enqueued,
                time=None if random.random() < 0.01 else application_time(random, enqueued, share_ahead),
                device=None if random.random() < 0.01 else random.choice(devices),
                temperature=None if random.random() < 0.03 else random.randint(60, 100) / 4,
                is_malformed=random.random() < 0.01,
            )
        )
    return tuple(blob for partition in partitions for blob in captured(random, partition, events[partition]))


def to_millisecond(instant: datetime) -> datetime:
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def application_time(random: Random, enqueued: datetime, share_ahead: float) -> datetime:
    """Return when the device says that an event happened: usually just before the hub received it."""
    kind = random.random()
    if kind < share_ahead:
        time = enqueued + random.uniform(0, 12) * MINUTE
    elif kind < 0.6:
        time = enqueued - random.uniform(0, 20) * SECOND
    elif kind < 0.9:
        time = enqueued - random.uniform(0, 4) * MINUTE
    else:
        time = enqueued - random.uniform(0, 25) * MINUTE
    if random.random() < 0.1:
        return time.replace(minute=time.minute // 5 * 5, second=0, microsecond=0)
    return to_millisecond(time) if random.random() < 0.3 else time.replace(microsecond=0)


def captured(random: Random, partition: str, events: Iterable[Event]) -> list[Blob]:
    """Return the blobs of a partition. Capture writes some of them several minutes late."""
    remaining = list(events)
    blobs = []
    opened = FIRST
    while opened < LAST:
        closed = opened + INTERVAL
        delay = random.randint(1, 12 * 60) if random.random() < 0.05 else random.randint(0, 15)
        blobs.append(
            Blob(
                partition,
                opened,
                modified=closed + delay * SECOND + SECOND,
                events=tuple(event for event in remaining if opened <= event.enqueued < closed),
            )
        )
        opened = closed
    return blobs
