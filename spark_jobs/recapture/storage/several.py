"""Read several containers as one, such as those before and after an archive was moved."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from heapq import merge
from itertools import groupby
from operator import attrgetter

from recapture.errors import DamagedBlobError, PermanentError
from recapture.storage.container import Archive, Blob


class SeveralContainers:
    """`Archive` on the blobs of several containers. If several have a blob of one name, the first one counts."""

    def __init__(self, containers: Sequence[Archive]) -> None:
        self._containers = tuple(containers)
        self._last = 0
        """Place of the container of the blob that was read last: the next blob is probably there, too."""

    @property
    def url(self) -> str:
        return " and ".join(container.url for container in self._containers)

    def list(self, prefix: str = "") -> Iterator[Blob]:
        name = attrgetter("name")
        listed = merge(*(container.list(prefix) for container in self._containers), key=name)  # keeps their order
        return (next(versions) for _, versions in groupby(listed, name))

    def list_folders(self, prefix: str) -> Iterator[str]:
        listed = merge(*(container.list_folders(prefix) for container in self._containers))
        return (folder for folder, _ in groupby(listed))

    def read(self, blob: Blob) -> bytes:
        errors = {}
        for place in sorted(range(len(self._containers)), key=lambda place: place != self._last):
            try:
                content = self._containers[place].read(blob)
            except DamagedBlobError:
                raise
            except PermanentError as error:  # the container has no such blob, or another version of it
                errors[place] = error
            else:
                self._last = place
                return content
        raise errors[min(errors)]

    def clock(self) -> datetime:
        return min(container.clock() for container in self._containers)
