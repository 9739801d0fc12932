"""Some hours of a small fleet of devices, as Capture would archive them: the same arguments give the same bytes."""

import heapq
import json
import random
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from recapture.sample.capture_file import PropertyValue, SampleEvent, capture_file

_CADENCE = timedelta(seconds=30)
"""Time from one event of a device to the next; 40 devices send 28,800 events in six hours."""
_BURST_GAP = timedelta(milliseconds=50)
_OFFLINE = timedelta(minutes=20)
_OFFLINE_EVERY = timedelta(hours=2)
_LONGEST_SILENCE = timedelta(minutes=40)
_HEARTBEATS = timedelta(minutes=30)

_SKEWS = {
    3: timedelta(minutes=2),
    4: timedelta(minutes=-3),
    5: timedelta(minutes=4),
    6: timedelta(minutes=11),
}
"""Error of the clock, by device.

The last clock is further ahead than the early window allows (docs/time-model.md, section 2).
"""
_LATE_DEVICES = (7, 8, 9)
_PRETTY_DEVICE = 10
_NULL_PROPERTY_DEVICE = 11
_ZONELESS_DEVICE = 12
_SITES = tuple({"id": f"site-{number}", "region": "north" if number % 2 else "south"} for number in range(5))


@dataclass(frozen=True)
class SampleBlob:
    """A Capture blob and when it arrived."""

    name: str
    content: bytes
    last_modified: datetime
    """UTC, whole seconds."""


@dataclass(frozen=True)
class _Device:
    number: int

    @property
    def id(self) -> str:
        return f"device-{self.number:03}"


@dataclass(frozen=True)
class _Sent:
    enqueued: datetime
    device: str
    body: bytes
    properties: Mapping[str, PropertyValue]


def world(
    start: datetime,
    hours: int,
    *,
    seed: int = 0,
    partitions: int = 4,
    devices: int = 40,
    interval_seconds: int = 300,
    namespace: str = "contoso",
    event_hub: str = "telemetry",
) -> Iterator[SampleBlob]:
    """Yield the blobs of some hours from `start` (aware), by path time, then partition.

    Every event of a device goes to one partition. Bodies are `{"deviceId", "eventTime", "temperature", "site"}`.
    These faults always occur: clocks that are fast or slow, one beyond the early window; devices that are offline for
    20 minutes and then send all their events; a partition that is silent for a while; bodies that are not JSON or not
    UTF-8; event times that are missing or null. The first third is written with the schema of 2016. Events continue
    for one interval after the last hour, and empty blobs for 30 minutes more, so that the last hour is complete for a
    late tolerance of 600 s.
    """
    if start.tzinfo is None or hours < 1 or partitions < 1 or devices < 1:
        raise ValueError("a world needs an aware start, and at least one hour, one partition and one device")
    start = start.astimezone(UTC)
    interval = timedelta(seconds=interval_seconds)
    events_end = start + timedelta(hours=hours) + interval
    blobs_end = events_end + _HEARTBEATS
    upgraded = start + timedelta(hours=hours) / 3
    population = [
        [_Device(number) for number in range(devices) if _partition_of(number, partitions) == partition]
        for partition in range(partitions)
    ]
    streams = [
        _Captured(
            heapq.merge(
                *(_sent(device, start, events_end, hours, seed) for device in population[partition]),
                key=lambda sent: (sent.enqueued, sent.device),
            ),
            silence=_silence(start, hours) if partition == partitions - 1 else None,
        )
        for partition in range(partitions)
    ]
    arrivals = random.Random(f"{seed} arrivals")
    path_time = start
    while path_time < blobs_end:
        for partition, stream in enumerate(streams):
            content = capture_file(stream.until(path_time + interval), properties_with_null=path_time >= upgraded)
            written = path_time + interval + timedelta(seconds=1 + int(arrivals.random() * 8))
            name = f"{namespace}/{event_hub}/{partition}/{path_time:%Y/%m/%d/%H/%M/%S}.avro"
            yield SampleBlob(name, content, written.replace(microsecond=0))
        path_time += interval


class _Captured:
    """The log of one partition, read interval by interval. It gives the events sequence numbers and offsets."""

    def __init__(self, sent: Iterator[_Sent], silence: tuple[datetime, datetime] | None) -> None:
        self._sent = sent
        self._silence = silence
        self._next: _Sent | None = next(sent, None)
        self._sequence_number = 0
        self._offset = 0

    def until(self, end: datetime) -> Iterator[SampleEvent]:
        """Yield the events enqueued before `end` that have not been yielded yet."""
        while self._next is not None and self._next.enqueued < end:
            sent, self._next = self._next, next(self._sent, None)
            if self._silence and self._silence[0] <= sent.enqueued < self._silence[1]:
                continue
            yield SampleEvent(
                self._sequence_number, str(self._offset), sent.enqueued, sent.body, sent.device, sent.properties
            )
            self._sequence_number += 1
            self._offset += len(sent.body) + 96


def _partition_of(device: int, partitions: int) -> int:
    """Return the partition of a device: as if by a hash, but devices with faults are not in the silent partition."""
    if device <= _ZONELESS_DEVICE:
        return device % max(1, partitions - 1)
    return zlib.crc32(str(device).encode()) % partitions


def _silence(start: datetime, hours: int) -> tuple[datetime, datetime]:
    begin = start + timedelta(hours=hours) * 0.4
    return begin, begin + min(_LONGEST_SILENCE, timedelta(hours=hours) * 0.4)


def _sent(device: _Device, start: datetime, end: datetime, hours: int, seed: int) -> Iterator[_Sent]:
    """Yield the events of a device in the order in which the hub takes them."""
    rng = random.Random(f"{seed} {device.id}")
    offline = list(_offline(device, start, hours, rng))
    properties: dict[str, PropertyValue] = {}
    measured = start + _CADENCE * rng.random()
    last = start - _BURST_GAP
    count = 0
    while measured < end:
        back = next((until for since, until in offline if since <= measured < until), None)
        usual = measured + timedelta(milliseconds=50 + int(rng.random() * 900))
        enqueued = max(back or usual, last + (_BURST_GAP if back else timedelta()))
        enqueued = enqueued.replace(microsecond=enqueued.microsecond // 1000 * 1000)
        if enqueued >= end:
            return
        if device.number == _NULL_PROPERTY_DEVICE:
            properties = {"firmware": "1.4.2", "attempt": count % 3, "route": None} if count % 2 else {"attempt": 0}
        yield _Sent(enqueued, device.id, _body(device, measured, count, rng), properties)
        last = enqueued
        count += 1
        measured += _CADENCE + timedelta(microseconds=int((rng.random() - 0.5) * 2_000_000))


def _offline(device: _Device, start: datetime, hours: int, rng: random.Random) -> Iterator[tuple[datetime, datetime]]:
    if device.number not in _LATE_DEVICES:
        return
    block = start
    while block < start + timedelta(hours=hours):
        since = block + timedelta(minutes=10 + int(rng.random() * 20))
        yield since, since + _OFFLINE
        block += _OFFLINE_EVERY


def _body(device: _Device, measured: datetime, count: int, rng: random.Random) -> bytes:
    clock = measured + _SKEWS.get(device.number, timedelta())
    zone = "" if device.number == _ZONELESS_DEVICE and count % 2 else "Z"
    warmth = 20 + device.number % 7 + 4 * rng.random()
    body: dict[str, object] = {
        "deviceId": device.id,
        "eventTime": f"{clock:%Y-%m-%dT%H:%M:%S.%f}{int(rng.random() * 10)}{zone}",
        "temperature": round(warmth, 2),
        "site": _SITES[device.number % len(_SITES)],
    }
    ordinal = count * 41 + device.number * 97
    if ordinal % 1500 == 3:
        del body["eventTime"]
    elif ordinal % 1500 == 7:
        body["eventTime"] = None
    elif ordinal % 2000 == 11:
        return f"{device.id};{clock:%H:%M:%S};{body['temperature']}".encode()
    elif ordinal % 2000 == 13:
        return f'{{"deviceId":"{device.id}","place":"caf\N{LATIN SMALL LETTER E WITH ACUTE}"}}'.encode("latin-1")
    if device.number == _PRETTY_DEVICE:
        return json.dumps(body, indent=2).encode()
    return json.dumps(body, separators=(",", ":")).encode()
