"""The look at the files of a change: what was vacuumed, lost or damaged since it was staged is not published."""

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from embedded.azurite import Azurite
from recapture.errors import RunError, UnfinishedError
from recapture.storage import Blob
from recapture.storage.folder import FolderContainer
from recapture.table import publish
from recapture.table.delta import OpenTable
from recapture.table.publications import Publication
from recapture.table.snapshot import File
from recapture.table.stored import MAX_LISTINGS, fault_of, find
from recapture.time_model import ticks
from tests.storage.fault_proxy import FaultProxy, forgotten
from tests.table import strangers
from tests.table.publishing import METRICS, NINE, QUARANTINE, ROWS, TEN, Place, everywhere, on_azurite, remove

AGAIN = r"repeat the backfill; in Airflow, clear the DAG run's task order_and_aggregate"
HOUR = timedelta(hours=1)


def path_of(place: Place, name: str, publication: Publication) -> Path:
    """Return the local path of a staged file."""
    file = publication.files[name]
    assert file is not None
    return place.folder(name) / file.path


def aged(path: Path, age: timedelta) -> float:
    """Let a file have been written so long ago; return its modification time."""
    modified = time.time() - age.total_seconds()
    os.utime(path, (modified, modified))
    return path.stat().st_mtime


@pytest.mark.parametrize("name", [ROWS, METRICS, QUARANTINE])
def test_a_staged_file_that_is_gone_is_not_published(place: Place, name: str) -> None:
    place.publish("first", NINE, TEN)
    staged = {start: place.publication("second", start) for start in (NINE, TEN)}
    file = staged[TEN].files[name]
    assert file is not None
    remove(place.table_url(name), file.path)
    versions, url = place.versions(), place.table_url(name)
    with pytest.raises(RunError) as raised:
        publish.publish(place.tables, staged)
    assert str(raised.value) == (
        f"slice {TEN} of {url} has lost a file, perhaps to a vacuum ({file.path}): "
        "repeat the backfill; in Airflow, clear the DAG run's task order_and_aggregate"
    )
    assert (raised.value.exit_code, place.versions()) == (1, versions)
    assert place.held(NINE) == place.held(TEN) == everywhere("first")
    place.publish("second", NINE, TEN)
    assert place.held(NINE) == place.held(TEN) == everywhere("second")


def test_a_full_vacuum_between_staging_and_publication_is_seen(folder: Place) -> None:
    folder.publish("first")
    staged = folder.publication("second")
    strangers.vacuum(folder.folder())
    with pytest.raises(RunError, match=rf"{ROWS} has lost a file, perhaps to a vacuum .*: {AGAIN}"):
        publish.publish(folder.tables, {NINE: staged})
    assert folder.shown(ROWS) == {NINE: "first"}


def test_a_first_publication_looks_too(folder: Place) -> None:
    staged = folder.publication("first")
    path_of(folder, ROWS, staged).unlink()
    with pytest.raises(RunError, match=AGAIN):
        publish.publish(folder.tables, {NINE: staged})
    assert folder.entry().run is None


def test_a_publication_that_is_repeated_looks_again(folder: Place) -> None:
    folder.publish("run")
    staged = folder.publication("run")
    path_of(folder, ROWS, staged).write_bytes(b"")
    with pytest.raises(RunError, match=f"slice {NINE} of .* has an empty file") as raised:
        publish.publish(folder.tables, {NINE: staged})
    assert not isinstance(raised.value, UnfinishedError), "nothing was to be changed"


@pytest.mark.parametrize(("content", "fault"), [(b"", "has an empty file"), (b"PAR1", "has a file of the wrong size")])
def test_a_staged_file_of_another_size_is_not_published(folder: Place, content: bytes, fault: str) -> None:
    folder.publish("first")
    staged = folder.publication("second")
    path_of(folder, QUARANTINE, staged).write_bytes(content)
    with pytest.raises(RunError, match=f"slice {NINE} of {folder.table_url(QUARANTINE)} {fault}"):
        publish.publish(folder.tables, {NINE: staged})
    assert folder.held() == everywhere("first")


def test_staging_replaces_a_file_that_is_not_what_its_name_says(place: Place) -> None:
    file = place.publication("run").files[ROWS]
    assert file is not None
    container = place.container(ROWS)
    content = container.read_current(file.path)
    assert content is not None
    for damaged in (b"", content[:-1], bytes(len(content))):
        container.write(file.path, damaged)
        assert place.publication("run").files[ROWS] == file
        assert container.read_current(file.path) == content


@pytest.mark.parametrize(
    ("age", "retention", "is_written_again"),
    [
        (83 * HOUR, None, False),
        (85 * HOUR, None, True),
        (400 * HOUR, None, True),
        (85 * HOUR, "interval 30 days", False),
        (0.9 * HOUR, "interval 2 hours", False),
        (1.1 * HOUR, "interval 2 hours", True),
    ],
)
def test_a_staged_file_older_than_half_of_the_retention_is_written_again(
    folder: Place, age: timedelta, retention: str | None, is_written_again: bool
) -> None:
    folder.publish("first")
    if retention is not None:
        strangers.set_property(folder.folder(), "delta.deletedFileRetentionDuration", retention)
    staged = folder.publication("second")
    path = path_of(folder, ROWS, staged)
    content, before = path.read_bytes(), aged(path, age)
    publish.publish(folder.tables, {NINE: staged})
    assert (path.stat().st_mtime > before) == is_written_again
    assert path.read_bytes() == content
    assert folder.held() == everywhere("second")


def test_a_file_that_a_version_names_is_not_written_again(folder: Place) -> None:
    folder.publish("run")
    staged = folder.publication("run")
    path = path_of(folder, ROWS, staged)
    before = aged(path, 1000 * HOUR)
    publish.publish(folder.tables, {NINE: staged})
    assert path.stat().st_mtime == before


def test_an_old_staged_file_whose_content_is_damaged_is_not_published(folder: Place) -> None:
    folder.publish("first")
    staged = folder.publication("second")
    path = path_of(folder, ROWS, staged)
    path.write_bytes(bytes(path.stat().st_size))
    aged(path, 100 * HOUR)
    with pytest.raises(RunError, match=f"is gone, or does not match the digest in its name: {AGAIN}"):
        publish.publish(folder.tables, {NINE: staged})
    assert folder.held() == everywhere("first")


def test_a_rollback_writes_old_files_again_too(folder: Place) -> None:
    first = folder.publication("first")
    publish.publish(folder.tables, {NINE: first})
    folder.publish("second")
    before = {name: aged(path_of(folder, name, first), 100 * HOUR) for name in (ROWS, METRICS, QUARANTINE)}
    folder.rollback()
    for name, modified in before.items():
        assert path_of(folder, name, first).stat().st_mtime > modified
    assert folder.held() == everywhere("first")


def test_a_file_that_a_vacuum_deletes_all_the_same_is_reported(folder: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.publish("first")
    staged = folder.publication("second")
    path = path_of(folder, ROWS, staged)
    aged(path, 400 * HOUR)
    commit = OpenTable.commit

    def vacuumed(*arguments: Any) -> bool:
        path.unlink(missing_ok=True)
        return commit(*arguments)

    monkeypatch.setattr(OpenTable, "commit", vacuumed)
    with pytest.raises(UnfinishedError, match=rf"slice {NINE} of .* has lost a file, perhaps to a vacuum .*: {AGAIN}"):
        publish.publish(folder.tables, {NINE: staged})
    monkeypatch.undo()
    folder.publish("second")
    assert folder.shown(ROWS) == {NINE: "second"}


@pytest.mark.parametrize("name", ["publications", ROWS, METRICS, QUARANTINE])
def test_a_write_that_is_acknowledged_and_lost_is_found_before_anything_is_published(
    azurite: Azurite, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", proxy.connection_string)
    place = Place(on_azurite(azurite).url.replace(azurite.url, proxy.url))
    place.publish("first")
    versions = place.versions()
    folder = place.table_url(name).rsplit("/", 1)[1]
    proxy.inject(forgotten, "write", rf"curated/{folder}/slice_start=.*\.parquet$")
    with pytest.raises(RunError, match=rf"slice {NINE} of .*/{folder} has lost a file, .*: {AGAIN}") as raised:
        place.publish("second")
    assert raised.value.exit_code == 1
    assert proxy.requested("write", folder), "the fault was met"
    assert place.versions() == versions
    assert place.held() == everywhere("first")
    proxy.clear()
    place.publish("second")
    assert place.held() == everywhere("second")


def starts(number: int) -> list[str]:
    first = ticks.from_compact_text("20240301T000000Z")
    return [ticks.to_text(first + hour * 3600 * ticks.TICKS_PER_SECOND) for hour in range(number)]


@pytest.mark.parametrize(("number", "listings"), [(1, 1), (4, 4), (24, 1), (96, 4), (744, 1), (8760, 2)])
def test_few_listings_cover_a_long_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, listings: int
) -> None:
    prefixes: list[str] = []

    def listed(container: FolderContainer, prefix: str = "") -> Iterator[Blob]:
        prefixes.append(prefix)
        return iter(())

    monkeypatch.setattr(FolderContainer, "list", listed)
    files = {start: File(f"slice_start={start.replace('-', '').replace(':', '')}/x", 1, 1) for start in starts(number)}
    stored = find(tmp_path.as_uri(), files)
    assert len(prefixes) == listings <= MAX_LISTINGS
    assert all(file.path.startswith(tuple(prefixes)) for file in files.values())
    assert {fault_of(files[start], blob) for start, blob in stored.items()} == {"has lost a file, perhaps to a vacuum"}
