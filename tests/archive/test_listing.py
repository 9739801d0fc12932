"""What a plan lists, reads and reports: LastModified decides; the time in a name only says where to look."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from recapture.archive.blob_names import BlobNames
from recapture.archive.listing import UnmatchedNames
from recapture.archive.pinning import PlannedInput, pin_input
from recapture.archive.progress import far_blobs, partition_progress, warnings
from recapture.errors import RunError, SetupError
from recapture.formats.event_hubs import CaptureNames
from recapture.storage import Blob, Container, open_container
from tests.archive.test_manifest import DEFINITION, ENQUEUED, HOUR, LATER, MINUTE, TEN, names, planned, put, ten_to

DAY_AGO = replace(DEFINITION, search_hours=24)
INTERVAL = 5 * MINUTE


class Watched:
    """A container that records the prefixes and counts the blobs that it lists."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self.url = container.url
        self.listed: list[str] = []
        self.count = 0

    def list(self, prefix: str = "") -> Iterator[Blob]:
        self.listed.append(prefix)
        for blob in self._container.list(prefix):
            self.count += 1
            yield blob

    def list_folders(self, prefix: str) -> Iterator[str]:
        return self._container.list_folders(prefix)


@pytest.fixture
def steady(tmp_path: Path) -> Path:
    """Write three partitions with a blob every hour, from ten days before ten to two hours after it."""
    for partition in ("0", "1", "10"):
        for number in range(-240, 3):
            put(tmp_path, partition, TEN + number * HOUR - INTERVAL, TEN + number * HOUR)
    return tmp_path


def test_only_the_hours_of_the_search_are_listed(steady: Path) -> None:
    container = Watched(open_container(steady.as_uri()))
    plan = pin_input(DAY_AGO, container, ten_to(1), LATER)  # type: ignore[arg-type]
    assert names(plan) == names(planned(steady))
    assert {prefix.split("/")[2] for prefix in container.listed} == {"0", "1", "10"}
    assert sorted(prefix.removeprefix("contoso/telemetry/1/") for prefix in container.listed if "/1/" in prefix) == [
        "2026/02/28/",
        "2026/03/01/",
    ]
    assert container.count <= 3 * 48


def test_a_backfilled_blob_is_read_with_the_hour_of_its_arrival_and_reported(steady: Path) -> None:
    late = put(steady, "1", TEN - 20 * HOUR + MINUTE, TEN + 30 * MINUTE)
    plan = planned(steady, definition=DAY_AGO)
    assert late in names(plan)
    assert far_blobs(plan) == {
        "read": 1,
        "elsewhere": 0,
        "unread": 0,
        "example": late,
        "path_hours": ["2026-02-28T14:00:00Z"],
        "furthest_seconds": 20 * 3600 + 29 * 60,
    }
    (warning,) = warnings(plan, empty_blobs=True)
    assert f"1 blob was written far from the time in its name (hours 2026-02-28T14:00:00Z; furthest {late}" in (warning)
    assert "1 is read with the hour of its arrival" in warning


def test_the_definition_says_how_far_to_look(tmp_path: Path) -> None:
    """Blobs are selected to the second, even if the plan lists further for the range."""
    put(tmp_path, "0", TEN, TEN + 5 * MINUTE)
    reach = 24 * HOUR + INTERVAL
    within = put(tmp_path, "0", TEN + MINUTE - reach, TEN + MINUTE)
    beyond = put(tmp_path, "0", TEN + MINUTE - reach - timedelta(seconds=1), TEN + MINUTE)
    plan = planned(tmp_path, definition=DAY_AGO)
    assert within in names(plan)
    assert beyond not in names(plan)
    assert beyond in names(planned(tmp_path, definition=replace(DAY_AGO, search_hours=25)))


def test_a_slice_reads_the_same_alone_and_in_a_range_that_lists_more_blobs(tmp_path: Path) -> None:
    """A longer range lists more blobs. A blob that `search_hours` does not reach is reported, and neither reads it."""
    put(tmp_path, "0", TEN, TEN + 5 * MINUTE)
    beyond = put(tmp_path, "0", TEN - 20 * HOUR, TEN + 10 * HOUR + MINUTE)
    together = planned(tmp_path, hours=12, definition=DAY_AGO)
    alone = pin_input(DAY_AGO, open_container(tmp_path.as_uri()), ten_to(12)[10:11], LATER)
    assert alone.slices[0].digest == together.slices[10].digest
    assert beyond not in names(together)
    far = far_blobs(together)
    assert far is not None
    assert (far["read"], far["unread"], far["example"]) == (0, 1, beyond)
    (warning,) = warnings(together, empty_blobs=True)
    assert "1 arrived in this range and is not read, as input.search_hours does not reach that far" in warning


def test_a_blob_with_a_name_in_the_range_that_arrived_days_later_is_reported(steady: Path) -> None:
    late = put(steady, "0", TEN + 7 * MINUTE, TEN + 48 * HOUR)
    plan = planned(steady)
    assert late not in names(plan)
    far = far_blobs(plan)
    assert far is not None
    assert (far["elsewhere"], far["example"]) == (1, late)


def test_by_enqueued_time_a_copied_blob_is_read_by_its_name_and_reported(tmp_path: Path) -> None:
    copied = [put(tmp_path, "0", TEN + number * INTERVAL, LATER) for number in range(12)]
    plan = planned(tmp_path, definition=ENQUEUED, now=LATER + HOUR)
    assert names(plan) == copied
    far = far_blobs(plan)
    assert far is not None
    assert (far["read"], far["path_hours"]) == (12, ["2026-03-01T10:00:00Z"])


@pytest.mark.parametrize(
    "path",
    [
        "{Namespace}/{EventHub}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}/{PartitionId}",
        "{Second}{Minute}/{Namespace}/{EventHub}/{PartitionId}/{Day}-{Hour}-{Month}-{Year}",
        "archive_{EventHub}/{Namespace}_{PartitionId}_{Year}{Month}{Day}{Hour}{Minute}{Second}",
    ],
)
def test_the_same_archive_under_other_names_gives_the_same_plan(steady: Path, tmp_path: Path, path: str) -> None:
    renamed = CaptureNames("contoso", "telemetry", path)
    renamed_folder = tmp_path / "renamed"
    for blob in list(open_container(steady.as_uri()).list("contoso/")):
        parsed = DEFINITION.names.parse(blob.name)
        assert parsed is not None
        partition, opened = parsed
        assert opened is not None
        target = renamed_folder / renamed.name(partition, opened)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.hardlink_to(steady / blob.name)

    def pinned(plan: PlannedInput, by: BlobNames) -> list[object]:
        return [(blob.partition, by.parse(blob.blob.name), blob.blob.last_modified) for blob in plan.blobs]

    for base in (DEFINITION, ENQUEUED):
        definition = replace(base, names=renamed)
        plan = planned(renamed_folder, hours=2, definition=definition)
        assert pinned(plan, renamed) == pinned(planned(steady, hours=2, definition=base), DEFINITION.names)
        assert plan.partitions == ("0", "1", "10")


def test_a_failing_listing_fails_the_plan(steady: Path) -> None:
    class Failing(Watched):
        def list(self, prefix: str = "") -> Iterator[Blob]:
            if "/10/" in prefix:
                raise RunError("out of reach")
            yield from super().list(prefix)

    with pytest.raises(RunError, match="out of reach"):
        pin_input(DAY_AGO, Failing(open_container(steady.as_uri())), ten_to(1), LATER)  # type: ignore[arg-type]


# How far Capture has got


def test_the_newest_blob_of_each_partition_shows_how_far_capture_has_got(tmp_path: Path) -> None:
    put(tmp_path, "0", TEN, TEN + 6 * MINUTE)
    heartbeat = put(tmp_path, "0", TEN + 5 * MINUTE, TEN + 11 * MINUTE, b"")
    plan = planned(tmp_path)
    (newest,) = plan.newest
    reach = partition_progress(DEFINITION, "0", newest, empty_blobs=True, now=LATER)
    assert reach.to_dict() == {
        "partition": "0",
        "reached": "2026-03-01T10:11:00Z",
        "by_clock": False,
        "blob": heartbeat,
        "path_time": "2026-03-01T10:05:00Z",
        "last_modified": "2026-03-01T10:11:00Z",
    }
    assert str(reach) == (
        "partition 0: written up to 2026-03-01T10:11:00Z; "
        "the newest blob has the time 2026-03-01T10:05:00Z and LastModified 2026-03-01T10:11:00Z"
    )


def test_without_empty_blobs_the_clock_shows_how_far_capture_has_got(tmp_path: Path) -> None:
    """Capture has written everything that arrived an interval ago."""
    put(tmp_path, "0", TEN, TEN + 6 * MINUTE)
    (newest,) = planned(tmp_path).newest
    reach = partition_progress(DEFINITION, "0", newest, empty_blobs=False, now=TEN + 30 * MINUTE)
    assert str(reach).startswith("partition 0: written up to 2026-03-01T10:25:00Z, by the clock; the newest blob")
    reach = partition_progress(DEFINITION, "1", None, empty_blobs=False, now=TEN + 30 * MINUTE)
    assert str(reach) == "partition 1: written up to 2026-03-01T10:25:00Z, by the clock; no blob was found"
    reach = partition_progress(DEFINITION, "0", newest, empty_blobs=False, now=TEN + 8 * MINUTE)
    assert (reach.archived_until, reach.by_clock) == (newest.written, False)


def test_a_partition_without_blobs_in_the_range_is_named(tmp_path: Path) -> None:
    """A partition is known from other hours or from the definition."""
    put(tmp_path, "0", TEN, TEN + 6 * MINUTE)
    long_before = put(tmp_path, "1", TEN - 400 * HOUR, TEN - 400 * HOUR)
    earlier = put(tmp_path, "2", TEN - 5 * HOUR, TEN - 5 * HOUR + INTERVAL)
    plan = planned(tmp_path, definition=replace(DEFINITION, partitions=4), now=TEN)
    assert plan.partitions == ("0", "1", "2", "3")
    assert plan.silent == ("1", "2", "3")
    assert plan.slices[0].incomplete_partitions == ("0", "1", "2", "3")
    first, second, third = warnings(plan, empty_blobs=True)
    assert long_before not in first
    assert first.startswith("partition 1 has no blob in this range, not even an empty one (no blob was found): ")
    assert f"the newest blob is {earlier}, LastModified 2026-03-01T05:05:00Z" in second
    assert third.startswith("partition 3 has no blob")
    assert list(warnings(plan, empty_blobs=False)) == []


def test_configured_partitions_alone_are_not_an_archive(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no blob of this input under"):
        planned(tmp_path, definition=replace(DEFINITION, partitions=4))


def test_without_a_late_limit_blobs_are_searched_for_up_to_now(tmp_path: Path) -> None:
    assert DEFINITION.policies is not None
    unlimited = replace(DEFINITION, policies=replace(DEFINITION.policies, late_tolerance=None))
    blobs = [put(tmp_path, "0", TEN + number * 24 * HOUR, TEN + number * 24 * HOUR + INTERVAL) for number in range(40)]
    assert names(planned(tmp_path, definition=unlimited)) == blobs


def test_names_in_the_range_that_are_not_of_the_input_are_reported(tmp_path: Path) -> None:
    """Names outside the range or outside the partition folders are not reported."""
    named = put(tmp_path, "0", TEN, TEN + 5 * MINUTE)
    folder = (tmp_path / named).parent
    for stranger in (
        folder / "00 (1).avro",
        folder / "00.AVRO",
        tmp_path / "contoso/telemetry/0/notes.txt",
        tmp_path / "x",
    ):
        stranger.write_bytes(b"x")
    plan = planned(tmp_path)
    assert plan.unmatched == UnmatchedNames(2, str((folder / "00 (1).avro").relative_to(tmp_path)))
    (warning,) = warnings(plan, empty_blobs=True)
    assert warning.startswith(
        "2 names in the partition folders do not belong to this input, for example contoso/telemetry/0/"
    )


def make_partition_folders(home: Path, numbers: Iterable[int]) -> None:
    for number in numbers:
        (home / "contoso" / "telemetry" / str(number)).mkdir(parents=True)


def test_a_folder_whose_number_is_too_large_for_a_partition_is_passed_over_and_reported(steady: Path) -> None:
    make_partition_folders(steady, [10_000, 10**30])
    (steady / "contoso" / "telemetry" / "notes").mkdir()
    plan = planned(steady)
    assert plan.partitions == ("0", "1", "10")
    assert plan.unmatched == UnmatchedNames(2, "contoso/telemetry/10000/")


def test_more_partition_folders_than_an_input_can_have_are_refused(steady: Path) -> None:
    make_partition_folders(steady, {*range(2_001)} - {0, 1, 10})
    watched = Watched(open_container(steady.as_uri()))
    with pytest.raises(SetupError) as caught:
        pin_input(DEFINITION, watched, ten_to(1), LATER)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"{steady.as_uri()}/contoso/telemetry/ has 2,001 partition folders, but an input has at most 2,000: move "
        "out the folders that do not belong to this input, or correct input.path"
    )
    assert watched.listed == []
    (steady / "contoso" / "telemetry" / "2000").rmdir()
    assert len(planned(steady).partitions) == 2_000
