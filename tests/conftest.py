"""What every test shares."""

import os
from collections.abc import Iterator

import pytest
from embedded.azurite import Azurite
from hypothesis import settings

settings.register_profile("recapture", deadline=None, max_examples=200, derandomize=os.environ.get("CI") == "true")
settings.load_profile("recapture")


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """The storage emulator, in memory, on a free port; one for the whole run."""
    with Azurite(log=tmp_path_factory.mktemp("azurite") / "azurite.log") as running:
        yield running
