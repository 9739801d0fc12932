"""Let time pass for the tables of a folder: their files, and what their logs say of removed files, become older."""

import os
import re
from pathlib import Path

DAY = 86_400


def age(folder: Path, days: float = 8) -> None:
    """Make all files below a folder older, and the removals in the commits of tables; those in checkpoints stay."""
    for path in folder.rglob("*"):
        if not path.is_file():
            continue
        if path.parent.name == "_delta_log" and path.suffix == ".json":
            path.write_text(
                re.sub(r'(?<="deletionTimestamp":)\d+', lambda found: _earlier(found[0], days), path.read_text())
            )
        status = path.stat()
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - round(days * DAY * 1e9)))


def _earlier(milliseconds: str, days: float) -> str:
    return str(int(milliseconds) - round(days * DAY * 1000))
