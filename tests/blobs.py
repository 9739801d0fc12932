"""Blobs of archives in local folders, and their LastModified."""

import os
from datetime import datetime
from pathlib import Path


def write_blob(path: Path, content: bytes, arrival: datetime) -> Path:
    """Write a blob that was last modified at `arrival`, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    touch(path, arrival)
    return path


def rewrite(path: Path, content: bytes) -> None:
    """Replace the content of a blob, and keep its LastModified."""
    modified = path.stat().st_mtime_ns
    path.write_bytes(content)
    os.utime(path, ns=(modified, modified))


def touch(path: Path, modified: datetime) -> None:
    """Change the LastModified of a blob."""
    os.utime(path, (modified.timestamp(),) * 2)
