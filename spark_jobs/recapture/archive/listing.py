"""An input's blobs as a container lists them: by the beginnings that their names allow, several at once.

LastModified, or the name where that decides, says what is kept; the time in a name only says where to look.
"""

import itertools
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime

from recapture.archive.blob_names import ONLY_PARTITION, BlobNames
from recapture.errors import SetupError
from recapture.storage import Blob, Container
from recapture.time_model import ticks
from recapture.time_model.slices import Arrivals

LISTINGS = 8
"""Beginnings that are listed at once. What one holds in memory is a page, of 5,000 blobs at most."""
FAR = ticks.from_seconds(900)
"""How long after its window, an interval from the time in its name, a blob is written at the latest.

The longest interval that Capture allows; an outage or a copy makes it more, and nothing makes it less than none.
"""
_HOUR = ticks.from_seconds(3600)


@dataclass(frozen=True, slots=True)
class Found:
    """A blob of the input, and what its name tells."""

    partition: str
    opened: int
    """The time in its name, or LastModified where there is none; ticks."""
    blob: Blob

    @property
    def written(self) -> int:
        """LastModified; ticks."""
        return ticks.from_datetime(self.blob.last_modified)


@dataclass(frozen=True, slots=True)
class Newest:
    """How far the archive reaches in a partition: its newest blob, an empty one as well."""

    partition: str
    name: str
    opened: int
    """As in Found; ticks."""
    written: int
    """Its LastModified; ticks."""


@dataclass(frozen=True)
class Search:
    """What is looked for, and how far from its time in the archive; ticks."""

    arrivals: Arrivals
    by_name: bool
    """Whether the time in the name decides what is kept, and not LastModified."""
    interval: int
    """After the time in its name, how long a blob may hold what came."""
    reach: int
    """How much longer than the interval after the time in its name a blob may have been written."""
    clocks_apart: int
    """By how much a time in a name may be wrong."""

    def opened(self, now: int) -> tuple[int, int]:
        """The first and the last time in the names that are listed: all that may be kept, and an hour more behind it.

        What is behind it tells how far the archive reaches. `now` stands for a last arrival that is not bounded.
        """
        last = now if self.arrivals.last is None else self.arrivals.last
        first = self.arrivals.first - self.clocks_apart - self.interval - self.reach
        return max(first, 0), last + self.clocks_apart + self.interval + _HOUR

    def within_reach(self, found: Found) -> bool:
        """Whether the blob would be found in any search for when it was written.

        So what a slice reads does not depend on the range that it is planned in.
        """
        return -_HOUR <= found.written - found.opened <= self.interval + self.reach

    def rank(self, newest: Newest) -> tuple[int, int, str]:
        """By which of a partition's blobs the newest is the largest."""
        times = (newest.opened, newest.written) if self.by_name else (newest.written, newest.opened)
        return (*times, newest.name)

    def is_far(self, found: Found) -> bool:
        return not 0 <= found.written - found.opened <= self.interval + FAR


@dataclass(frozen=True)
class FarBlobs:
    """Blobs of a range, by name or by LastModified, that were written long after the time in their names, or before."""

    read: int
    """As many are read in the hours of their arrival."""
    elsewhere: int
    """As many have a name of the range, and arrive outside it."""
    unread: int
    """As many arrive in the range and are not read: they lie further from their names than the search goes."""
    example: str
    hours: tuple[int, ...]
    """The hours in their names; ticks."""
    furthest: int
    """From the time in a name to LastModified, where that is most; ticks."""


@dataclass(frozen=True)
class PassedOver:
    """Blobs beside those of a range, in the folders of the input's partitions, whose names are not of the input."""

    count: int
    example: str


@dataclass
class Seen:
    """What a listing found."""

    kept: list[Found] = field(default_factory=list)
    newest: dict[str, Newest] = field(default_factory=dict)
    """By partition."""
    read: int = 0
    elsewhere: int = 0
    unread: int = 0
    example: Found | None = None
    """Of the far blobs, the furthest."""
    hours: set[int] = field(default_factory=set)
    strangers: int = 0
    stranger: str | None = None
    """The first by name."""

    def pass_over(self, name: str) -> None:
        self.strangers += 1
        self.stranger = min(self.stranger or name, name)

    def take(self, found: Found, search: Search) -> None:
        newest = Newest(found.partition, found.blob.name, found.opened, found.written)
        self.newest[found.partition] = max(self.newest.get(found.partition, newest), newest, key=search.rank)
        within = search.by_name or search.within_reach(found)
        arrives = search.arrivals.hold(found.opened if search.by_name else found.written)
        if search.by_name or (arrives and within):
            self.kept.append(found)
        if search.is_far(found) and (arrives or search.arrivals.hold(found.opened)):
            self.read += arrives and within
            self.unread += arrives and not within
            self.elsewhere += not arrives
            self.hours.add(found.opened // _HOUR * _HOUR)
            self.example = max(self.example or found, found, key=_distance)

    @property
    def passed_over(self) -> PassedOver | None:
        return None if self.stranger is None else PassedOver(self.strangers, self.stranger)

    @property
    def far(self) -> FarBlobs | None:
        if self.example is None:
            return None
        return FarBlobs(
            self.read,
            self.elsewhere,
            self.unread,
            self.example.blob.name,
            tuple(sorted(self.hours)),
            self.example.written - self.example.opened,
        )


def _distance(found: Found) -> tuple[int, str]:
    return abs(found.written - found.opened), found.blob.name


def partitions(names: BlobNames, container: Container) -> tuple[set[str], list[str]]:
    """The partitions whose folders are there, and folders next to them that have a number too large for one.

    None where the names have no such folders. ONLY_PARTITION where the names tell no partition and there is any blob.
    Raises SetupError where there are more folders than any input has partitions.
    """
    if not names.partitioned:
        listed = (_found(names, blob) for blob in container.list(names.prefix))
        return {ONLY_PARTITION for _ in itertools.islice(filter(None, listed), 1)}, []
    base = names.folder_of_partitions()
    folders = [] if base is None else list(container.list_folders(base))
    told = {folder: names.partition_of_folder(folder) for folder in folders}
    found = {partition for partition in told.values() if partition is not None}
    if len(found) > names.most_partitions:
        raise SetupError(
            f"{container.url}/{base} has {len(found):,} folders of partitions, and there are at most "
            f"{names.most_partitions:,}: move those out that are not of this input, or correct input.path"
        )
    numbered = [folder for folder, partition in told.items() if partition is None and _is_number(folder, base or "")]
    return found, numbered


def _is_number(folder: str, base: str) -> bool:
    return folder.removeprefix(base).rstrip("/").isdecimal()


def look(names: BlobNames, container: Container, search: Search, known: Iterable[str], now: datetime) -> Seen:
    """List what the search needs, in the partitions that are known, or in all; the order of what is kept is no matter.

    Blobs whose names are not of the input are passed over; they are counted where they lie in a partition's folder.
    """
    first, last = search.opened(ticks.from_datetime(now))
    beginnings = names.prefixes(ticks.to_datetime(first), ticks.to_datetime(last), known)
    in_folders = names.folder_of_partitions() is not None
    seen, one_at_a_time = Seen(), threading.Lock()

    def list_one(beginning: str) -> None:
        for blob in container.list(beginning):
            found = _found(names, blob)
            with one_at_a_time:
                if found is None:
                    if in_folders:
                        seen.pass_over(blob.name)
                elif not search.by_name or first <= found.opened <= last:
                    seen.take(found, search)

    with ThreadPoolExecutor(LISTINGS) as pool:
        for _ in pool.map(list_one, beginnings):
            pass
    return seen


def _found(names: BlobNames, blob: Blob) -> Found | None:
    """None where the name is not of the input."""
    parsed = names.parse(blob.name)
    return None if parsed is None else Found(parsed[0], ticks.from_datetime(parsed[1] or blob.last_modified), blob)


def by_number(partition: str) -> tuple[int, str]:
    """For sorting partitions."""
    return (int(partition), partition) if partition.isdecimal() else (1 << 62, partition)
