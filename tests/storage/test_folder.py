"""What only a folder has: links, temporary files, modification times, and names that lead out of it."""

import os
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from recapture.errors import RunError
from recapture.storage import Container, open_container


def test_the_modification_time_floored_to_seconds_is_last_modified(folder: Any) -> None:
    (folder.folder / "x").write_bytes(b"")
    os.utime(folder.folder / "x", ns=(0, 1_772_323_205_999_999_999))
    (blob,) = open_container(folder.url).list()
    assert blob.last_modified == datetime(2026, 3, 1, 0, 0, 5, tzinfo=UTC)


def test_writing_leaves_nothing_else_in_the_folder(folder: Any) -> None:
    container = open_container(folder.url)
    container.write("a/x", b"1")
    container.create("a/x", b"2")
    container.create("a/y", b"2")
    assert sorted(path.name for path in (folder.folder / "a").iterdir()) == ["x", "y"]


def test_what_a_killed_writer_left_behind_is_not_listed(folder: Any) -> None:
    (folder.folder / ".recapture-0123.tmp").write_bytes(b"half")
    (folder.folder / ".hidden").write_bytes(b"whole")
    assert [blob.name for blob in open_container(folder.url).list()] == [".hidden"]


def test_links_are_followed_but_not_in_a_circle(folder: Any, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "x").write_bytes(b"1")
    (folder.folder / "a").mkdir()
    (folder.folder / "a" / "up").symlink_to(folder.folder)
    (folder.folder / "linked").symlink_to(elsewhere)
    container = open_container(folder.url)
    assert [blob.name for blob in container.list()] == ["linked/x"]
    assert [container.read(blob) for blob in container.list()] == [b"1"]


@pytest.mark.parametrize("target", ["nothing", "link"])
def test_a_link_to_nothing_is_named(folder: Any, target: str) -> None:
    (folder.folder / "link").symlink_to(target)
    with pytest.raises(RunError, match=r"/link is a broken link: restore its target, or remove the link$"):
        list(open_container(folder.url).list())


def test_a_pipe_in_the_place_of_a_file_is_reported(folder: Any) -> None:
    os.mkfifo(folder.folder / "x")
    with pytest.raises(RunError, match=r"cannot read .*/x: not a regular file"):
        open_container(folder.url).read_current("x")


def test_a_name_that_is_not_utf_8_is_named(folder: Any) -> None:
    Path(os.fsdecode(os.fsencode(folder.folder) + b"/\xff.avro")).write_bytes(b"1")
    with pytest.raises(RunError, match=r"/\\udcff.avro' has a name that is not UTF-8: rename it, or move it out of "):
        list(open_container(folder.url).list())


def test_a_file_in_the_place_of_a_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RunError, match=r"/file is a file, not a folder: correct the url$"):
        list(open_container((tmp_path / "file").as_uri()).list())


def test_folders_outside_cannot_be_listed(folder: Any) -> None:
    with pytest.raises(RunError, match=r"no name under .+ can start with '\.\./a/'"):
        list(open_container(folder.url).list_folders("../a/"))


def test_only_files_are_listed(folder: Any) -> None:
    os.mkfifo(folder.folder / "pipe")
    (folder.folder / "empty folder").mkdir()
    assert list(open_container(folder.url).list()) == []


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/hostname", "", "a//b", "./a", "a/.", "a\0b"])
def test_a_name_that_leads_out_of_the_folder_is_refused(folder: Any, name: str) -> None:
    container: Container = open_container(folder.url)
    for attempt in (
        lambda: container.write(name, b""),
        lambda: container.create(name, b""),
        lambda: container.read_current(name),
    ):
        with pytest.raises(RunError, match="is not the name of a file under"):
            attempt()
    assert list(container.list()) == []


def test_a_prefix_that_leads_out_of_the_folder_selects_nothing(folder: Any, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"")
    assert list(open_container(folder.url).list("../")) == []


def test_a_listing_looks_into_a_folder_only_when_it_gets_there(folder: Any) -> None:
    container = open_container(folder.url)
    for name in ("a/1", "a/2", "b/1"):
        container.write(name, b"")
    listing = container.list()
    assert [blob.name for blob in islice(listing, 2)] == ["a/1", "a/2"]
    container.write("b/0", b"")
    assert [blob.name for blob in listing] == ["b/0", "b/1"]


def test_a_folder_that_does_not_exist_is_created_by_the_first_write(folder: Any) -> None:
    container = open_container(folder.url + "/new/table")
    assert container.read_current("x") is None
    container.write("x", b"1")
    assert container.read_current("x") == b"1"


def test_a_file_in_the_way_is_reported_in_one_line(folder: Any) -> None:
    container = open_container(folder.url)
    container.write("a", b"")
    with pytest.raises(RunError, match=r"^cannot write .*/a/b: a part of this path is a file, not a folder$"):
        container.write("a/b", b"")


def test_a_listing_skips_folders_that_its_prefix_rules_out(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub's folder may have thousands of partitions. Listing all of it for each of them would be quadratic."""
    for number in range(3):
        path = folder.folder / "hub" / str(number) / "2026" / "a"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"")
    container, scanned, scandir = open_container(folder.url), [], os.scandir

    def noted(path: str) -> Any:
        scanned.append(Path(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", noted)
    assert [blob.name for blob in container.list("hub/1/2026/")] == ["hub/1/2026/a"]
    assert [blob.name for blob in container.list("hub/1/2025/")] == []
    assert [blob.name for blob in container.list("hub/1/2026/a/b")] == []
    paths = [folder.folder / "hub" / "1" / name for name in ("2026", "2026/a")]
    assert scanned == paths


def test_a_file_that_is_replaced_while_it_is_removed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    container = open_container(tmp_path.as_uri())
    listed = container.write("part/0", b"listed")
    rename = Path.rename

    def replace_first(path: Path, target: Path) -> Path:
        container.write("part/0", b"new")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", replace_first)
    assert container.remove(listed) is False
    assert container.read_current("part/0") == b"new"
    assert [path.name for path in (tmp_path / "part").iterdir()] == ["0"]
