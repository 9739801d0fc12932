"""The two kinds of container, empty, so that one test holds for both."""

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient

from embedded.azurite import Azurite
from recapture.storage import Container, open_container
from tests.storage.fault_proxy import FaultProxy


@dataclass(frozen=True)
class AzurePlace:
    """A new container in the emulator."""

    url: str
    client: ContainerClient

    def touch(self, name: str) -> None:
        """Change LastModified and nothing else."""
        self.client.get_blob_client(name).set_blob_metadata({"touched": "yes"})

    def remove(self, name: str) -> None:
        """Delete a blob."""
        self.client.delete_blob(name)


@dataclass(frozen=True)
class FolderPlace:
    """A new folder."""

    folder: Path

    @property
    def url(self) -> str:
        return self.folder.as_uri()

    def touch(self, name: str) -> None:
        """Change the modification time and nothing else."""
        os.utime(self.folder / name)

    def remove(self, name: str) -> None:
        """Delete a file."""
        (self.folder / name).unlink()


@pytest.fixture
def azure(azurite: Azurite, monkeypatch: pytest.MonkeyPatch) -> AzurePlace:
    """An empty container, and the environment that grants access to it."""
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.connection_string)
    client = ContainerClient.from_connection_string(azurite.connection_string, f"test-{uuid.uuid4().hex}")
    client.create_container()
    return AzurePlace(f"{azurite.url}/{client.container_name}", client)


@pytest.fixture
def folder(tmp_path: Path) -> FolderPlace:
    """An empty folder."""
    place = tmp_path / "a folder"
    place.mkdir()
    return FolderPlace(place)


@pytest.fixture(params=["azure", "folder"])
def place(request: pytest.FixtureRequest) -> AzurePlace | FolderPlace:
    """Either kind of place."""
    chosen: AzurePlace | FolderPlace = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
def container(place: AzurePlace | FolderPlace) -> Container:
    """Either kind of container."""
    return open_container(place.url)


@pytest.fixture
def proxy(azurite: Azurite) -> Iterator[FaultProxy]:
    """A proxy in front of the emulator."""
    with FaultProxy(azurite) as running:
        yield running
