"""An archive for the tests of slices."""

from pathlib import Path

import pytest

from recapture.tools.sample import world as sample_world
from recapture.tools.sample import write_world
from tests.ordering.tasks import HOUR, TEN


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write three hours from nine on, with every fault of the sample world."""
    home = tmp_path_factory.mktemp("world")
    write_world(sample_world(TEN - HOUR, 3, partitions=2, devices=20), home)
    return home
