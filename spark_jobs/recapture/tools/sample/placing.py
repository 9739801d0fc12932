"""Put the blobs of a world into a folder or a container."""

import itertools
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from recapture.storage import Container
from recapture.tools.sample.world import SampleBlob


def write_world(blobs: Iterable[SampleBlob], folder: Path) -> int:
    """Write the blobs as files whose modification time is their LastModified. Return the number of files."""
    count = 0
    for blob in blobs:
        path = folder / blob.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(blob.content)
        os.utime(path, (blob.last_modified.timestamp(),) * 2)
        count += 1
    return count


def upload_world(blobs: Iterable[SampleBlob], container: Container, *, threads: int = 8) -> dict[str, datetime]:
    """Upload the blobs. Return the LastModified that each blob should have in an emulator, by name."""
    arrivals: dict[str, datetime] = {}
    with ThreadPoolExecutor(threads) as pool:
        for batch in _batches(blobs, threads * 4):
            for _ in pool.map(lambda blob: container.write(blob.name, blob.content), batch):
                pass
            arrivals.update((blob.name, blob.last_modified) for blob in batch)
    return arrivals


def _batches(blobs: Iterable[SampleBlob], size: int) -> Iterator[list[SampleBlob]]:
    remaining = iter(blobs)
    while batch := list(itertools.islice(remaining, size)):
        yield batch
