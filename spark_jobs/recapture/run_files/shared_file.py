"""A JSON file that several processes change at the same time: no change is lost."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from recapture.errors import PermanentError, RunError
from recapture.run_files.json_file import Content, DamagedFileError, JsonFile
from recapture.storage import Container

TRIES = 12
"""Maximum number of attempts to write while other processes write first."""


@dataclass(frozen=True)
class SharedFile(Generic[Content]):
    """A file that one process at a time replaces, in the version that it read."""

    file: JsonFile[Content]
    nothing: Content
    """Content if there is no file."""
    damaged: str
    """What is damaged and what to do about it, for the message."""

    def read(self, container: Container) -> Content:
        """Return the content. Raise PermanentError if the file is damaged or has another format."""
        return self._decoded(container, container.read_current(self.file.name))

    def change(self, container: Container, change: Callable[[Content], Content]) -> Content:
        """Replace the content by what `change` makes of it, and return the new content.

        `change` is called again if another process wrote first, or if an answer of the storage was lost: applied to its
        own result, it must return the same. Nothing is written if it returns what it was given. Raise PermanentError as
        `read` does, and RunError if other processes always write first.
        """
        for attempt in range(TRIES):
            stored = container.read_with_etag(self.file.name)
            before = self._decoded(container, None if stored is None else stored[0])
            after = change(before)
            if after == before:
                return after
            document = self.file.encode(after)
            if stored is None and container.create(self.file.name, document):
                return after
            if stored is not None and container.replace(self.file.name, document, stored[1]):
                return after
            time.sleep(0.02 * 2**attempt * random.uniform(0.5, 1.5))
        raise RunError(
            f"other processes kept writing {container.url}/{self.file.name}: run the same command again when they are "
            "done"
        )

    def _decoded(self, container: Container, document: bytes | None) -> Content:
        if document is None:
            return self.nothing
        where = f"{container.url}/{self.file.name}"
        try:
            return self.file.decode(document, where)
        except DamagedFileError:
            raise PermanentError(f"{where}, {self.damaged}") from None
