"""Find the newest blobs of an archive without listing all of it."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from recapture.archive.blob_names import BlobNames
from recapture.archive.listing import partition_folders
from recapture.storage import Archive, Blob

_FIRST_YEAR = 2014
"""Year in which Event Hubs and Stream Analytics began."""


def newest_blobs(names: BlobNames, container: Archive, now: datetime) -> list[Blob]:
    """Return the blobs of the newest hour in the names of an input's blobs; all blobs if names have no time.

    The newest year that has a blob is looked up first, then its newest month, day and hour.
    """
    partitions, _ = partition_folders(names, container)
    if not names.timed:
        return [blob for blob in container.list(names.prefix) if names.parse(blob.name)]
    latest = now + timedelta(days=1)
    start, end = datetime(_FIRST_YEAR, 1, 1, tzinfo=UTC), datetime(latest.year + 1, 1, 1, tzinfo=UTC)
    for unit in ("year", "month", "day", "hour"):
        for first in reversed(list(_starts(unit, start, end))):
            following = min(_next(unit, first), end)
            if next(_named(names, container, partitions, first, following), None):
                start, end = first, following
                break
        else:
            return []
    return list(_named(names, container, partitions, start, end))


def _named(
    names: BlobNames, container: Archive, partitions: Iterable[str], start: datetime, end: datetime
) -> Iterator[Blob]:
    """Yield the input's blobs with a time in [start, end) in their names."""
    for prefix in names.prefixes(start, end - timedelta(seconds=1), partitions):
        for blob in container.list(prefix):
            parsed = names.parse(blob.name)
            if parsed is not None and parsed[1] is not None and start <= parsed[1] < end:
                yield blob


def _starts(unit: str, start: datetime, end: datetime) -> Iterator[datetime]:
    while start < end:
        yield start
        start = _next(unit, start)


def _next(unit: str, start: datetime) -> datetime:
    """Return the start of the next year, month, day or hour."""
    match unit:
        case "year":
            return start.replace(year=start.year + 1)
        case "month":
            return (start.replace(day=1) + timedelta(days=31)).replace(day=1)
        case "day":
            return start + timedelta(days=1)
    return start + timedelta(hours=1)
