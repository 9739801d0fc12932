"""Blobs of the input formats, and what their readers make of them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from recapture.archive.manifest import EnqueuedRange, PinnedBlob
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


def read(reader: Reader, content: bytes, *wanted: MetadataColumn, blob: PinnedBlob | None = None) -> Events:
    return reader.read(blob or pinned(), content, wanted)


def bodies(events: Events) -> list[bytes | None]:
    found: list[bytes | None] = events.body.to_pylist()
    return found


def reasons(events: Events) -> list[str | None]:
    return [None] * len(events.number) if events.unreadable is None else events.unreadable.to_pylist()


def column(metadata: Metadata, key: str = "") -> MetadataColumn:
    return MetadataColumn(metadata, key)


def values(events: Events, wanted: MetadataColumn) -> list[Any]:
    found: list[Any] = events.metadata[wanted].to_pylist()
    return found


def hour() -> EnqueuedRange:
    """All that was enqueued within an hour of ten."""
    return EnqueuedRange(from_datetime(TEN - 60 * MINUTE), from_datetime(TEN + 60 * MINUTE))
