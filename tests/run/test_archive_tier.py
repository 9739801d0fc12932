"""Blobs in the archive tier of Azure: a run that needs them stops before it reads anything."""

import uuid
from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient, StandardBlobTier

from embedded.azurite import Azurite
from recapture.archive import manifest as manifests
from recapture.errors import RunError, SetupError
from recapture.run.plan import changed_since, preview, preview_run
from recapture.storage import open_container
from tests.worlds import HOUR, TELEMETRY, TEN, one_event


def test_a_range_with_archived_blobs_is_refused_until_they_are_online_again(
    azurite: Azurite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = one_event(tmp_path, hours=4)
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.connection_string)
    client = ContainerClient.from_connection_string(azurite.connection_string, f"test-{uuid.uuid4().hex}")
    client.create_container()
    names = sorted(path.relative_to(world.capture).as_posix() for path in world.capture.rglob("*.avro"))
    for name in names:
        client.upload_blob(name, (world.capture / name).read_bytes())
    url = f"{azurite.url}/{client.container_name}"
    pipeline = world.define(inputs=[TELEMETRY | {"container": url, "arrival_time": "EventEnqueuedUtcTime"}])
    before = preview(pipeline, TEN, TEN + 4 * HOUR)

    client.get_blob_client(names[0]).set_standard_blob_tier(StandardBlobTier.ARCHIVE)
    reason = (
        f"1 of {len(before.inputs[0].blobs)} blobs of the input telemetry are in the archive tier, such as {names[0]}"
    )
    for planned in (preview, preview_run):
        with pytest.raises(SetupError, match=reason):
            planned(pipeline, TEN, TEN + 4 * HOUR)
    assert preview(pipeline, TEN + 3 * HOUR, TEN + 4 * HOUR).inputs[0].blobs, "no blob of this slice is archived"
    assert changed_since(pipeline, before) == [], "an archived blob of a published slice has not changed"
    container = open_container(url)
    archived, *others = container.list()
    assert (archived.archived, {blob.archived for blob in others}) == (True, {False})
    with pytest.raises(RunError, match=r"\(BlobArchived\): the blob is in the archive tier"):
        container.read(archived)

    client.get_blob_client(names[0]).set_standard_blob_tier(StandardBlobTier.HOT)
    again = preview(pipeline, TEN, TEN + 4 * HOUR)
    assert again == before
    assert b"archived" not in again.to_json()
    assert manifests.from_json(again.to_json()) == again
