"""Play Event Hubs Capture with sample events: python -m composed.play_capture ACCOUNT READY

Create the containers in the account of the emulator, write the blobs of the last six hours, create the file READY, and
go on with a blob of each partition every five minutes. After a restart, continue: no blob is written twice.
"""

import itertools
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import BlobServiceClient

from embedded.live import LiveWorld
from recapture.storage import open_container

ARCHIVE, TABLES, STATE = "capture", "curated", "sample"
BEGIN = "begin"
"""Blob in the container STATE: the time when Capture was first played, in ISO 8601."""


def play(account: str, ready: Path) -> None:
    """Write the blobs that are due, then every other one at its time, for a week."""
    with BlobServiceClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"]) as client:
        for name in (ARCHIVE, TABLES, STATE):
            try:
                client.create_container(name)
            except ResourceExistsError:
                continue
    archive, world = open_container(f"{account}/{ARCHIVE}"), LiveWorld(_begin(account))
    for blob in itertools.chain(world.written(), world.following()):
        wait = (blob.last_modified - datetime.now(UTC)).total_seconds()
        if wait > 0:
            ready.touch()
            time.sleep(wait)
        archive.create(blob.name, blob.content)


def _begin(account: str) -> datetime:
    state = open_container(f"{account}/{STATE}")
    state.create(BEGIN, datetime.now(UTC).isoformat().encode())
    written = state.read_current(BEGIN)
    assert written is not None, "it exists now"
    return datetime.fromisoformat(written.decode())


if __name__ == "__main__":
    play(sys.argv[1], Path(sys.argv[2]))
