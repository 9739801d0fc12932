"""A storage in memory, under a clock. Its n-th request may fail, be the last, or let others go first."""

import itertools
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from recapture.storage.container import Blob, changed, deleted
from recapture.time_model import ticks


class KilledError(BaseException):
    """The process was killed: nothing catches this."""


class Requests:
    """Counts the requests of everybody, and does something at the n-th."""

    def __init__(self) -> None:
        self.count = 0
        self._at: int | None = None
        self._effect: Callable[[], None] = lambda: None

    def at(self, number: int, effect: Callable[[], None]) -> None:
        """Call `effect` just before the request that comes after `number` more."""
        self._at, self._effect = self.count + number, effect

    def never(self) -> None:
        self._at = None

    def __call__(self) -> None:
        self.count += 1
        if self._at is not None and self.count > self._at:
            self._at = None
            self._effect()


@dataclass
class Clock:
    """The storage's clock, in whole seconds."""

    now: datetime

    def advance(self, minutes: float) -> None:
        self.now += timedelta(seconds=round(60 * minutes))

    @property
    def ticks(self) -> int:
        return ticks.from_datetime(self.now)


Versions = list[tuple[datetime, Blob | None, bytes]]
"""Versions of a blob, oldest first, with their times; None if it was deleted."""


@dataclass
class MemoryContainer:
    """A container in memory. Its listings may lag: they then show what it held some time ago."""

    url: str
    clock_: Clock
    requests: Requests
    lag: timedelta = timedelta()
    _versions: "dict[str, Versions]" = field(default_factory=dict)
    _sorted: "list[str]" = field(default_factory=list)
    """Names of all blobs that there ever were, in order."""
    _etags: int = 0

    def list(self, prefix: str = "") -> Iterator[Blob]:
        self.requests()
        then = self.clock_.now - self.lag
        for name in itertools.takewhile(lambda name: name.startswith(prefix), self._names_from(prefix)):
            if (blob := self._blob(name, then)) is not None:
                yield blob

    def _names_from(self, prefix: str) -> Sequence[str]:
        """Return the names from the first one on that may have this prefix."""
        if len(self._sorted) < len(self._versions):
            self._sorted = sorted(self._versions)
        return self._sorted[bisect_left(self._sorted, prefix) :]

    def list_folders(self, prefix: str) -> Iterator[str]:
        end = len(prefix)
        yield from sorted({name[: name.index("/", end) + 1] for blob in self.list(prefix) for name in [blob.name]})

    def read(self, blob: Blob) -> bytes:
        self.requests()
        now = self._blob(blob.name, self.clock_.now)
        if now is None:
            raise deleted(blob)
        if now.etag != blob.etag:
            raise changed(blob, now.etag)
        return self._versions[blob.name][-1][2]

    def read_current(self, name: str) -> bytes | None:
        self.requests()
        return None if self._blob(name, self.clock_.now) is None else self._versions[name][-1][2]

    def read_with_etag(self, name: str) -> tuple[bytes, str] | None:
        self.requests()
        blob = self._blob(name, self.clock_.now)
        return None if blob is None else (self._versions[name][-1][2], blob.etag)

    def replace(self, name: str, content: bytes, etag: str) -> bool:
        self.requests()
        blob = self._blob(name, self.clock_.now)
        if blob is None or blob.etag != etag:
            return False
        self._put(name, content)
        self.requests()  # a process may be killed, and an answer lost, when the blob is written
        return True

    def write(self, name: str, content: bytes) -> Blob:
        self.requests()
        blob = self._put(name, content)
        self.requests()  # a process may be killed, and an answer lost, when the blob is written
        return blob

    @property
    def writes(self) -> int:
        """Number of blobs that were written so far."""
        return self._etags

    def _put(self, name: str, content: bytes) -> Blob:
        self._etags += 1
        blob = Blob(name, f"etag {self._etags}", len(content), self.clock_.now)
        self._versions.setdefault(name, []).append((self.clock_.now, blob, content))
        return blob

    def create(self, name: str, content: bytes) -> bool:
        self.requests()
        if self._blob(name, self.clock_.now) is not None:
            return False
        self._put(name, content)
        self.requests()
        return True

    def clock(self) -> datetime:
        self.requests()
        return self.clock_.now

    def remove_abandoned(self, prefix: str) -> tuple[str, ...]:
        return ()

    def remove(self, blob: Blob) -> bool:
        self.requests()
        is_listed = self._blob(blob.name, self.clock_.now) == blob
        if is_listed:
            self.delete(blob.name)
        return is_listed

    def delete(self, name: str) -> None:
        self._versions[name].append((self.clock_.now, None, b""))

    def restore(self, name: str) -> None:
        """Restore the last version of a deleted blob, as undelete does."""
        blob, content = next((blob, content) for _, blob, content in reversed(self._versions[name]) if blob is not None)
        self._versions[name].append((self.clock_.now, blob, content))

    def content(self, name: str) -> bytes:
        """Return the content of a blob, without a request."""
        return self._versions[name][-1][2]

    def names(self, *, present: bool = True) -> Sequence[str]:
        """Return the names of the blobs that are there, or of those that were deleted."""
        return [name for name in sorted(self._versions) if (self._versions[name][-1][1] is not None) is present]

    def _blob(self, name: str, then: datetime) -> Blob | None:
        return next((blob for time, blob, _ in reversed(self._versions.get(name, ())) if time <= then), None)
