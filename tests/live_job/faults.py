"""Faults: what may happen to a live job, its output or the archive, so that the two disagree.

A fault changes a case, and several faults change it one after another, in the order of `FAULTS`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import reduce
from random import Random
from typing import ClassVar, Literal, Protocol

from tests.live_job.case import Case, Outage
from tests.live_job.query import Filter, Session
from tests.live_job.world import INTERVAL, LAST, MINUTE, RANGE_START, SECOND, Blob


class Fault(Protocol):
    """Something that goes wrong; it has a name, by which the truth calls it."""

    name: ClassVar[str]

    def inject(self, case: Case) -> Case:
        """Return the case in which this went wrong, too."""


@dataclass(frozen=True)
class Downtime:
    """The job is stopped for 20 minutes."""

    name: ClassVar[str] = "downtime"
    start: datetime
    restart: Literal["last output", "now", "now, without history"]

    @property
    def end(self) -> datetime:
        return self.start + 20 * MINUTE

    def inject(self, case: Case) -> Case:
        outage = Outage(self.start, self.end, self.restart)
        return replace(case, live=replace(case.live, outages=(*case.live.outages, outage)))


@dataclass(frozen=True)
class SmallerTolerance:
    """The job has a smaller late tolerance than the pipeline."""

    name: ClassVar[str] = "smaller tolerance"
    late: timedelta

    def inject(self, case: Case) -> Case:
        policy = replace(case.live.policy, late=self.late)
        return replace(case, live=replace(case.live, policy=policy))


@dataclass(frozen=True)
class EnqueuedArrival:
    """For the job, an event arrives when the hub enqueues it; for the pipeline, when Capture writes its blob."""

    name: ClassVar[str] = "enqueued arrival"

    def inject(self, case: Case) -> Case:
        return replace(case, live=replace(case.live, arrival="EventEnqueuedUtcTime"))


@dataclass(frozen=True)
class OtherQuery:
    """The job runs another version of the query, with this condition."""

    name: ClassVar[str] = "other query"
    where: Filter

    def inject(self, case: Case) -> Case:
        return replace(case, live=replace(case.live, query=replace(case.live.query, where=self.where)))


@dataclass(frozen=True)
class OtherDeadline:
    """The job cuts sessions this long after the multiples of their maximum duration."""

    name: ClassVar[str] = "other deadline"
    shift: timedelta

    def inject(self, case: Case) -> Case:
        window = case.live.query.window
        assert isinstance(window, Session), "only sessions have deadlines"
        query = replace(case.live.query, window=replace(window, shift=self.shift))
        return replace(case, live=replace(case.live, query=query))


@dataclass(frozen=True)
class LastDigits:
    """The job adds the values in another order, so that means differ in their last digits."""

    name: ClassVar[str] = "last digits"

    def inject(self, case: Case) -> Case:
        return replace(case, live=replace(case.live, sums_differ=True))


@dataclass(frozen=True)
class WrittenTwice:
    """The job writes the rows whose windows end in (start, end] twice."""

    name: ClassVar[str] = "written twice"
    start: datetime
    end: datetime

    def inject(self, case: Case) -> Case:
        return replace(case, live=replace(case.live, written_twice=(self.start, self.end)))


@dataclass(frozen=True)
class RowOrder:
    """The job writes its rows in another order. No row differs."""

    name: ClassVar[str] = "row order"
    seed: int

    def inject(self, case: Case) -> Case:
        return replace(case, live=replace(case.live, shuffled=self.seed))


@dataclass(frozen=True)
class ArchivedTwice:
    """Capture writes the events of a blob again: in the same blob, or some intervals later.

    A backfill recognises what arrives again within an hour. With LastModified as arrival, it takes later copies for
    late events.
    """

    name: ClassVar[str] = "archived twice"
    partition: str
    opened: datetime
    intervals_later: int

    def inject(self, case: Case) -> Case:
        (copied,) = (blob for blob in case.blobs if (blob.partition, blob.opened) == (self.partition, self.opened))
        target = self.partition, self.opened + self.intervals_later * INTERVAL

        def with_copies(blob: Blob) -> Blob:
            return replace(blob, events=copied.events + blob.events)

        archive = (with_copies(blob) if (blob.partition, blob.opened) == target else blob for blob in case.archive)
        return replace(case, archive=tuple(archive))


@dataclass(frozen=True)
class LateBlob:
    """A blob comes into the archive after the backfill."""

    name: ClassVar[str] = "late blob"
    partition: str
    opened: datetime
    modified: datetime

    def inject(self, case: Case) -> Case:
        late = [blob for blob in case.archive if (blob.partition, blob.opened) == (self.partition, self.opened)]
        return replace(
            case,
            archive=tuple(blob for blob in case.archive if blob not in late),
            written_later=case.written_later + tuple(replace(blob, modified=self.modified) for blob in late),
        )


@dataclass(frozen=True)
class MissingPartition:
    """Of one partition, the archive has no blob that was opened at a time or later."""

    name: ClassVar[str] = "missing partition"
    partition: str
    since: datetime

    def _is_left(self, blob: Blob) -> bool:
        return blob.partition != self.partition or blob.opened < self.since

    def inject(self, case: Case) -> Case:
        return replace(
            case,
            archive=tuple(filter(self._is_left, case.archive)),
            written_later=tuple(filter(self._is_left, case.written_later)),
        )


Draw = Callable[[Case, Random], Fault | None]


def _downtime(case: Case, random: Random) -> Downtime:
    start = RANGE_START + random.uniform(10, 80) * MINUTE
    return Downtime(start, random.choice(["last output", "now", "now, without history"]))


def _smaller_tolerance(case: Case, random: Random) -> SmallerTolerance:
    return SmallerTolerance(case.policy.late // random.choice([2, 4, 10]))


def _enqueued_arrival(case: Case, random: Random) -> EnqueuedArrival | None:
    return EnqueuedArrival() if case.arrival == "BlobLastModified" else None


def _other_query(case: Case, random: Random) -> OtherQuery:
    where = case.query.where
    if where is None:
        return OtherQuery(Filter(">", random.choice([17.0, 20.0])))
    return OtherQuery(random.choice([replace(where, operator=">="), replace(where, threshold=where.threshold + 0.5)]))


def _other_deadline(case: Case, random: Random) -> OtherDeadline | None:
    window = case.query.window
    return OtherDeadline(window.max_duration * random.choice([0.25, 0.5])) if isinstance(window, Session) else None


def _last_digits(case: Case, random: Random) -> LastDigits:
    return LastDigits()


def _written_twice(case: Case, random: Random) -> WrittenTwice:
    start = RANGE_START + random.uniform(0, 100) * MINUTE
    return WrittenTwice(start, start + 15 * MINUTE)


def _row_order(case: Case, random: Random) -> RowOrder:
    return RowOrder(random.randrange(1000))


def _opened(random: Random) -> datetime:
    """Return when a blob was opened that has events of the range."""
    return RANGE_START + random.randrange(18) * INTERVAL


def _archived_twice(case: Case, random: Random) -> ArchivedTwice:
    later = random.choice([0, 1, 15]) if case.arrival == "BlobLastModified" else 0
    opened = _opened(random) - (later * INTERVAL if later == 15 else timedelta())
    return ArchivedTwice(random.choice(case.partitions), opened, later)


def _late_blob(case: Case, random: Random) -> LateBlob:
    return LateBlob(random.choice(case.partitions), _opened(random), modified=LAST + 90 * MINUTE + 7 * SECOND)


def _missing_partition(case: Case, random: Random) -> MissingPartition | None:
    if len(case.partitions) == 1:
        return None
    return MissingPartition(random.choice(case.partitions), since=_opened(random))


FAULTS: dict[str, Draw] = {
    Downtime.name: _downtime,
    SmallerTolerance.name: _smaller_tolerance,
    EnqueuedArrival.name: _enqueued_arrival,
    OtherQuery.name: _other_query,
    OtherDeadline.name: _other_deadline,
    LastDigits.name: _last_digits,
    WrittenTwice.name: _written_twice,
    RowOrder.name: _row_order,
    ArchivedTwice.name: _archived_twice,
    LateBlob.name: _late_blob,
    MissingPartition.name: _missing_partition,
}
"""How a fault of each name is drawn for a case; it draws None if the fault cannot happen to the case."""


def draw_fault(name: str, case: Case, seed: int) -> Fault | None:
    """Return the fault of a name and a seed; None if it cannot happen to the case."""
    return FAULTS[name](case, Random(f"{seed} {name}"))


def draw_faults(case: Case, seed: int, count: int) -> list[Fault]:
    """Return faults of different names that happen to a case together; fewer if only fewer can happen to it."""
    faults = [fault for name in FAULTS if (fault := draw_fault(name, case, seed)) is not None]
    chosen = Random(seed).sample(range(len(faults)), min(count, len(faults)))
    return [faults[number] for number in sorted(chosen)]


def inject(case: Case, faults: Collection[Fault]) -> Case:
    """Return the case in which all these faults happened."""
    names = list(FAULTS)
    in_order: Sequence[Fault] = sorted(faults, key=lambda fault: names.index(fault.name))
    return reduce(lambda changed, fault: fault.inject(changed), in_order, case)
