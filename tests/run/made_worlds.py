"""Generated worlds of two hours: how they are drawn, and the rows and counts that the oracle expects of a run."""

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from recapture.time_model.ticks import from_datetime, from_seconds, to_datetime
from tests import oracle, oracle_windows
from tests.worlds import HOUR, TEN, World, at

ZERO = from_datetime(TEN)
EARLY = from_seconds(300)


@dataclass(frozen=True)
class Sent:
    """An event of a generated world: as the oracle sees it, and as a body."""

    event: oracle.Event
    body: bytes


@dataclass(frozen=True)
class Made:
    """A generated world: a job, a query, and blobs as (partition, arrival, opened, events in the file's order)."""

    policy: oracle.Policy
    timestamp_by: bool
    over: bool
    size: int
    hop: int
    hours: int
    blobs: tuple[tuple[str, int, datetime, tuple[Sent, ...]], ...]

    @property
    def query(self) -> str:
        by = " TIMESTAMP BY eventTime" + (" OVER deviceId" if self.over else "") if self.timestamp_by else ""
        window = (
            f"TumblingWindow(second, {self.size})"
            if self.size == self.hop
            else f"HoppingWindow(second, {self.size}, {self.hop})"
        )
        return (
            "CREATE TABLE telemetry (eventTime datetime, deviceId nvarchar(max), temperature float, number bigint);\n"
            "SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events, COUNT(temperature) AS measured, "
            "AVG(temperature) AS mean, SUM(number) AS total, MIN(number) AS least, MAX(temperature) AS warmest\n"
            f"INTO aggregates FROM telemetry{by} GROUP BY deviceId, {window}"
        )

    @property
    def job(self) -> dict[str, Any]:
        late = self.policy.late
        return {
            "eventsOutOfOrderPolicy": self.policy.action,
            "eventsOutOfOrderMaxDelayInSeconds": self.policy.out_of_order // from_seconds(1),
            "eventsLateArrivalMaxDelayInSeconds": -1 if late is None else late // from_seconds(1),
        }

    @property
    def events(self) -> list[oracle.Event]:
        return [sent.event for *_, events in self.blobs for sent in events]


# Where an application time lies: seconds after the arrival, or exactly on one of the limits and 100 ns off it.
_OFFSETS = st.one_of(
    st.integers(-240, 0), st.integers(-240, 0), st.integers(-900, 400), st.sampled_from((-7200, -3600, -600, 300, 0))
).map(from_seconds)
_NUDGES = st.sampled_from((0, 0, 0, -1, 1, 12_345_678))
_DEVICES = st.sampled_from(("a", "b", "a", "c", "", None))
_WHAT = st.sampled_from(
    (
        *12 * ("sound",),
        *("not JSON", "not UTF-8", "not an object", "no time", "null time", "not a time"),
        *("text for a number", "digits for a number", "no number"),
    )
)
_LEFT_OUT = object()
_CHANGES: dict[str, dict[str, Any]] = {
    "no time": {"eventTime": _LEFT_OUT},
    "null time": {"eventTime": None},
    "not a time": {"eventTime": "yesterday"},
    "text for a number": {"number": "nine"},
    "digits for a number": {"number": "9"},
    "no number": {"number": _LEFT_OUT},
}
_SPOILS: dict[str, Callable[[bytes], bytes]] = {
    "not JSON": lambda content: content[:-1],
    "not UTF-8": lambda content: content[:-1] + b', "place": "caf\xe9"}',
    "not an object": lambda content: b"7" + b" " * len(content),
}
_GAPS = st.sampled_from((0, 0, 1, 60, 300, 300, 300, 900, 2400))


@st.composite
def made(draw: DrawFn) -> Made:
    timestamp_by = draw(st.sampled_from((True,) * 7 + (False,)))
    policy = oracle.Policy(
        out_of_order=from_seconds(draw(st.sampled_from((0, 0, 7, 599)))),
        late=draw(st.sampled_from((0, 600, 600, None)).map(lambda late: None if late is None else from_seconds(late))),
        early=EARLY,
        action=draw(st.sampled_from(("Adjust", "Drop"))),
    )
    size, hop = draw(st.sampled_from(((300, 300), (300, 300), (600, 120), (90, 60), (7200, 1800))))
    blobs: list[tuple[str, int, datetime, tuple[Sent, ...]]] = []
    for partition in map(str, range(draw(st.integers(1, 3)))):
        blobs += draw(_partition(partition, policy, timestamp_by and draw(st.booleans())))
    over = any(sent.event.over is not None for *_, events in blobs for sent in events)
    blobs = [(p, arrival, opened, tuple(_keyed(sent, over) for sent in events)) for p, arrival, opened, events in blobs]
    return Made(policy, timestamp_by, over, size, hop, 2, tuple(blobs))


def _keyed(sent: Sent, over: bool) -> Sent:
    """Return the event with the OVER key of the query, whatever its partition drew."""
    key = (sent.event.payload.get("deviceId"),) if over else None
    return Sent(dataclasses.replace(sent.event, over=key), sent.body)


@st.composite
def _partition(
    draw: DrawFn, partition: str, policy: oracle.Policy, over: bool
) -> list[tuple[str, int, datetime, tuple[Sent, ...]]]:
    """Draw the blobs of a partition. Blobs with the same LastModified share a range of sequence numbers."""
    arrivals = list(itertools.accumulate(draw(st.lists(_GAPS, min_size=8, max_size=24)), initial=-2400))
    blobs: list[tuple[str, int, datetime, tuple[Sent, ...]]] = []
    latest = ZERO
    number = 0
    for arrival, tied in itertools.groupby(arrivals):
        count = len(list(tied))
        tick = ZERO + from_seconds(arrival)
        shares: list[list[Sent]] = [[] for _ in range(count)]
        for _ in range(draw(st.integers(0, 5))):
            sent = draw(_sent(partition, tick, number, latest - policy.out_of_order, over))
            if sent.event.time is not None and sent.event.time <= tick + EARLY:
                latest = max(latest, sent.event.time)
            shares[draw(st.integers(0, count - 1))].append(sent)
            number += 1
        for share in shares:
            opened = at(-60) + timedelta(seconds=len(blobs))
            blobs.append((partition, tick, opened, tuple(draw(st.permutations(share)))))
    return blobs


@st.composite
def _sent(draw: DrawFn, partition: str, arrival: int, number: int, watermark: int, over: bool) -> Sent:
    what, device = draw(_WHAT), draw(_DEVICES)
    time = draw(st.one_of(_OFFSETS.map(lambda offset: arrival + offset), st.just(watermark))) + draw(_NUDGES)
    payload: dict[str, Any] = {
        "deviceId": device,
        "temperature": draw(st.one_of(st.none(), st.integers(-80, 160).map(lambda quarters: quarters / 4))),
        "number": draw(st.one_of(st.none(), st.integers(-9, 9))),
    }
    fields: dict[str, Any] = {"eventTime": _text(time), **payload, "ignored": {"deeper": [number]}}
    malformed = what not in ("sound", "null time")
    fields |= _CHANGES.get(what, {})
    content = json.dumps({name: value for name, value in fields.items() if value is not _LEFT_OUT}).encode()
    content = _SPOILS.get(what, bytes)(content)
    valid = what == "sound"
    event = oracle.Event(
        partition, arrival, number, time if valid else None, (device,) if over else None, malformed, payload
    )
    return Sent(event, content)


def _text(time: int) -> str:
    """Return an instant with all seven decimals."""
    return f"{to_datetime(time):%Y-%m-%dT%H:%M:%S}.{time % 10_000_000:07}Z"


def put(home: Path, made: Made) -> World:
    world = World(home)
    for partition, arrival, opened, events in made.blobs:
        numbered = ((sent.event.sequence, sent.body) for sent in events)
        world.put_numbered(partition, to_datetime(arrival), numbered, opened)
    return world


def expected_rows(made: Made) -> list[dict[str, Any]]:
    outcomes = oracle.process(made.events, made.policy, made.timestamp_by)
    end = ZERO + made.hours * from_seconds(3600)
    window = oracle_windows.Hopping(from_seconds(made.size), from_seconds(made.hop))
    return list(map(_row, oracle.windows(outcomes, window, ("deviceId",), ZERO, end)))


def _row(window: oracle_windows.Content) -> dict[str, Any]:
    temperatures, numbers = ([event.payload[name] for event in window.members] for name in ("temperature", "number"))
    return {
        "windowEnd": to_datetime(window.end),
        "deviceId": window.group[0],
        "events": len(window.members),
        "measured": oracle_windows.count(temperatures),
        "mean": oracle_windows.average(temperatures),
        "total": oracle_windows.total(numbers),
        "least": oracle_windows.least(numbers),
        "warmest": oracle_windows.greatest(temperatures),
        "slice_start": TEN + (to_datetime(window.end - 1) - TEN) // HOUR * HOUR,
    }


def expected_counts(made: Made) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the counts by slice and partition.

    Without a late limit, the verdicts are those of reading from the slice's first arrival.
    """
    partitions = {partition for partition, *_ in made.blobs}
    counts = {}
    for hour in range(made.hours):
        start, end = (ZERO + from_seconds(3600 * (hour + n)) for n in (0, 1))
        first = start - from_seconds(made.size) - EARLY if made.policy.late is None and made.timestamp_by else 0
        read = [event for event in made.events if event.arrival >= first]
        outcomes = oracle.process(read, made.policy, made.timestamp_by)
        metrics = oracle.slice_metrics(outcomes, start, end)
        for partition in partitions:
            arrived = [events for p, arrival, _, events in made.blobs if p == partition and start < arrival <= end]
            counts[f"{to_datetime(start):%Y-%m-%dT%H:%M:%SZ}", partition] = {
                **metrics.get(partition, dict.fromkeys(oracle.METRICS, 0)),
                "OutputWatermarkDelaySeconds": expected_delay(made, outcomes, partition, start, end),
                "InputEventsSourcesTotal": len(arrived),
                "InputEventBytes": sum(len(sent.body) for events in arrived for sent in events),
            }
    return counts


def expected_delay(
    made: Made, outcomes: Iterable[oracle.Outcome], partition: str, start: int, end: int
) -> float | None:
    """Return the newest arrival in the slice less the watermark after its events, in seconds."""
    arrived = [
        outcome for outcome in outcomes if outcome.event.partition == partition and start < outcome.event.arrival <= end
    ]
    times = [outcome.system_timestamp for outcome in arrived if outcome.system_timestamp is not None]
    if not times:
        return None
    tolerance = made.policy.out_of_order if made.timestamp_by else 0
    return (max(outcome.event.arrival for outcome in arrived) - max(times) + tolerance) / from_seconds(1)


def by_identity(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (row["windowEnd"], row["deviceId"] is not None, row["deviceId"] or ""))
