"""Write commits of Delta tables that name change files, which delta-rs cannot write.

The actions are those of the Delta transaction log protocol: add, remove, cdc and commitInfo.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from recapture.storage import Container

_UNQUOTED = "/=:@!$&'()*+,;~"
"""Characters that stand for themselves in a path of the log, next to letters, digits and `-._`."""


@dataclass(frozen=True)
class Added:
    """File that a commit adds."""

    path: str
    """Path relative to the table."""
    size: int
    """Size in bytes."""
    partition: Mapping[str, str]
    """Values of the partition columns."""
    stats: str
    """Statistics, as JSON."""
    is_change: bool = True
    """Whether the file's rows differ from those that the commit removes from the same slice."""


@dataclass(frozen=True)
class Removed:
    """File that a commit removes. It has no deletion vector."""

    logged_path: str
    """Path as the log has it, with escaped characters."""
    size: int
    partition: Mapping[str, str]
    is_change: bool = True


@dataclass(frozen=True)
class ChangeFile:
    """File with the rows of a slice that a commit changes."""

    path: str
    size: int
    partition: Mapping[str, str]


Action = Added | Removed | ChangeFile


def statistics(rows: int, values: Mapping[str, str | int | None]) -> str:
    """Return the statistics of a file as JSON: the number of its rows and, of a file of one row, its values."""
    stats: dict[str, Any] = {"numRecords": rows}
    if values:
        known = {name: value for name, value in values.items() if value is not None}
        nulls = {name: int(value is None) for name, value in values.items()}
        stats |= {"minValues": known, "maxValues": known, "nullCount": nulls}
    return json.dumps(stats)


def write_commit(table: Container, version: int, actions: Iterable[Action], metadata: Mapping[str, str]) -> bool:
    """Write a commit, and return whether it took place: not if another writer committed the version first.

    `metadata` becomes part of the commit's information. Raise RunError if the storage refuses; whether the commit took
    place is then unknown.
    """
    now = int(time.time() * 1000)
    lines = (json.dumps(line, separators=(",", ":")) for line in _lines(actions, metadata, now))
    return table.create(f"_delta_log/{version:020}.json", "\n".join(lines).encode())


def _lines(actions: Iterable[Action], metadata: Mapping[str, str], now: int) -> Iterator[dict[str, Any]]:
    information = {
        "timestamp": now,
        "operation": "WRITE",
        "operationParameters": {"mode": "Overwrite"},
        "isBlindAppend": False,
        "engineInfo": "Recapture",
    }
    yield {"commitInfo": information | dict(metadata)}
    for action in actions:
        values: dict[str, Any] = {"partitionValues": dict(action.partition), "size": action.size}
        match action:
            case Added():
                more = {"modificationTime": now, "dataChange": action.is_change, "stats": action.stats}
                yield {"add": {"path": _logged(action.path), **values, **more}}
            case Removed():
                more = {"deletionTimestamp": now, "dataChange": action.is_change, "extendedFileMetadata": True}
                yield {"remove": {"path": action.logged_path, **values, **more}}
            case ChangeFile():
                yield {"cdc": {"path": _logged(action.path), **values, "dataChange": False}}


def _logged(path: str) -> str:
    return quote(path, safe=_UNQUOTED)
