"""A simulated live job and the archive of its events: an independent witness for comparisons of the two.

The simulation shares no code with the engine or with `tests/oracle.py`. It follows docs/time-model.md, and is slow and
obvious: a job receives one event after another, keeps windows open, and emits a window when the watermark passes its
end. The engine, in contrast, computes a range from files.

A `Case` is a world (`world.py`), a query (`query.py`), and how a job (`job.py`) ran on it. In a case that `draw`
returns, the rows of the live job and those of a correct backfill are equal. `faults.py` changes a case, for example by
a downtime or a late blob. `truth.py` says which rows then differ because of which faults. `files.py` writes a case to a
folder: the archive, the pipeline file, and the output of the live job.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby
from random import Random
from typing import Literal

from tests.live_job.job import EARLY, Job, Policy
from tests.live_job.query import Filter, Hopping, Query, Session
from tests.live_job.windows import Row
from tests.live_job.world import FIRST, LAST, MINUTE, RANGE_END, RANGE_START, SECOND, Blob, Event, world

Arrival = Literal["BlobLastModified", "EventEnqueuedUtcTime"]
Kind = Literal["tumbling", "hopping", "filtered", "session"]
Delivery = tuple[datetime, Event]
"""An event with its arrival."""
END = LAST + timedelta(hours=6)
"""When the job has emitted everything: later than any arrival plus a late tolerance."""
SAME_EVENT = timedelta(hours=1)
"""How long after an event a copy of it is recognised as a duplicate."""


@dataclass(frozen=True)
class Outage:
    """The job was stopped from `start` to `end`, and then started with an output start mode.

    * `last output`: it continues after the newest row that it had emitted.
    * `now`: its first rows are those of `end`. It reads the events from before, so its windows are whole.
    * `now, without history`: it reads only what arrives from `end` on, so its first windows are cut.
    """

    start: datetime
    end: datetime
    restart: Literal["last output", "now", "now, without history"]


@dataclass(frozen=True)
class Live:
    """How the live job ran, and how it wrote its rows."""

    query: Query
    policy: Policy
    arrival: Arrival
    outages: tuple[Outage, ...] = ()
    """Outages in the order of time."""
    written_twice: tuple[datetime, datetime] | None = None
    """Rows whose window ends in this range (start, end] are written twice."""
    sums_differ: bool = False
    """Whether the mean of a row of three or more events differs in its last digit, as after sums in another order."""
    shuffled: int | None = None
    """Seed of the order of the rows; None if they are in the order in which they were emitted."""


@dataclass(frozen=True)
class Case:
    """A world, the live job that ran on it, and the archive that a backfill reads, with the pipeline's settings."""

    blobs: tuple[Blob, ...]
    """What Capture wrote, and when. The live job receives these events, whatever happens to the archive."""
    query: Query
    policy: Policy
    arrival: Arrival
    live: Live
    archive: tuple[Blob, ...]
    """The blobs that are in the archive during the backfill."""
    written_later: tuple[Blob, ...] = field(default=())
    """The blobs that come into the archive after the backfill."""

    @property
    def partitions(self) -> list[str]:
        return sorted({blob.partition for blob in self.blobs})


def draw(seed: int, kind: Kind, arrival: Arrival = "BlobLastModified") -> Case:
    """Return the case of a seed without faults, with a query of this kind."""
    random = Random(seed)
    blobs = world(random)
    query = queries(random)[kind]
    policy = Policy(
        late=random.choice([60, 300, 600, 600, 1200]) * SECOND,
        out_of_order=random.choice([0, 5, 60, 300]) * SECOND,
        adjusts=random.random() < 0.7,
    )
    return Case(blobs, query, policy, arrival, Live(query, policy, arrival), archive=blobs)


def queries(random: Random) -> dict[Kind, Query]:
    """Return a query of each kind, with or without OVER."""
    over = random.random() < 0.5
    five = Hopping(5 * MINUTE, 5 * MINUTE)
    return {
        "tumbling": Query(five, over),
        "hopping": Query(Hopping(10 * MINUTE, random.choice([2, 4, 5]) * MINUTE), over),
        "filtered": Query(five, over, Filter(">", random.choice([19.5, 20.0, 20.5]))),
        "session": Query(Session(random.choice([120, 180, 300]) * SECOND, 10 * MINUTE), over),
    }


def live_rows(case: Case, *, with_duplicates: bool = True) -> list[Row]:
    """Return the rows that the live job wrote, in the order in which it wrote them.

    Without duplicates, it receives an event once that `blobs` have again within an hour, as a backfill does.
    """
    live = case.live
    rows = list(_emitted(live, case.blobs, case.partitions, with_duplicates))
    if live.written_twice is not None:
        start, end = live.written_twice
        rows = [row for row in rows for _ in range(2 if start < row.end <= end else 1)]
    if live.sums_differ:
        rows = [_with_another_last_digit(row) for row in rows]
    if live.shuffled is not None:
        Random(live.shuffled).shuffle(rows)
    return rows


def _with_another_last_digit(row: Row) -> Row:
    if row.average is None or row.events < 3:
        return row
    return replace(row, average=math.nextafter(row.average, math.inf))


def _emitted(live: Live, blobs: Iterable[Blob], partitions: list[str], with_duplicates: bool) -> Iterator[Row]:
    """Yield the rows that a job emits; after every outage, it is another one without the state of the one before."""
    deliveries = delivered(blobs, live.arrival)
    if not with_duplicates:
        deliveries = list(without_duplicates(deliveries))
    first_output, reads_from = FIRST, FIRST
    newest_output = FIRST
    for stop, outage in [(outage.start, outage) for outage in live.outages] + [(END, None)]:
        job = Job(live.query, live.policy, partitions)
        receive(job, [delivery for delivery in deliveries if reads_from <= delivery[0] < stop], stop)
        rows = [row for row in job.emitted if row.end >= first_output]
        yield from rows
        newest_output = max([newest_output, *(row.end for row in rows)])
        if outage is None:
            return
        continues = outage.restart == "last output"
        first_output = newest_output + timedelta(microseconds=1) if continues else outage.end
        has_history = outage.restart != "now, without history"
        reads_from = first_output - live.query.window.reach - EARLY if has_history else outage.end


def archived_rows(case: Case) -> list[Row]:
    """Return the rows of a job without faults that receives what is in the archive, each event once.

    These are the rows that a backfill must publish.
    """
    job = Job(case.query, case.policy, case.partitions)
    receive(job, without_duplicates(delivered(case.archive, case.arrival)), END)
    return job.emitted


def delivered(blobs: Iterable[Blob], arrival: Arrival) -> list[Delivery]:
    """Return the events in the order in which a job receives them, with their arrivals."""
    deliveries = [
        (blob.modified if arrival == "BlobLastModified" else event.enqueued, event)
        for blob in blobs
        for event in blob.events
    ]
    return sorted(deliveries, key=lambda delivery: (delivery[0], delivery[1].partition, delivery[1].sequence))


def without_duplicates(deliveries: Iterable[Delivery]) -> Iterator[Delivery]:
    """Yield the deliveries without those of an event that was delivered in the hour before: section 5.1."""
    newest: dict[tuple[str, int], datetime] = {}
    for arrival, event in deliveries:
        number = event.partition, event.sequence
        if number not in newest or arrival - newest[number] > SAME_EVENT:
            yield arrival, event
        newest[number] = arrival


def receive(job: Job, deliveries: Iterable[Delivery], until: datetime) -> None:
    """Let a job receive events in real time, until its clock reads `until`."""
    for clock, together in groupby(deliveries, key=lambda delivery: delivery[0]):
        job.advance(clock)
        for arrival, event in together:
            job.receive(event, arrival)
    job.advance(until)


def in_range(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of the range in which rows are compared."""
    return [row for row in rows if RANGE_START < row.end <= RANGE_END]
