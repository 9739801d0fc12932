"""Places blobs in the past: sets their LastModified in the store of a stopped Azurite.

A real account cannot do that, and neither can Azurite's own interface. Written for Azurite 3.35.0, whose store is
one JSON file in its workspace. Etags and contents stay as they are.
"""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_STORE = "__azurite_db_blob__.json"


def place_arrivals(workspace: Path, arrivals: Mapping[tuple[str, str], datetime]) -> None:
    """Sets LastModified (aware) of each (container, blob name) in the emulator's only account.

    Azurite must be stopped: it writes its store anew when it stops. Raises FileNotFoundError when the workspace
    holds no store, and LookupError, before anything is changed, when a blob is not in it.
    """
    path = workspace / _STORE
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: not the workspace of an Azurite that was stopped")
    store = json.loads(path.read_text(encoding="utf-8"))
    blobs = {(blob["containerName"], blob["name"]): blob["properties"] for blob in _current(store)}
    if missing := sorted(arrivals.keys() - blobs.keys()):
        container, name = missing[0]
        raise LookupError(f"{len(missing)} of {len(arrivals)} blobs are not in {path}, the first is {container}/{name}")
    for key, arrival in arrivals.items():
        blobs[key]["lastModified"] = _text(arrival)
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(store, ensure_ascii=False), encoding="utf-8")
    os.replace(beside, path)


def _current(store: dict[str, Any]) -> list[dict[str, Any]]:
    collection = next(kept for kept in store["collections"] if kept["name"] == "$BLOBS_COLLECTION$")
    return [blob for blob in collection["data"] if not blob["snapshot"]]


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
