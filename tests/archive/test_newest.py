"""The newest hour of an archive, found with few requests."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recapture.archive.blob_names import BlobNames
from recapture.archive.newest import newest_blobs
from recapture.formats.event_hubs import CaptureNames
from recapture.formats.path_names import InputPath
from recapture.storage import Blob, open_container

NOW = datetime(2026, 3, 1, 0, 30, tzinfo=UTC)
NAMES = CaptureNames("contoso", "telemetry")
DAYS_FIRST = CaptureNames(
    "contoso", "telemetry", "{EventHub}/{Day}/{Month}/{Year}/{Hour}/{Minute}/{Second}/{Namespace}/{PartitionId}"
)


def put(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"x")


def newest(names: BlobNames, folder: Path, now: datetime = NOW) -> list[str]:
    folder.mkdir(exist_ok=True)
    return sorted(blob.name for blob in newest_blobs(names, open_container(folder.as_uri()), now))


@pytest.mark.parametrize("names", [NAMES, DAYS_FIRST])
@pytest.mark.parametrize(
    "last",
    [
        datetime(2026, 3, 1, 0, 25, tzinfo=UTC),
        datetime(2026, 2, 28, 23, 5, tzinfo=UTC),
        datetime(2025, 12, 31, 23, 0, tzinfo=UTC),
        datetime(2020, 2, 29, 0, 0, tzinfo=UTC),
        datetime(2026, 3, 1, 1, 0, tzinfo=UTC),
    ],
)
def test_the_blobs_of_the_newest_hour_of_all_partitions_are_found(
    tmp_path: Path, names: CaptureNames, last: datetime
) -> None:
    hour = last.replace(minute=0)
    for partition, time in [
        ("0", hour - timedelta(minutes=5)),
        ("1", last),
        ("0", hour),
        ("2", hour - timedelta(days=400)),
    ]:
        put(tmp_path, names.name(partition, time))
    put(tmp_path, "elsewhere/2026")
    assert newest(names, tmp_path) == sorted({names.name("1", last), names.name("0", hour)})


def test_without_blobs_there_is_no_newest_hour(tmp_path: Path) -> None:
    assert newest(NAMES, tmp_path) == []


def test_all_blobs_count_if_names_have_no_time(tmp_path: Path) -> None:
    names = InputPath("lines")
    put(tmp_path, "lines/a.json")
    put(tmp_path, "lines/b.json")
    assert newest(names, tmp_path) == ["lines/a.json", "lines/b.json"]


class Counted:
    """A container of one hour of blobs in 32 partitions, years ago, that counts its listings."""

    url = "file:///"
    listings = 0

    def list(self, prefix: str = "") -> Iterator[Blob]:
        self.listings += 1
        for partition in range(32):
            name = NAMES.name(str(partition), datetime(2021, 6, 5, 4, tzinfo=UTC))
            if name.startswith(prefix):
                yield Blob(name, "", 1, NOW)

    def list_folders(self, prefix: str) -> Iterator[str]:
        yield from (f"contoso/telemetry/{partition}/" for partition in range(32))


def test_years_months_days_and_hours_are_probed_not_listed() -> None:
    container = Counted()
    assert len(newest_blobs(NAMES, container, NOW)) == 32  # type: ignore[arg-type]
    years, months, days, hours = 2026 - 2021, 12 - 6, 30 - 5, 23 - 4
    assert container.listings <= 32 * (years + months + days + hours + 1) + 4
