"""How far the archive reaches in each partition, and what a listing saw that its reader should know."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recapture.archive.listing import FarBlobs, Newest
from recapture.archive.manifest import Definition, Manifest
from recapture.time_model import ticks

SHOWN_HOURS = 3


@dataclass(frozen=True)
class Progress:
    """How far the archive reaches in a partition."""

    partition: str
    newest: Newest | None
    """None where nothing of it was listed."""
    reached: int | None
    """Up to where all arrivals are there; ticks. None where nothing tells."""
    by_clock: bool
    """Whether the clock tells, as an interval without events leaves no blob."""
    timed: bool = True
    """Whether names tell a time."""

    def __str__(self) -> str:
        if self.newest is None:
            told = "no blob was found"
        else:
            time = f"the time {ticks.to_text(self.newest.opened)} and " * self.timed
            told = f"the newest blob has {time}LastModified {ticks.to_text(self.newest.written)}"
        reached = "" if self.reached is None else f"written up to {ticks.to_text(self.reached)}"
        clock = ", by the clock" if self.by_clock else ""
        return f"partition {self.partition}: {reached}{clock}{'; ' * bool(reached)}{told}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        newest = self.newest
        return {
            "partition": self.partition,
            "reached": None if self.reached is None else ticks.to_text(self.reached),
            "by_clock": self.by_clock,
            "blob": None if newest is None else newest.name,
            "path_time": ticks.to_text(newest.opened) if newest is not None and self.timed else None,
            "last_modified": None if newest is None else ticks.to_text(newest.written),
        }


def progress(
    definition: Definition, partition: str, newest: Newest | None, empty_blobs: bool, now: datetime
) -> Progress:
    """How far the archive reaches: with empty blobs, as far as its newest blob, else as far as the clock says.

    By the clock, the blob that holds an event has been written an interval after it came.
    """
    by_blob, timed = None if newest is None else definition.reached(newest), definition.names.timed
    if empty_blobs:
        return Progress(partition, newest, by_blob, by_clock=False, timed=timed)
    clock = ticks.from_datetime((now - definition.delay).replace(microsecond=0))
    if by_blob is None or clock > by_blob:
        return Progress(partition, newest, clock, by_clock=True, timed=timed)
    return Progress(partition, newest, by_blob, by_clock=False, timed=timed)


def warnings(planned: Manifest, empty_blobs: bool) -> Iterator[str]:
    """What of a plan its reader should know: partitions from which nothing is read, blobs far from their names."""
    newest = {each.partition: each for each in planned.newest}
    for partition in planned.silent if empty_blobs else ():
        last = newest.get(partition)
        seen = f"its newest is {last.name}, LastModified {ticks.to_text(last.written)}" if last else "none was found"
        yield (
            f"partition {partition} has no blob in this range, not even an empty one ({seen}): Capture was off or "
            "behind, or blobs were removed; where Capture leaves out empty blobs, set input.empty_blobs to false"
        )
    if planned.far is not None:
        yield _far(planned.far)
    if planned.passed_over is not None:
        yield (
            f"{planned.passed_over.count:,} names in the partitions' folders are not of this input; their blobs are "
            f"not read, such as {planned.passed_over.example}: give blobs of Capture their names back, move others out"
        )


def far_blobs(planned: Manifest) -> dict[str, Any] | None:
    """For JSON: the blobs of a plan that were written far from the time in their names."""
    far = planned.far
    if far is None:
        return None
    return {
        "read": far.read,
        "elsewhere": far.elsewhere,
        "unread": far.unread,
        "example": far.example,
        "path_hours": [ticks.to_text(hour) for hour in far.hours],
        "furthest_seconds": far.furthest // ticks.TICKS_PER_SECOND,
    }


def _far(far: FarBlobs) -> str:
    count = far.read + far.elsewhere + far.unread
    hours = [ticks.to_text(hour) for hour in far.hours]
    shown = ", ".join(hours[:SHOWN_HOURS]) + (f", … {hours[-1]}" if len(hours) > SHOWN_HOURS else "")
    parts = [
        f"{far.read:,} are read with the hours of their arrival" * bool(far.read),
        f"{far.elsewhere:,} arrived outside this range" * bool(far.elsewhere),
        f"{far.unread:,} arrived in this range and are not read, as they lie further back than input.search_hours"
        * bool(far.unread),
    ]
    return (
        f"{count:,} blobs were written far from the time in their names, of hours {shown}; furthest {far.example}, by "
        f"{far.furthest / ticks.TICKS_PER_SECOND / 3600:,.1f} h: {'; '.join(filter(None, parts))}"
    )
