"""The world of `make up` ends now and goes on."""

import time
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from embedded.live import HOUR, LiveWorld, capturing
from recapture.storage import open_container
from recapture.tools.sample import SampleBlob

NOW = datetime(2026, 3, 1, 12, 33, 20, tzinfo=UTC)


def test_what_capture_has_written_and_what_follows_are_one_world_without_a_hole() -> None:
    world = LiveWorld(NOW)
    written, following = list(world.written()), list(islice(world.following(), 8))
    assert world.start == datetime(2026, 3, 1, 6, tzinfo=UTC)
    assert max(blob.last_modified for blob in written) <= NOW < following[0].last_modified
    names = [blob.name for blob in (*written, *following)]
    opened = [world.start + timedelta(minutes=5) * number for number in range(len(names) // 4)]
    assert names == [f"contoso/telemetry/{p}/{time:%Y/%m/%d/%H/%M/%S}.avro" for time in opened for p in range(4)]
    assert opened[-1] > NOW - timedelta(minutes=5)


def test_the_world_depends_only_on_the_hour_of_its_start() -> None:
    first, later = (list(islice(LiveWorld(now).written(), 4)) for now in (NOW, NOW + timedelta(minutes=20)))
    assert first == later
    assert list(islice(LiveWorld(NOW + HOUR).written(), 4)) != first


def test_a_blob_is_written_when_it_is_due_and_none_after_the_end(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    blobs = [SampleBlob(f"{seconds}.avro", b"", now + timedelta(seconds=seconds)) for seconds in (-1, 1, 3600)]
    with capturing(blobs, open_container(tmp_path.as_uri())):
        deadline = time.monotonic() + 30
        while not (tmp_path / "1.avro").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["-1.avro", "1.avro"]
    assert (tmp_path / "1.avro").stat().st_mtime > now.timestamp() + 0.9, "the clock of a file system is coarse"
