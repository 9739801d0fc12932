"""Some hours of a small fleet of devices, as Capture would archive them: the same arguments give the same bytes."""

import heapq
import json
import random
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from recapture.tools.sample.capture_file import PropertyValue, SampleEvent, capture_file

_CADENCE = timedelta(seconds=30)
"""Time from one event of a device to the next; 40 devices send 28,800 events in six hours."""
_BURST_GAP = timedelta(milliseconds=50)
_LONGEST_SILENCE = timedelta(minutes=40)
_HEARTBEATS = timedelta(minutes=60)
"""How long empty blobs go on after the last events."""

_SKEWS = {3: timedelta(minutes=2), 4: timedelta(minutes=-3), 5: timedelta(minutes=4)}
"""Error of the clock, by device."""
_EARLY_DEVICE = 6
_EARLY, _EARLY_FOR = timedelta(minutes=11), timedelta(minutes=20)
"""Error of this device's clock at the start of every hour, and how long it lasts.

It is further ahead than the early window allows (docs/time-model.md, section 2).
"""
_OUTAGES = {7: timedelta(minutes=20), 8: timedelta(minutes=20), 9: timedelta(minutes=80)}
"""Length of the outages, by device. Such a device is offline for a sixth of the time."""
_PRETTY_DEVICE = 10
_NULL_PROPERTY_DEVICE = 11
_ZONELESS_DEVICE = 12
_DRIFTING_DEVICE = 13
_DRIFT, _CLOCK_SET_EVERY = timedelta(minutes=3), timedelta(minutes=50)
"""Time that the clock of the drifting device gains until it is set right, and how often it is."""
_RESENDING_DEVICE = 14
_RESENT_AFTER = timedelta(seconds=40)
"""Time after which the resending device repeats an event that was not acknowledged: after its next event."""
_LAST_DEVICE_WITH_FAULTS = _RESENDING_DEVICE
_NEW_DEVICES = 20
"""Number of the first device that gets the faulty release."""
_FAULTY_MINUTES = (timedelta(minutes=10), timedelta(minutes=45))
_Period = tuple[datetime, datetime]
_NEVER = datetime.max.replace(tzinfo=UTC)
_COMPACT = json.JSONEncoder(separators=(",", ":"))
_SITES = tuple({"id": f"site-{number}", "region": "north" if number % 2 else "south"} for number in range(5))


@dataclass(frozen=True)
class SampleBlob:
    """A Capture blob and when it arrived."""

    name: str
    content: bytes
    last_modified: datetime
    """UTC, whole seconds."""


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
    following_hours: int = 0,
    faulty_hour: int | None = None,
    seed: int = 0,
    partitions: int = 4,
    devices: int = 40,
    interval_seconds: int = 300,
    namespace: str = "contoso",
    event_hub: str = "telemetry",
) -> Iterator[SampleBlob]:
    """Yield the blobs of some hours from `start` (aware), by path time, then partition.

    Every event of a device goes to one partition. Bodies are `{"deviceId", "eventTime", "temperature", "site"}`.
    These faults always occur: clocks that are fast or slow, one that is beyond the early window for a third of each
    hour, and one that drifts and is set right; devices that are offline for 20 or 80 minutes and then send all their
    events; a device that sends events again after its next ones; a partition that is silent for a while; bodies that
    are not JSON or not UTF-8; event times that are missing or null. The first third is written with the schema of 2016.
    Events continue for one interval after the last hour, or for `following_hours`, and empty blobs for an hour more. So
    the last hour is complete for a late tolerance of 3600 s.

    In the hour `faulty_hour`, counted from 0, half of the devices have a release for 35 minutes that sends the
    temperature as a record.
    """
    if start.tzinfo is None or hours < 1 or partitions < 1 or devices < 1:
        raise ValueError("a world needs an aware start, and at least one hour, one partition and one device")
    start = start.astimezone(UTC)
    interval = timedelta(seconds=interval_seconds)
    events_end = start + timedelta(hours=hours) + max(interval, timedelta(hours=following_hours))
    blobs_end = events_end + _HEARTBEATS
    upgraded = start + timedelta(hours=hours) / 3
    faulty = None
    if faulty_hour is not None:
        since, until = (start + timedelta(hours=faulty_hour) + minutes for minutes in _FAULTY_MINUTES)
        faulty = since, until
    population = [
        [device for device in range(devices) if _partition_of(device, partitions) == partition]
        for partition in range(partitions)
    ]
    streams = [
        _Captured(
            heapq.merge(
                *(_sent(device, start, events_end, seed, faulty) for device in population[partition]),
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

    def __init__(self, sent: Iterator[_Sent], silence: _Period | None) -> None:
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
    if device <= _LAST_DEVICE_WITH_FAULTS:
        return device % max(1, partitions - 1)
    return zlib.crc32(str(device).encode()) % partitions


def _silence(start: datetime, hours: int) -> _Period:
    begin = start + timedelta(hours=hours) * 0.4
    return begin, begin + min(_LONGEST_SILENCE, timedelta(hours=hours) * 0.4)


def _sent(device: int, start: datetime, end: datetime, seed: int, faulty: _Period | None) -> Iterator[_Sent]:
    """Yield the events of a device in the order in which the hub takes them."""
    events = _events(device, start, end, seed, faulty)
    return _resent(events, end) if device == _RESENDING_DEVICE else events


def _id(device: int) -> str:
    return f"device-{device:03}"


def _events(device: int, start: datetime, end: datetime, seed: int, faulty: _Period | None) -> Iterator[_Sent]:
    rng = random.Random(f"{seed} {_id(device)}")
    outages = _outages(device, start, random.Random(f"{seed} {_id(device)} outages"))
    properties: dict[str, PropertyValue] = {}
    measured = start + _CADENCE * rng.random()
    last = start - _BURST_GAP
    count = 0
    offline, back = next(outages)
    while measured < end:
        if measured >= back:
            offline, back = next(outages)
        enqueued = measured + timedelta(milliseconds=50 + int(rng.random() * 900))
        enqueued = max(back, last + _BURST_GAP) if measured >= offline else max(enqueued, last)
        enqueued = enqueued.replace(microsecond=enqueued.microsecond // 1000 * 1000)
        if enqueued >= end:
            return
        if device == _NULL_PROPERTY_DEVICE:
            properties = {"firmware": "1.4.2", "attempt": count % 3, "route": None} if count % 2 else {"attempt": 0}
        as_record = faulty is not None and device >= _NEW_DEVICES and faulty[0] <= measured < faulty[1]
        clock = measured + _clock_error(device, measured - start)
        yield _Sent(enqueued, _id(device), _body(device, clock, count, as_record, rng), properties)
        last = enqueued
        count += 1
        measured += _CADENCE + timedelta(microseconds=int((rng.random() - 0.5) * 2_000_000))


def _resent(events: Iterator[_Sent], end: datetime) -> Iterator[_Sent]:
    """Yield the events of a device that has to send one in eleven again, so that it arrives after the next one."""
    for count, event in enumerate(events):
        if count % 10 == 5 and (following := next(events, None)):
            yield following
            event = replace(event, enqueued=event.enqueued + _RESENT_AFTER)
        if event.enqueued < end:
            yield event


def _outages(device: int, start: datetime, rng: random.Random) -> Iterator[_Period]:
    """Yield the outages of a device, in order, without end."""
    length = _OUTAGES.get(device)
    while length is not None:
        since = start + length / 2 + timedelta(minutes=int(rng.random() * (length / timedelta(minutes=1))))
        yield since, since + length
        start += 6 * length
    yield _NEVER, _NEVER


def _clock_error(device: int, since_start: timedelta) -> timedelta:
    if device == _DRIFTING_DEVICE:
        return _DRIFT * (since_start % _CLOCK_SET_EVERY / _CLOCK_SET_EVERY)
    if device == _EARLY_DEVICE:
        return _EARLY if since_start % timedelta(hours=1) < _EARLY_FOR else timedelta()
    return _SKEWS.get(device, timedelta())


def _body(device: int, clock: datetime, count: int, as_record: bool, rng: random.Random) -> bytes:
    zone = "" if device == _ZONELESS_DEVICE and count % 2 else "Z"
    warmth = round(20 + device % 7 + 4 * rng.random(), 2)
    body: dict[str, object] = {
        "deviceId": _id(device),
        "eventTime": f"{clock.replace(tzinfo=None).isoformat(timespec='microseconds')}{int(rng.random() * 10)}{zone}",
        "temperature": {"value": warmth, "unit": "C"} if as_record else warmth,
        "site": _SITES[device % len(_SITES)],
    }
    ordinal = count * 41 + device * 97
    if ordinal % 1500 == 3:
        del body["eventTime"]
    elif ordinal % 1500 == 7:
        body["eventTime"] = None
    elif ordinal % 2000 == 11:
        return f"{_id(device)};{clock:%H:%M:%S};{warmth}".encode()
    elif ordinal % 2000 == 13:
        return f'{{"deviceId":"{_id(device)}","place":"caf\N{LATIN SMALL LETTER E WITH ACUTE}"}}'.encode("latin-1")
    if device == _PRETTY_DEVICE:
        return json.dumps(body, indent=2).encode()
    return _COMPACT.encode(body).encode()
