"""Set the LastModified of blobs in the store of a stopped Azurite.

Neither a real account nor Azurite's own interface can do that. This code is for Azurite 3.35.0, whose store is one JSON
file in its workspace. Etags and contents do not change.
"""

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_STORE = "__azurite_db_blob__.json"


def set_last_modified(workspace: Path, arrivals: Mapping[tuple[str, str], datetime]) -> None:
    """Set the LastModified of each (container, blob name) in the emulator's only account; the times are aware.

    Azurite must be stopped, because it overwrites its store when it stops. Raise FileNotFoundError if the workspace has
    no store, and LookupError if a blob is not in the store; nothing has changed then.
    """
    path = workspace / _STORE
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: give the workspace of an Azurite that was stopped")
    store = json.loads(path.read_text(encoding="utf-8"))
    blobs = {(blob["containerName"], blob["name"]): blob["properties"] for blob in _current(store)}
    if missing := sorted(arrivals.keys() - blobs.keys()):
        container, name = missing[0]
        raise LookupError(f"{len(missing)} of {len(arrivals)} blobs are not in {path}; the first is {container}/{name}")
    for key, arrival in arrivals.items():
        text = arrival.astimezone(UTC).isoformat(timespec="milliseconds")
        blobs[key]["lastModified"] = text.replace("+00:00", "Z")
    replacement = path.with_suffix(".new")
    replacement.write_text(json.dumps(store, ensure_ascii=False), encoding="utf-8")
    os.replace(replacement, path)


def _current(store: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of all blobs in the store, without snapshots."""
    blobs = next(collection for collection in store["collections"] if collection["name"] == "$BLOBS_COLLECTION$")
    return [blob for blob in blobs["data"] if not blob["snapshot"]]
