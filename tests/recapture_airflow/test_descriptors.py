"""Processes of Airflow that run for months do not lose file descriptors."""

import os
import uuid
from datetime import UTC, datetime
from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient

from embedded.azurite import Azurite
from recapture.definition.pipeline import Pipeline
from recapture.tools.coverage.reading import CoverageReader
from tests.worlds import TELEMETRY, World

VIEWS = 50
SLACK = 10
"""Number of descriptors by which a process may differ from one view to the next."""
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def pipeline(azurite: Azurite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """A pipeline with an archive in which nothing is complete."""
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.connection_string)
    name = f"test-{uuid.uuid4().hex}"
    with ContainerClient.from_connection_string(azurite.connection_string, name) as client:
        client.create_container()
        client.upload_blob("contoso/telemetry/0/2026/03/01/10/00/00.avro", b"")
    capture = TELEMETRY | {"container": f"{azurite.url}/{name}", "empty_blobs": True}
    return World(tmp_path).define(inputs=[capture], table=f"{azurite.url}/{name}/table")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the system does not list the descriptors of a process")
def test_fifty_views_of_the_calendar_open_no_more_descriptors(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The api-server reads the tables and the archive for every page."""
    monkeypatch.setattr("recapture.tools.coverage.reading.PROGRESS_SECONDS", 0.0)
    monkeypatch.setattr("recapture.tools.coverage.reading.OPEN_SECONDS", 0.0)
    reader = CoverageReader(pipeline)

    def view() -> None:
        assert reader.read(NOW, dict(os.environ)).slices == ()

    view()
    before = descriptors()
    for _ in range(VIEWS):
        view()
    assert descriptors() < before + SLACK
