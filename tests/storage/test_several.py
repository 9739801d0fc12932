"""Several containers that are read as one."""

import os
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from recapture.errors import DamagedBlobError, PermanentError, RunError
from recapture.storage import Archive, open_container
from recapture.storage.container import content_md5
from recapture.storage.folder import FolderContainer
from recapture.storage.several import SeveralContainers

NAMES = {"old": ["hub/0/a", "hub/0/b", "hub/1/a"], "new": ["hub/0/c", "hub/2/a", "other/x"]}


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    for container, names in NAMES.items():
        for name in names:
            put(tmp_path / container, name, container)
    return open_container(tuple((tmp_path / name).as_uri() for name in NAMES))


def put(folder: Path, name: str, content: str, modified: int = 1_772_323_200) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, (modified, modified))


def test_blobs_and_folders_are_listed_in_order_as_those_of_one_container(archive: Archive, tmp_path: Path) -> None:
    names = ["hub/0/a", "hub/0/b", "hub/0/c", "hub/1/a", "hub/2/a"]
    assert [blob.name for blob in archive.list("hub/")] == names
    assert list(archive.list_folders("hub/")) == ["hub/0/", "hub/1/", "hub/2/"]
    assert archive.url == f"{(tmp_path / 'old').as_uri()} and {(tmp_path / 'new').as_uri()}"


def test_each_blob_is_read_from_the_container_that_has_it(archive: Archive) -> None:
    listed = list(archive.list())
    assert [archive.read(blob).decode() for blob in listed] == ["old", "old", "new", "old", "new", "new"]


def test_the_first_container_that_has_a_blob_counts(archive: Archive, tmp_path: Path) -> None:
    put(tmp_path / "new", "hub/0/a", "a copy", 1_772_330_000)
    first = next(archive.list())
    assert archive.read(first) == b"old"
    put(tmp_path / "old", "hub/0/c", "put back", 1_772_330_000)
    assert [archive.read(blob) for blob in archive.list("hub/0/c")] == [b"put back"]


def test_a_blob_that_was_changed_or_deleted_in_its_container_is_not_read_from_another(
    archive: Archive, tmp_path: Path
) -> None:
    first, second, third, *_ = archive.list()
    assert archive.read(third) == b"new"
    put(tmp_path / "old", first.name, "changed", 1_772_330_000)
    put(tmp_path / "new", second.name, "a copy", 1_772_330_000)
    (tmp_path / "old" / second.name).unlink()
    with pytest.raises(PermanentError, match="blob hub/0/a changed since it was planned"):
        archive.read(first)
    with pytest.raises(PermanentError, match=r"blob hub/0/b (changed|was deleted) since it was planned"):
        archive.read(second)


def test_a_damaged_blob_is_reported_as_damaged_and_not_as_deleted(archive: Archive) -> None:
    (blob,) = archive.list("hub/2/")
    with pytest.raises(DamagedBlobError):
        archive.read(replace(blob, md5=content_md5(b"other bytes")))


def test_a_container_that_does_not_exist_is_named(archive: Archive, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="gone"):
        list(open_container(((tmp_path / "old").as_uri(), (tmp_path / "gone").as_uri())).list())


def test_the_clock_is_that_of_the_storage_that_is_behind(tmp_path: Path) -> None:
    class Ahead(FolderContainer):
        def clock(self) -> datetime:
            return super().clock() + timedelta(hours=1)

    ahead, behind = Ahead(tmp_path), FolderContainer(tmp_path)
    for containers in ([ahead, behind], [behind, ahead]):
        assert SeveralContainers(containers).clock() < ahead.clock() - timedelta(minutes=50)
