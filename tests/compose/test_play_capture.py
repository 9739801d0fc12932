"""The service `capture` writes the sample, and after a restart continues without writing a blob again."""

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from composed import play_capture
from embedded import live
from embedded.azurite import Azurite
from recapture.storage import open_container


class _Waits(Exception):  # noqa: N818 - it is not an error
    """Raised instead of a pause."""


def _pause(seconds: float) -> None:
    raise _Waits


def test_what_is_due_is_written_once(azurite: Azurite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.connection_string)
    monkeypatch.setattr(live, "HOURS", 1)
    monkeypatch.setattr(time, "sleep", _pause)
    for name in ("ARCHIVE", "TABLES", "STATE"):
        monkeypatch.setattr(play_capture, name, f"composed-{name.lower()}")
    before = datetime.now(UTC)
    with pytest.raises(_Waits):
        play_capture.play(azurite.url, tmp_path / "ready")
    assert (tmp_path / "ready").exists()
    archive = open_container(f"{azurite.url}/composed-archive")
    written = list(archive.list())
    due = {blob.name for blob in live.LiveWorld(before).written()}
    assert {blob.name for blob in written} >= due != set()

    with pytest.raises(_Waits):
        play_capture.play(azurite.url, tmp_path / "ready")
    again = {blob.name: blob.etag for blob in archive.list()}
    assert {blob.name: blob.etag for blob in written}.items() <= again.items(), "blobs were written again"
