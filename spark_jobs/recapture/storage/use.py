"""Count what this process asks of the storage: requests and bytes, through all containers."""

import threading
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Use:
    """What was asked of the storage. In a local folder, each call counts as a request.

    The requests of delta-rs, which reads and writes the logs of tables, are not counted.
    """

    reads: int = 0
    """Number of requests that read a blob."""
    writes: int = 0
    """Number of requests that write one; those that delete one cost nothing and do not count."""
    lists: int = 0
    """Number of requests that list blobs."""
    read_bytes: int = 0
    written_bytes: int = 0

    def __add__(self, other: "Use") -> "Use":
        return Use(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(Use)))

    def __sub__(self, other: "Use") -> "Use":
        return Use(*(getattr(self, field.name) - getattr(other, field.name) for field in fields(Use)))


_lock = threading.Lock()
_used = Use()


def used() -> Use:
    """Return what this process has asked of the storage since it began."""
    return _used


def count_read(size: int) -> None:
    """Count a request that read so many bytes."""
    _count(Use(reads=1, read_bytes=size))


def count_write(size: int) -> None:
    """Count a request that wrote so many bytes."""
    _count(Use(writes=1, written_bytes=size))


def count_list() -> None:
    """Count a request that listed blobs."""
    _count(Use(lists=1))


def count_response(response: Any) -> None:
    """Count a request to Azure Storage by its response, as the hooks of its client get it."""
    request, answer = response.http_request, response.http_response
    if request.method in ("GET", "HEAD"):
        is_list = "comp=list" in request.url
        size = 0 if request.method == "HEAD" else int(answer.headers.get("Content-Length") or 0)
        _count(Use(lists=1) if is_list else Use(reads=1, read_bytes=size))
    elif request.method != "DELETE":  # which costs nothing
        _count(Use(writes=1, written_bytes=int(request.headers.get("Content-Length") or 0)))


def _count(use: Use) -> None:
    global _used
    with _lock:
        _used += use
