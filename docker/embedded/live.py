"""A sample world that ends now and goes on: six hours until now, then a blob of each partition every five minutes.

The fourth of its hours has a faulty release, so that its audit stops it.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recapture.storage import Container
    from recapture.tools.sample import SampleBlob

HOUR = timedelta(hours=1)
HOURS = 6
"""Number of hours that have ended when the world is made."""
FOLLOWING_HOURS = 7 * 24
FAULTY_HOUR = 3


@dataclass(frozen=True)
class LiveWorld:
    """A world whose first hours ended before `now`, an aware time."""

    now: datetime

    @property
    def start(self) -> datetime:
        """Start of the first hour."""
        return whole_hour(self.now) - HOURS * HOUR

    def written(self) -> Iterator["SampleBlob"]:
        """Yield the blobs that Capture has written by now."""
        return takewhile(self._is_written, self._blobs())

    def following(self) -> Iterator["SampleBlob"]:
        """Yield the blobs after those, in the order in which Capture writes them."""
        return dropwhile(self._is_written, self._blobs())

    def _blobs(self) -> Iterator["SampleBlob"]:
        from recapture.tools.sample import world

        return world(self.start, HOURS, following_hours=FOLLOWING_HOURS, faulty_hour=FAULTY_HOUR)

    def _is_written(self, blob: "SampleBlob") -> bool:
        return blob.last_modified <= self.now


def whole_hour(instant: datetime) -> datetime:
    """Return the last whole hour."""
    return instant.replace(minute=0, second=0, microsecond=0)


@contextmanager
def capturing(blobs: Iterable["SampleBlob"], container: "Container") -> Iterator[None]:
    """Write each blob at its time, as Capture does, until the context ends."""
    stopped = threading.Event()
    thread = threading.Thread(target=_capture, args=(blobs, container, stopped), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _capture(blobs: Iterable["SampleBlob"], container: "Container", stopped: threading.Event) -> None:
    from recapture.errors import RecaptureError

    for blob in blobs:
        if stopped.wait(max((blob.last_modified - datetime.now(UTC)).total_seconds(), 0)):
            return
        try:
            container.write(blob.name, blob.content)
        except RecaptureError as error:
            print(f"Capture writes no more blobs: {error}", flush=True)
            return
