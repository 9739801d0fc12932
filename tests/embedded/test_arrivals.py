"""A running Azurite reports the arrivals that were placed in its store while it was stopped."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient

from embedded.arrivals import set_last_modified
from embedded.azurite import Azurite
from recapture.errors import RunError
from recapture.storage import open_container

ARRIVALS = {
    "contoso/telemetry/0/2026/03/01/00/00/00.avro": datetime(2026, 3, 1, 0, 5, 2, tzinfo=UTC),
    "naïve/日本.avro": datetime(2026, 3, 1, 1, 5, 2, tzinfo=timezone(timedelta(hours=1))),
}


def test_a_blob_is_listed_with_its_placed_arrival_and_still_reads_as_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "workspace"
    with Azurite(tmp_path / "first.log", workspace) as azurite:
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.connection_string)
        ContainerClient.from_connection_string(azurite.connection_string, "capture").create_container()
        container = open_container(f"{azurite.url}/capture")
        before = {name: container.write(name, name.encode()) for name in (*ARRIVALS, "untouched")}
    set_last_modified(workspace, {("capture", name): arrival for name, arrival in ARRIVALS.items()})
    with Azurite(tmp_path / "second.log", workspace) as azurite:
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.connection_string)
        container = open_container(f"{azurite.url}/capture")
        listed = {blob.name: blob for blob in container.list()}
        assert {name: blob.last_modified for name, blob in listed.items()} == ARRIVALS | {
            "untouched": before["untouched"].last_modified
        }
        for name, blob in listed.items():
            assert (blob.etag, blob.md5, blob.size) == (before[name].etag, before[name].md5, before[name].size)
            assert container.read(blob) == name.encode()
        planned = listed["naïve/日本.avro"]
        container.write(planned.name, b"new")
        with pytest.raises(RunError, match="changed since it was planned"):
            container.read(planned)
    store = workspace / "__azurite_db_blob__.json"
    content = store.read_bytes()
    with pytest.raises(LookupError, match=r"1 of 2 blobs are not in .*; the first is capture/nowhere$"):
        set_last_modified(
            workspace, dict.fromkeys([("capture", "untouched"), ("capture", "nowhere")], datetime.now(UTC))
        )
    assert store.read_bytes() == content


def test_a_folder_without_a_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="give the workspace of an Azurite that was stopped"):
        set_last_modified(tmp_path, {})
