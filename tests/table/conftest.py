"""Fixtures of the tests of tables."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.azurite import Azurite
from tests.storage.fault_proxy import FaultProxy
from tests.table.publishing import Place, on_azurite


@pytest.fixture(params=["folder", "azure"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place on each kind of storage."""
    if request.param == "folder":
        return Place(tmp_path.as_uri())
    azurite = request.getfixturevalue("azurite")
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.connection_string)
    return on_azurite(azurite)


@pytest.fixture
def folder(tmp_path: Path) -> Place:
    """A place in a folder, for what does not depend on the storage."""
    return Place(tmp_path.as_uri())


@pytest.fixture
def proxy(azurite: Azurite) -> Iterator[FaultProxy]:
    """A proxy in front of the emulator."""
    with FaultProxy(azurite) as proxy:
        yield proxy
