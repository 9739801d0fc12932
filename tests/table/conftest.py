"""Fixtures of the tests of tables."""

from pathlib import Path

import pytest

from tests.table.publishing import Place, on_azurite


@pytest.fixture(params=["folder", "azure"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place on each kind of storage."""
    if request.param == "folder":
        return Place(tmp_path.as_uri())
    azurite = request.getfixturevalue("azurite")
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.connection_string)
    return on_azurite(azurite)
