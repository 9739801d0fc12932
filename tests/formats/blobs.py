"""Blobs of the input formats, and the events that their readers return."""

from datetime import UTC, datetime, timedelta
from typing import Any

from recapture.archive.pinning import EnqueuedRange, PinnedBlob
from recapture.formats.events import Events, Reader
from recapture.model import Metadata, MetadataColumn
from recapture.storage import Blob
from recapture.time_model.ticks import from_datetime

TEN = datetime(2026, 3, 1, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NAME = "archive/2026/03/01/10/blob"


def pinned(
    arrival: datetime = TEN, enqueued: EnqueuedRange | None = None, partition: str = "3", name: str = NAME
) -> PinnedBlob:
    return PinnedBlob("telemetry", partition, Blob(name, "etag", 0, arrival), enqueued)


def read(reader: Reader, content: bytes, *metadata: MetadataColumn, blob: PinnedBlob | None = None) -> Events:
    return reader.read(blob or pinned(), content, metadata)


def bodies(events: Events) -> list[bytes | None]:
    rows: list[bytes | None] = events.body.to_pylist()
    return rows


def reasons(events: Events) -> list[str | None]:
    return [None] * len(events.number) if events.unreadable is None else events.unreadable.to_pylist()


def column(metadata: Metadata, key: str = "") -> MetadataColumn:
    return MetadataColumn(metadata, key)


def values(events: Events, metadata: MetadataColumn) -> list[Any]:
    rows: list[Any] = events.metadata[metadata].to_pylist()
    return rows


def hour() -> EnqueuedRange:
    """Return the range from an hour before ten to an hour after it."""
    return EnqueuedRange(from_datetime(TEN - 60 * MINUTE), from_datetime(TEN + 60 * MINUTE))
