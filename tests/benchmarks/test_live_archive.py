"""The archive of the update benchmark is read as one in Azure, at its own time."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from benchmarks.live_archive import LiveArchive
from recapture.errors import RunError
from recapture.storage import Container, open_container
from tests.worlds import HOUR

NOW = datetime(2024, 3, 1, 10, 30, tzinfo=UTC)


@pytest.fixture
def archive() -> Iterator[LiveArchive]:
    archive = LiveArchive(NOW)
    with archive.served():
        yield archive


@pytest.fixture
def container(archive: LiveArchive) -> Container:
    return open_container(archive.url)


def names(container: Container, prefix: str = "") -> list[str]:
    return [blob.name for blob in container.list(prefix)]


def test_the_storage_tells_its_own_time(archive: LiveArchive, container: Container) -> None:
    assert container.clock() == NOW
    archive.pass_time(HOUR)
    assert container.clock() == NOW + HOUR


def test_a_blob_is_listed_and_read_from_the_time_on_at_which_it_is_written(
    archive: LiveArchive, container: Container
) -> None:
    archive.put("a/early", b"early", archive.now - HOUR)
    archive.put("a/late", b"late", archive.now + HOUR)
    assert names(container) == ["a/early"]
    assert container.read_current("a/late") is None
    archive.pass_time(HOUR)
    assert names(container) == ["a/early", "a/late"]
    assert [container.read(blob) for blob in container.list()] == [b"early", b"late"]
    assert names(container, "a/l") == ["a/late"]
    assert list(container.list_folders("")) == ["a/"]


def test_a_blob_that_was_replaced_is_another_version(archive: LiveArchive, container: Container) -> None:
    written = archive.now - HOUR
    archive.put("a", b"first", written)
    (first,) = container.list()
    etag = archive.put("a", b"second", written).etag
    (second,) = container.list()
    assert (container.read(second), second.etag) == (b"second", etag)
    with pytest.raises(RunError, match="changed"):
        container.read(first)


def test_the_storage_is_never_ahead_of_the_machine(archive: LiveArchive) -> None:
    with pytest.raises(ValueError, match="ahead"):
        archive.pass_time(datetime.now(UTC) - NOW + HOUR)
