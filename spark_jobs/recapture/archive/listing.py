"""List the blobs of an input by the prefixes that their names allow, several prefixes at once.

LastModified decides which blobs are read, and the time in a name only says where to look. If events arrive when they
were enqueued, the time in the name decides.
"""

import itertools
import threading
from array import array
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from recapture.archive.blob_names import ONLY_PARTITION, BlobNames
from recapture.errors import SetupError
from recapture.storage import Archive, Blob, in_parallel
from recapture.time_model import ticks
from recapture.time_model.slices import Arrivals

CONCURRENT_LISTINGS = 8
_AT_A_TIME = 1_000
"""Number of blobs that a thread adds to the listing at a time."""
"""Number of prefixes that are listed at once. Each listing holds one page in memory, of at most 5,000 blobs."""
FAR = ticks.from_seconds(900)
"""Longest usual delay from the end of a blob's interval to its LastModified; ticks.

The interval begins at the time in the blob's name. This is as long as the longest interval that Capture allows. After
an outage, or in a copied archive, the actual delay is longer.
"""
_HOUR = ticks.from_seconds(3600)


@dataclass(frozen=True, slots=True)
class ListedBlob:
    """A blob of the input, with the partition and the time in its name."""

    partition: str
    name_time: int
    """Time in the blob's name, or LastModified if the name has none; ticks."""
    blob: Blob
    written: int
    """LastModified, in ticks."""


@dataclass(frozen=True, slots=True)
class NewestBlob:
    """The newest blob of a partition, which may be empty. It shows how far the archive reaches."""

    partition: str
    name: str
    name_time: int
    """Time in the blob's name, or LastModified if the name has none; ticks."""
    written: int
    """LastModified, in ticks."""


@dataclass(frozen=True)
class Search:
    """The arrivals to look for, and how far from the times in the names to look; all in ticks."""

    arrivals: Arrivals
    by_enqueued_time: bool
    """Whether events arrive when they are enqueued, so that the times in the names decide which blobs are read."""
    interval: int
    """Length of a blob's interval, which begins at the time in its name; 0 if names have no time."""
    reach: int
    """Longest time from the end of that interval to the LastModified of the blobs to find."""
    max_clock_skew: int
    """Largest error of the time in a name."""

    def range_of_names(self, now: int) -> tuple[int, int]:
        """Return the range of times in the names to list. It covers all blobs that may be read, and more.

        The other blobs show how far the archive reaches. If the arrivals have no end, `now` stands for it.
        """
        last = now if self.arrivals.last is None else self.arrivals.last
        first = self.arrivals.first - self.max_clock_skew - self.interval - self.reach
        return max(first, 0), last + self.max_clock_skew + self.interval + _HOUR

    def within_reach(self, blob: ListedBlob) -> bool:
        """Return whether the time in the blob's name is close enough to its LastModified.

        If it is, every search whose arrivals include that LastModified lists the blob. Other blobs are not read, so a
        slice reads the same blobs whatever range it is planned in. With enqueued times, LastModified does not matter.
        """
        return self.by_enqueued_time or -_HOUR <= blob.written - blob.name_time <= self.interval + self.reach

    def has_arrival(self, blob: ListedBlob) -> bool:
        """Return whether the blob arrived in the searched range."""
        return self.arrivals.contains(blob.name_time if self.by_enqueued_time else blob.written)

    def rank(self, newest: NewestBlob) -> tuple[int, int, str]:
        """Return the sort key by which a partition's newest blob is the largest."""
        times = (newest.name_time, newest.written) if self.by_enqueued_time else (newest.written, newest.name_time)
        return (*times, newest.name)

    def is_far(self, blob: ListedBlob) -> bool:
        """Return whether the blob was written long after the time in its name, or before it."""
        return not 0 <= blob.written - blob.name_time <= self.interval + FAR


@dataclass(frozen=True)
class FarBlobs:
    """The far blobs whose LastModified or name time is among the searched arrivals.

    A blob is far if it was written more than FAR after the end of its interval, or before the time in its name.
    """

    read: int
    """Number of these blobs that arrived in the range and are read."""
    elsewhere: int
    """Number of these blobs that arrived outside the range."""
    unread: int
    """Number of these blobs that arrived in the range and are not read, because the search does not reach them."""
    example: str
    """Name of the blob whose LastModified is furthest from the time in its name."""
    hours: tuple[int, ...]
    """Hours in the names of these blobs, sorted; ticks."""
    furthest: int
    """LastModified of `example` minus the time in its name, in ticks; negative if it was written before."""


@dataclass(frozen=True)
class UnmatchedNames:
    """Names that are not the input's: of blobs in the partition folders, and of folders whose number is too large."""

    count: int
    example: str


@dataclass
class Listing:
    """What a search listed."""

    search: Search
    blobs: list[ListedBlob] = field(default_factory=list)
    """Blobs that the search may need, in any order."""
    newest: dict[str, NewestBlob] = field(default_factory=dict)
    name_times: "dict[str, array[int]]" = field(default_factory=lambda: defaultdict(lambda: array("q")))
    """Times in the names of each partition's listed blobs, whether they are read or not, in any order; ticks."""
    displaced: list[ListedBlob] = field(default_factory=list)
    """Far blobs of which the time in the name, or LastModified, is among the searched arrivals."""
    unmatched: UnmatchedNames | None = None
    """Names that do not belong to the input; None if there are none."""

    def count_unmatched(self, name: str) -> None:
        """Count a name that does not belong to the input."""
        so_far = self.unmatched or UnmatchedNames(0, name)
        self.unmatched = UnmatchedNames(so_far.count + 1, min(so_far.example, name))

    def add(self, blob: ListedBlob) -> None:
        """Add a blob if the search may need it; record it if it is its partition's newest, or a far blob."""
        search = self.search
        newest = NewestBlob(blob.partition, blob.blob.name, blob.name_time, blob.written)
        self.newest[blob.partition] = max(self.newest.get(blob.partition, newest), newest, key=search.rank)
        self.name_times[blob.partition].append(blob.name_time)
        arrives = search.has_arrival(blob)
        if search.by_enqueued_time or (arrives and search.within_reach(blob)):
            self.blobs.append(blob)
        if search.is_far(blob) and (arrives or search.arrivals.contains(blob.name_time)):
            self.displaced.append(blob)

    @property
    def far(self) -> FarBlobs | None:
        """Blobs that were written far from the time in their names; None if there are none."""
        if not self.displaced:
            return None
        arrived = [blob for blob in self.displaced if self.search.has_arrival(blob)]
        read = sum(map(self.search.within_reach, arrived))
        furthest = max(self.displaced, key=lambda blob: (abs(blob.written - blob.name_time), blob.blob.name))
        return FarBlobs(
            read,
            len(self.displaced) - len(arrived),
            len(arrived) - read,
            furthest.blob.name,
            tuple(sorted({blob.name_time // _HOUR * _HOUR for blob in self.displaced})),
            furthest.written - furthest.name_time,
        )


def partition_folders(names: BlobNames, container: Archive) -> tuple[set[str], list[str]]:
    """Return the partitions that have a folder, and the folders whose numbers are too large for a partition.

    There are none if names have no such folders. If names give no partition and the container has a blob of the input,
    the only partition is ONLY_PARTITION. Raise SetupError if there are more folders than an input can have partitions.
    """
    if not names.partitioned:
        listed = (_listed(names, blob) for blob in container.list(names.prefix))
        return {ONLY_PARTITION for _ in itertools.islice(filter(None, listed), 1)}, []
    base = names.folder_of_partitions()
    folders = [] if base is None else list(container.list_folders(base))
    partition_by_folder = {folder: names.partition_of_folder(folder) for folder in folders}
    partitions = {partition for partition in partition_by_folder.values() if partition is not None}
    if len(partitions) > names.most_partitions:
        raise SetupError(
            f"{container.url}/{base} has {len(partitions):,} partition folders, but an input has at most "
            f"{names.most_partitions:,}: move out the folders that do not belong to this input, or correct input.path"
        )
    unknown = [folder for folder, partition in partition_by_folder.items() if partition is None]
    return partitions, [folder for folder in unknown if folder.removeprefix(base or "").rstrip("/").isdecimal()]


def list_blobs(
    names: BlobNames, container: Archive, search: Search, partitions: Iterable[str], now: datetime
) -> Listing:
    """Return what the search needs from these partitions; from all partitions if none are given.

    Names that do not belong to the input are left out. They are counted if names have partition folders.
    """
    first, last = search.range_of_names(ticks.from_datetime(now))
    prefixes = names.prefixes(ticks.to_datetime(first), ticks.to_datetime(last), partitions)
    in_folders = names.folder_of_partitions() is not None
    listing, lock = Listing(search), threading.Lock()

    def list_prefix(prefix: str) -> None:
        blobs = container.list(prefix)
        while page := [(blob.name, _listed(names, blob)) for blob in itertools.islice(blobs, _AT_A_TIME)]:
            with lock:  # once for many blobs: threads that wait for it cost more CPU than what they do
                for name, listed in page:
                    if listed is None:
                        if in_folders:
                            listing.count_unmatched(name)
                    elif not search.by_enqueued_time or first <= listed.name_time <= last:
                        listing.add(listed)

    in_parallel(list_prefix, prefixes, CONCURRENT_LISTINGS)
    return listing


def _listed(names: BlobNames, blob: Blob) -> ListedBlob | None:
    """Return the blob with the partition and the time in its name; None if the name does not belong to the input."""
    parsed = names.parse(blob.name)
    if parsed is None:
        return None
    partition, opened = parsed
    written = ticks.from_datetime(blob.last_modified)
    return ListedBlob(partition, written if opened is None else ticks.from_datetime(opened), blob, written)


def by_number(partition: str) -> tuple[int, str]:
    """Return the sort key of a partition: its number; partitions without a number come last, by name."""
    return (int(partition), partition) if partition.isdecimal() else (1 << 62, partition)
