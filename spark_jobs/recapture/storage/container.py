"""The protocol of a container, and the one rule that both kinds share: what was listed is what is read."""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from recapture.errors import DamagedBlobError, RunError


@dataclass(frozen=True, slots=True)
class Blob:
    """One version of one blob, as a listing tells it."""

    name: str
    """Relative to the container's url, with `/` between its parts."""
    etag: str
    """Names the version; without quotation marks."""
    size: int
    """Bytes."""
    last_modified: datetime
    """UTC, whole seconds: the arrival time of every event in a capture blob (time model, section 1)."""
    md5: str | None = None
    """Content-MD5 in base64, where the service has it."""


class Container(Protocol):
    """Blobs under one url. Every method raises RunError, in one line, when the storage refuses or is out of reach."""

    @property
    def url(self) -> str:
        """Where this is, without credentials."""

    def list(self, prefix: str = "") -> Iterator[Blob]:
        """The blobs whose name starts with `prefix`, in name order, without directory markers."""

    def list_folders(self, prefix: str) -> Iterator[str]:
        """What names that start with `prefix` have up to the first `/` after it, that included; each once, in order."""

    def read(self, blob: Blob) -> bytes:
        """The content of exactly the version listed; RunError when it was changed, deleted or damaged since."""

    def read_current(self, name: str) -> bytes | None:
        """Whatever is there now; None when there is nothing."""

    def write(self, name: str, content: bytes) -> Blob:
        """Puts the blob there, in place of an older one; nobody ever sees a part of it."""

    def create(self, name: str, content: bytes) -> bool:
        """Puts the blob there unless the name is taken: of any number of writers, exactly one is told True."""

    def delete(self, name: str) -> None:
        """Removes the blob, if there is one."""

    def remove_abandoned(self, prefix: str) -> tuple[str, ...]:
        """Remove the temporary files of writers that were killed, in the folders whose names begin so; return them."""


def content_md5(content: bytes) -> str:
    """The content's Content-MD5, in base64."""
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


def verified(blob: Blob, content: bytes) -> bytes:
    """The content, if it has the size and the Content-MD5 that the listing gave."""
    if len(content) != blob.size:
        raise RunError(
            f"blob {blob.name} was not read whole: the storage sent {len(content)} of the {blob.size} bytes that it "
            "listed; run the same again, and if it recurs, check the storage account and any proxy on the way"
        )
    if blob.md5 is not None and blob.md5 != (found := content_md5(content)):
        raise DamagedBlobError(blob.name, f"its Content-MD5 is {blob.md5}, but the content gives {found}")
    return content


def changed(blob: Blob, now: str) -> RunError:
    """What to tell of a blob whose etag is another one than planned."""
    return RunError(f"blob {blob.name} changed since it was planned (etag {blob.etag}, now {now}): plan again")


def deleted(blob: Blob) -> RunError:
    """What to tell of a planned blob that is gone."""
    return RunError(f"blob {blob.name} was deleted since it was planned (etag {blob.etag}): plan again")
