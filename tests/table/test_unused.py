"""Which files of a table VACUUM may delete, on each kind of storage."""

from datetime import UTC, datetime, timedelta

import pytest

from recapture.storage import Blob, open_container
from recapture.storage.azure import AzureContainer
from recapture.storage.folder import FolderContainer
from recapture.table.delta import OpenTable
from recapture.table.unused import unused_files
from tests.table.publishing import NINE, ROWS, Place


@pytest.fixture
def days_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the storage's clock be eight days ahead."""
    for kind in (AzureContainer, FolderContainer):
        monkeypatch.setattr(kind, "clock", lambda container: datetime.now(UTC) + timedelta(days=8))


def unused(place: Place) -> list[Blob]:
    return unused_files(place.tables.others[ROWS])


def test_young_files_are_not_unused(place: Place) -> None:
    place.publish("a")
    place.publication("staged")
    assert unused(place) == []


@pytest.mark.usefixtures("days_later")
def test_files_that_no_version_names_are_unused_after_the_retention_and_can_be_removed(place: Place) -> None:
    place.publish("a")
    place.publish("b")
    staged = place.publication("staged").files[ROWS]
    (held,) = OpenTable(place.tables.others[ROWS]).held([NINE])[NINE]
    blobs = unused(place)
    assert staged is not None
    assert staged.path in {blob.name for blob in blobs}
    assert len(blobs) == 2
    assert held.path not in {blob.name for blob in blobs}
    assert [place.container(ROWS).remove(blob) for blob in blobs] == [True, True]
    assert unused(place) == []
    assert place.shown(ROWS) == {NINE: "b"}


@pytest.mark.usefixtures("days_later")
def test_a_longer_retention_of_the_table_counts(folder: Place) -> None:
    folder.publish("a")
    folder.publication("staged")
    table = OpenTable(folder.tables.others[ROWS])
    assert table._delta is not None
    table._delta.alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 30 days"})
    assert unused(folder) == []


@pytest.mark.usefixtures("days_later")
def test_a_table_that_was_never_published_to_has_only_staged_files(place: Place) -> None:
    open_container(place.table_url(ROWS))
    assert unused(place) == []
    place.publication("staged")
    assert len(unused(place)) == 1
