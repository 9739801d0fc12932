"""Fixtures of the tests of runs."""

from pathlib import Path
from typing import Any

import pytest

from recapture.execute.spark import compute as job
from tests.worlds import World, one_event


@pytest.fixture
def world(tmp_path: Path) -> World:
    return one_event(tmp_path)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plans of Spark for the outputs of the runs of a test, as they are staged."""
    staged: list[str] = []
    slice_writer = job.slice_writer

    def recorded(*arguments: Any) -> Any:
        frame = slice_writer(*arguments)
        staged.append(frame._jdf.queryExecution().executedPlan().toString())
        return frame

    monkeypatch.setattr(job, "slice_writer", recorded)
    return staged
