"""Azurite listens on a port of its own, and never mistakes another server for itself."""

import socket
import uuid
from pathlib import Path

import pytest
from azure.storage.blob import BlobServiceClient

from embedded.azurite import Azurite
from embedded.process import free_port


def test_an_emulator_whose_port_is_taken_does_not_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as orphan:
        port = orphan.getsockname()[1]
        azurite = Azurite(tmp_path / "log", port=port)
        with pytest.raises(
            RuntimeError, match=rf"Azurite ended with exit code 1:(.|\n)*already in use 127.0.0.1:{port}"
        ):
            azurite.__enter__()


def test_emulators_choose_ports_of_their_own(azurite: Azurite, tmp_path: Path) -> None:
    name = f"test-{uuid.uuid4().hex}"
    with Azurite(tmp_path / "log") as second:
        assert azurite.port != second.port
        BlobServiceClient.from_connection_string(azurite.connection_string).create_container(name)
        assert name in containers(azurite)
        assert containers(second) == []


def test_an_emulator_starts_again_on_the_port_that_it_was_given(tmp_path: Path) -> None:
    azurite = Azurite(tmp_path / "log", tmp_path / "blobs", free_port())
    with azurite:
        before = azurite.port
        BlobServiceClient.from_connection_string(azurite.connection_string).create_container("mine")
    with azurite:
        assert azurite.port == before
        assert containers(azurite) == ["mine"]


def containers(azurite: Azurite) -> list[str]:
    with BlobServiceClient.from_connection_string(azurite.connection_string) as client:
        return [container.name for container in client.list_containers()]
