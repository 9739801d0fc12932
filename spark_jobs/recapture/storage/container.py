"""Define the protocol of a container, and the rule that a blob is read exactly as it was listed."""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Protocol

from pydantic import Field

from recapture.errors import DamagedBlobError, PermanentError, RunError


@dataclass(frozen=True, slots=True)
class Blob:
    """Version of a blob, as it was listed."""

    name: str
    """Name relative to the container's url, with `/` between its parts."""
    etag: str
    """Identifier of the version, without quotation marks."""
    size: int
    """Size in bytes."""
    last_modified: datetime
    """LastModified in UTC, in whole seconds: the arrival time of the blob's events (docs/time-model.md, section 1)."""
    md5: str | None = None
    """Content-MD5 in base64; None if the service does not have it."""
    archived: Annotated[bool, Field(exclude=True)] = field(default=False, compare=False)
    """Whether the blob is in the archive tier, in which it cannot be read. Manifests do not have it."""


class Archive(Protocol):
    """Blobs to read. Every method raises RunError, in one line, if the storage refuses or cannot be reached."""

    @property
    def url(self) -> str:
        """Return the url, without credentials."""

    def list(self, prefix: str = "") -> Iterator[Blob]:
        """Yield the blobs whose name starts with `prefix`, sorted by name, without directory markers."""

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Yield the sorted folders whose paths start with `prefix`. A path ends with the first `/` after `prefix`."""

    def read(self, blob: Blob) -> bytes:
        """Return the content of the listed version.

        Raise PermanentError if it was changed or deleted, and DamagedBlobError if it is damaged.
        """

    def clock(self) -> datetime:
        """Return the storage's own time in UTC, in whole seconds: the clock that stamps LastModified."""


class Container(Archive, Protocol):
    """Blobs under one url, to read and to write. Errors are those of `Archive`."""

    def read_current(self, name: str) -> bytes | None:
        """Return the current content of a blob; None if it does not exist."""

    def read_with_etag(self, name: str) -> tuple[bytes, str] | None:
        """Return the current content of a blob and its etag; None if it does not exist."""

    def write(self, name: str, content: bytes) -> Blob:
        """Write a blob atomically, replace an older one, and return the new version."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a blob unless it exists, and return whether it was written: True for exactly one of several writers."""

    def remove(self, blob: Blob) -> bool:
        """Remove the listed version, and return whether it was there; another version of the blob stays."""

    def replace(self, name: str, content: bytes, etag: str) -> bool:
        """Write a blob if it exists and still has this etag, and return whether it was written.

        If an answer of the storage was lost, it may have been written although this returns False.
        """

    def remove_abandoned(self, prefix: str) -> tuple[str, ...]:
        """Remove and return the temporary files of killed writers, in folders whose names start with `prefix`."""


def content_md5(content: bytes) -> str:
    """Return the Content-MD5 of the content, in base64."""
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


def verified(blob: Blob, content: bytes) -> bytes:
    """Return the content. Raise RunError for another size than listed, and DamagedBlobError for another Content-MD5."""
    if len(content) != blob.size:
        raise RunError(
            f"blob {blob.name} was not read whole: the storage sent {len(content)} of the {blob.size} bytes that it "
            "listed; run the same command again, and if it recurs, check the storage account and any proxy on the way"
        )
    if blob.md5 is not None and blob.md5 != (md5 := content_md5(content)):
        raise DamagedBlobError(blob.name, f"its Content-MD5 is {blob.md5}, but the MD5 of its content is {md5}")
    return content


def changed(blob: Blob, etag: str) -> PermanentError:
    """Return the error for a blob whose etag is not the planned one."""
    return PermanentError(f"blob {blob.name} changed since it was planned (etag {blob.etag}, now {etag}): plan again")


def deleted(blob: Blob) -> PermanentError:
    """Return the error for a planned blob that does not exist any more."""
    return PermanentError(f"blob {blob.name} was deleted since it was planned (etag {blob.etag}): plan again")
