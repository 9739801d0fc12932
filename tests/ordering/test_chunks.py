"""The blobs of a task are downloaded one ahead, and batched into chunks of whole arrivals."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from recapture.archive.pinning import PinnedBlob
from recapture.formats.events import Events
from recapture.ordering import chunks
from recapture.ordering.chunks import Downloads, batched
from recapture.ordering.decoding import DecodedBlob
from recapture.storage import Blob

TEN = datetime(2026, 3, 1, 10, tzinfo=UTC)


def pinned(name: str, minute: int = 0) -> PinnedBlob:
    return PinnedBlob("telemetry", "0", Blob(name, "", 1, TEN + timedelta(minutes=minute)))


class Recorder:
    """A container whose blobs contain their names; it records which of them were read."""

    def __init__(self) -> None:
        self.read_so_far: list[str] = []

    def read(self, blob: Blob) -> bytes:
        self.read_so_far.append(blob.name)
        return blob.name.encode()


@pytest.mark.parametrize("names", ["", "a", "abc"])
def test_downloads_are_in_the_order_of_the_blobs(names: str) -> None:
    container: Any = Recorder()
    with ThreadPoolExecutor(1) as pool:
        downloads = Downloads(pool, container, [pinned(name) for name in names])
        assert [downloads.take().result() for _ in names] == [name.encode() for name in names]


def test_one_blob_is_downloaded_ahead_and_no_more() -> None:
    container: Any = Recorder()
    with ThreadPoolExecutor(1) as pool:
        downloads = Downloads(pool, container, [pinned(name) for name in "abcd"])
        downloads.take().result()
        pool.submit(int).result()  # waits for everything submitted before
        assert container.read_so_far == ["a", "b"]


def test_large_blobs_are_not_downloaded_ahead_until_the_first_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise two of them would be in memory."""
    monkeypatch.setattr(chunks, "AHEAD_BYTES", 1)
    container: Any = Recorder()
    with ThreadPoolExecutor(1) as pool:
        downloads = Downloads(pool, container, [pinned(name) for name in "abcd"])
        downloads.take().result()
        pool.submit(int).result()
        assert container.read_so_far == ["a"]
        downloads.begin_next()
        downloads.begin_next()
        pool.submit(int).result()
        assert container.read_so_far == ["a", "b"]


def decoded(name: str, events: int, size: int = 0) -> DecodedBlob:
    """Return a blob with this many events of this many bytes."""
    number = np.arange(events)
    return DecodedBlob(
        pinned(name), number, Events(number, number, pa.chunked_array([[b"x" * size] * events], pa.binary()), {})
    )


def names_of(batches: Iterator[list[DecodedBlob]]) -> list[str]:
    return ["".join(blob.pinned.blob.name for blob in batch) for batch in batches]


def test_blobs_are_batched_until_they_have_enough_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_EVENTS", 4)
    assert names_of(batched([decoded(name, 2)] for name in "abcde")) == ["ab", "cd", "e"]


def test_blobs_are_batched_until_they_have_enough_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1000)
    assert names_of(batched([decoded(name, 1, 600)] for name in "abc")) == ["ab", "c"]


def test_blobs_that_arrived_together_are_not_parted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_EVENTS", 1)
    arrivals = [[decoded("a", 1)], [decoded("b", 1), decoded("c", 1)], [decoded("d", 0)]]
    assert names_of(batched(arrivals)) == ["a", "bc", "d"]


def test_a_batch_is_complete_before_the_next_blob_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise two large blobs would be in memory."""
    monkeypatch.setattr(chunks, "CHUNK_EVENTS", 1)
    so_far: list[str] = []

    def arrivals() -> Iterator[list[DecodedBlob]]:
        for name in "ab":
            so_far.append(name)
            yield [decoded(name, 1)]

    next(batched(arrivals()))
    assert so_far == ["a"]
