"""What became of the blobs of a kept manifest: touched, deleted, or as they were pinned."""

import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta

from recapture.archive import listing
from recapture.archive.blob_names import BlobNames
from recapture.archive.manifest import Manifest
from recapture.errors import DefinitionError
from recapture.storage import Blob, Container

SHOWN = 100
"""Changes that a message names."""
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Change:
    """A blob that is not as it was pinned."""

    pinned: Blob
    now: Blob | None
    """None where it was deleted."""

    def __str__(self) -> str:
        if self.now is None:
            return f"{self.pinned.name} was deleted"
        pairs = [
            ("size", self.pinned.size, self.now.size),
            ("LastModified", _text(self.pinned.last_modified), _text(self.now.last_modified)),
            ("etag", self.pinned.etag, self.now.etag),
        ]
        told = ", ".join(f"{name} {before}, now {after}" for name, before, after in pairs if before != after)
        return f"{self.pinned.name} was touched ({told})"


def since(manifest: Manifest, names: BlobNames, container: Container) -> list[Change]:
    """The manifest's blobs that are not there any more as they were pinned, in the manifest's order.

    Found by listing where their names lie, and not blob by blob. Raises DefinitionError where the names are of another
    format.
    """
    beginnings = _beginnings(manifest, names)
    wanted = {pinned.blob.name for pinned in manifest.blobs}

    def there(beginning: str) -> list[Blob]:
        return [blob for blob in container.list(beginning) if blob.name in wanted]

    with ThreadPoolExecutor(listing.LISTINGS) as pool:
        now = {blob.name: blob for blob in itertools.chain.from_iterable(pool.map(there, beginnings))}
    changes = (Change(pinned.blob, now.get(pinned.blob.name)) for pinned in manifest.blobs)
    return [change for change in changes if change.now is None or _version(change.pinned) != _version(change.now)]


def told(changes: Iterable[Change]) -> str:
    """A line for each change, but for a great many."""
    lines = [f"  {change}" for change in changes]
    more = [f"  and {len(lines) - SHOWN:,} more"] if len(lines) > SHOWN else []
    return "\n".join([*lines[:SHOWN], *more])


def _beginnings(manifest: Manifest, names: BlobNames) -> list[str]:
    partitions, days = set(), set()
    for pinned in manifest.blobs:
        parsed = names.parse(pinned.blob.name)
        if parsed is None:
            raise DefinitionError(
                f"the manifest of run {manifest.run} pins {pinned.blob.name}, which is no name of this pipeline: "
                "input.path, or another key that its names are made of, changed since; plan again"
            )
        partition, opened = parsed
        if opened is None:
            return [names.prefix]
        partitions.add(partition)
        days.add(opened.replace(hour=0, minute=0, second=0))
    found = (names.prefixes(first, last, partitions) for first, last in _spans(sorted(days)))
    return sorted(set(itertools.chain.from_iterable(found)))


def _spans(days: Iterable[datetime]) -> Iterator[tuple[datetime, datetime]]:
    """The first and the last instant of the days that follow each other."""
    for _, group in itertools.groupby(enumerate(days), lambda each: each[1] - each[0] * _DAY):
        following = [day for _, day in group]
        yield following[0], following[-1] + timedelta(hours=23)


def _version(blob: Blob) -> tuple[str, int, datetime]:
    return blob.etag, blob.size, blob.last_modified


def _text(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
