"""Report how far the archive reaches in each partition, and warn about silent partitions and unusual blobs."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recapture.archive.definitions import InputDefinition
from recapture.archive.listing import FarBlobs, NewestBlob
from recapture.archive.pinning import PlannedInput
from recapture.process.wording import counted, of_input
from recapture.time_model import ticks

_SHOWN_HOURS = 3
"""Number of hours that a warning lists before the last one."""


@dataclass(frozen=True)
class PartitionProgress:
    """How far the archive reaches in a partition."""

    partition: str
    newest: NewestBlob | None
    """Newest blob; None if none was listed."""
    archived_until: int | None
    """Time up to which all arrivals have been written, in ticks; None if it is not known."""
    by_clock: bool
    """Whether `archived_until` comes from the clock, because an interval without events has no blob."""
    timed: bool = True
    """Whether names give a time."""
    input: str | None = None
    """Alias of the input; None if the pipeline has only one."""

    def __str__(self) -> str:
        if self.newest is None:
            blob = "no blob was found"
        else:
            time = f"the time {ticks.to_text(self.newest.name_time)} and " * self.timed
            blob = f"the newest blob has {time}LastModified {ticks.to_text(self.newest.written)}"
        archived = "" if self.archived_until is None else f"written up to {ticks.to_text(self.archived_until)}"
        clock = ", by the clock" if self.by_clock else ""
        return f"partition {self.partition}{of_input(self.input)}: {archived}{clock}{'; ' * bool(archived)}{blob}"

    def to_dict(self) -> dict[str, Any]:
        """Return the progress for JSON output."""
        newest = self.newest
        return {
            "partition": self.partition,
            "reached": None if self.archived_until is None else ticks.to_text(self.archived_until),
            "by_clock": self.by_clock,
            "blob": None if newest is None else newest.name,
            "path_time": ticks.to_text(newest.name_time) if newest is not None and self.timed else None,
            "last_modified": None if newest is None else ticks.to_text(newest.written),
        }


def partition_progress(
    definition: InputDefinition,
    partition: str,
    newest: NewestBlob | None,
    empty_blobs: bool,
    now: datetime,
    name_input: bool = False,
) -> PartitionProgress:
    """Return how far the archive reaches in a partition. If `name_input`, the result names the input.

    If empty blobs are written, its newest blob decides. Otherwise the clock may prove more: an event's blob has been
    written `definition.time_until_written` after the event arrived.
    """
    by_blob, timed = None if newest is None else definition.archived_until(newest), definition.names.timed
    alias = definition.alias if name_input else None
    clock = ticks.from_datetime((now - definition.time_until_written).replace(microsecond=0))
    by_clock = not empty_blobs and (by_blob is None or clock > by_blob)
    return PartitionProgress(partition, newest, clock if by_clock else by_blob, by_clock, timed, alias)


def warnings(planned: PlannedInput, empty_blobs: bool, name_input: bool = False) -> Iterator[str]:
    """Yield the warnings about an input: silent partitions, far blobs, and names that do not belong to it."""
    alias = planned.alias if name_input else None
    newest_blobs = {newest.partition: newest for newest in planned.newest}
    with_pauses = {pause.partition for pause in planned.pauses}
    for partition in planned.silent if empty_blobs else ():
        if partition in with_pauses:  # a pause says more
            continue
        newest = newest_blobs.get(partition)
        blob = "no blob was found"
        if newest is not None:
            blob = f"the newest blob is {newest.name}, LastModified {ticks.to_text(newest.written)}"
        yield (
            f"partition {partition}{of_input(alias)} has no blob in this range, not even an empty one ({blob}): "
            "Capture was off or delayed, or blobs were removed; if Capture does not write empty blobs, set "
            "input.empty_blobs to false"
        )
    if planned.far is not None:
        yield _far(planned.far, alias)
    if planned.unmatched is not None:
        names = counted(
            planned.unmatched.count,
            "name in the partition folders does not belong",
            "names in the partition folders do not belong",
        )
        yield (
            f"{names} to {'this input' if alias is None else f'input {alias}'}, for example "
            f"{planned.unmatched.example}; such blobs are not read: if you renamed blobs, restore their names; "
            "move other blobs out"
        )


def far_blobs(planned: PlannedInput) -> dict[str, Any] | None:
    """Return the far blobs of an input for JSON output; None if there are none."""
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


def _far(far: FarBlobs, alias: str | None) -> str:
    """Return the warning about blobs that were written far from the time in their names."""
    blobs = counted(
        far.read + far.elsewhere + far.unread,
        f"blob{of_input(alias)} was written far from the time in its name",
        f"blobs{of_input(alias)} were written far from the time in their names",
    )
    hours = [ticks.to_text(hour) for hour in far.hours]
    shown = ", ".join(hours[:_SHOWN_HOURS]) + (f", … {hours[-1]}" if len(hours) > _SHOWN_HOURS else "")
    parts = [
        counted(far.read, "is read with the hour of its arrival", "are read with the hours of their arrival")
        * bool(far.read),
        f"{far.elsewhere:,} arrived outside this range" * bool(far.elsewhere),
        f"{counted(far.unread, 'arrived in this range and is', 'arrived in this range and are')} not read, as "
        "input.search_hours does not reach that far" * bool(far.unread),
    ]
    return (
        f"{blobs} (hours {shown}; furthest {far.example}, by "
        f"{far.furthest / ticks.TICKS_PER_SECOND / 3600:,.1f} h): {'; '.join(filter(None, parts))}"
    )
