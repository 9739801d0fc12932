from pathlib import Path

import pytest

from tests.definition.pipeline_files import EXAMPLE


@pytest.fixture(autouse=True)
def _without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_CONNECTION_STRING", raising=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pipelines" / "telemetry.yaml"
    path.parent.mkdir()
    path.write_text(EXAMPLE)
    return path
