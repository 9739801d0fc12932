"""One downloaded blob becomes events with arrivals, or the record of its damage."""

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recapture.archive.definitions import MAX_CLOCK_SKEW
from recapture.archive.pinning import PinnedBlob
from recapture.errors import DamagedBlobError, RecaptureError, RunError
from recapture.formats.events import ENQUEUED, Events, Reader
from recapture.model import MetadataColumn
from recapture.time_model import ticks

LARGEST_QUARANTINED = 16 * 1024 * 1024
"""Largest damaged blob whose content is quarantined, bytes. Of a larger one, only name and etag are recorded."""


@dataclass(frozen=True)
class Damage:
    """Why a blob cannot be read."""

    reason: str
    content: bytes | None
    """Bytes of the blob; None if they are too many, or not those that were written."""


@dataclass(frozen=True)
class DecodedBlob:
    """The events of one blob, in its order."""

    pinned: PinnedBlob
    arrival: NDArray[np.int64]
    """Arrival of each event in ticks."""
    events: Events
    damage: Damage | None = None
    """Damage of the blob, which has no events then; None if it is not damaged."""


@dataclass(frozen=True)
class BlobDecoder:
    """Decodes the blobs of one input."""

    reader: Reader
    metadata: tuple[MetadataColumn, ...]
    """Metadata columns that are read."""
    quarantine_damaged: bool
    """Whether a damaged blob is recorded as such; otherwise it is an error."""

    def decode(self, pinned: PinnedBlob, download: Future[bytes]) -> DecodedBlob:
        """Return the events of a blob.

        Raise DamagedBlobError if it is damaged and not to be quarantined. Raise RunError if it changed since it was
        planned, or if events were enqueued outside the range that its name and LastModified allow.
        """
        quarantinable = None
        try:
            content = download.result()
            if len(content) <= LARGEST_QUARANTINED:
                quarantinable = content
            with blaming(pinned.blob.name):
                return self._decoded(pinned, content)
        except DamagedBlobError as error:
            if not self.quarantine_damaged:
                raise
            nothing = Events.none(self.metadata)
            return DecodedBlob(pinned, nothing.number, nothing, Damage(error.reason, quarantinable))

    def _decoded(self, pinned: PinnedBlob, content: bytes) -> DecodedBlob:
        if pinned.enqueued is None:
            events = self.reader.read(pinned, content, self.metadata)
            return DecodedBlob(pinned, np.broadcast_to(np.int64(pinned.arrival), len(events.number)), events)
        events = self.reader.read(pinned, content, tuple(dict.fromkeys([*self.metadata, ENQUEUED])))
        arrival = events.metadata[ENQUEUED].to_numpy()
        _require_in_range(pinned, arrival)
        return DecodedBlob(pinned, arrival, events)


@contextlib.contextmanager
def blaming(name: str) -> Iterator[None]:
    """Raise DamagedBlobError for whatever the content of a blob makes a reader raise.

    Raise RunError for errors of this machine, its disk and its memory: the blob may be intact.
    """
    try:
        yield
    except (RecaptureError, ImportError):
        raise
    except OSError as error:
        raise RunError(f"cannot unpack blob {name}: {error.strerror or type(error).__name__}") from error
    except Exception as error:
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException":  # that of DuckDB
            advice = "give this machine more memory, or run fewer tasks at once"
            raise RunError(f"cannot unpack blob {name}: no memory is left; {advice}") from error
        message = (str(error).splitlines() or [""])[0]
        detail = f"{type(error).__name__}: {message}" if message else type(error).__name__
        raise DamagedBlobError(name, f"it cannot be read ({detail})") from error


def _require_in_range(pinned: PinnedBlob, enqueued: NDArray[np.int64]) -> None:
    """Raise RunError if events lie outside their blob's enqueued range: slices choose their blobs by these ranges."""
    expected = pinned.enqueued
    if expected is None or not len(enqueued):
        return
    first, last = int(enqueued.min()), int(enqueued.max())
    if first < expected.first - MAX_CLOCK_SKEW or last > expected.last + MAX_CLOCK_SKEW:
        written = f"{ticks.to_text(expected.first)} to {ticks.to_text(expected.last)}"
        raise RunError(
            f"blob {pinned.blob.name} holds events enqueued from {ticks.to_text(first)} to {ticks.to_text(last)}, but "
            f"by its name and LastModified from {written}: slices cannot find its events by enqueued time; set "
            "input.arrival_time to BlobLastModified"
        )
