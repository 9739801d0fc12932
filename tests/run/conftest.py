"""Fixtures of the tests of runs."""

from pathlib import Path

import pytest

from tests.worlds import World, one_event


@pytest.fixture
def world(tmp_path: Path) -> World:
    return one_event(tmp_path)
