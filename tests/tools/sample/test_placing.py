"""A world in a folder, as a container sees it."""

from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

from recapture.storage import open_container
from recapture.tools.sample import upload_world, world, write_world
from recapture.tools.sample.__main__ import main

START = datetime(2026, 3, 1, tzinfo=UTC)


def test_a_world_in_a_folder_has_its_names_contents_and_arrivals(tmp_path: Path) -> None:
    blobs = list(islice(world(START, 1), 20))
    assert write_world(blobs, tmp_path) == 20
    container = open_container(tmp_path.as_uri())
    listed = [(blob.name, container.read(blob), blob.last_modified) for blob in container.list()]
    assert listed == sorted((blob.name, blob.content, blob.last_modified) for blob in blobs)


def test_uploading_a_world_returns_when_each_blob_should_have_arrived(tmp_path: Path) -> None:
    blobs = list(islice(world(START, 1), 50))
    container = open_container(tmp_path.as_uri())
    assert upload_world(blobs, container) == {blob.name: blob.last_modified for blob in blobs}
    assert {blob.name: container.read(blob) for blob in container.list()} == {b.name: b.content for b in blobs}


def test_the_entry_point_writes_a_world(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(tmp_path / "capture"), "--start", "2026-03-01T00:00:00Z", "--hours", "1"])
    assert capsys.readouterr().out == f"wrote 100 blobs to {(tmp_path / 'capture').as_uri()}\n"
    listed = open_container((tmp_path / "capture").as_uri()).list()
    assert [(blob.name, blob.last_modified) for blob in listed] == sorted(
        (blob.name, blob.last_modified) for blob in world(START, 1)
    )
