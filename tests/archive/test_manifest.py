"""The manifest pins the blobs that each slice reads (docs/time-model.md, sections 1.2 and 3)."""

import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.archive.definitions import MAX_CLOCK_SKEW, ArrivalTime, InputDefinition, RunDefinition
from recapture.archive.listing import NewestBlob
from recapture.archive.manifest import Manifest, from_json, pin_blobs
from recapture.archive.pinning import (
    EnqueuedRange,
    PinnedBlob,
    PlannedInput,
    blobs_that_may_hold,
    in_order,
    is_complete,
    pin_input,
    survey,
)
from recapture.errors import RunError
from recapture.formats.event_hubs import CaptureNames
from recapture.formats.path_names import InputPath
from recapture.storage import Blob, Container, open_container
from recapture.time_model.policies import Policies
from recapture.time_model.slices import Arrivals, Slice, slices_between
from recapture.time_model.ticks import from_datetime, from_seconds

TEN = datetime(2026, 3, 1, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = 60 * MINUTE
LATER = TEN + 1000 * HOUR
POLICIES = Policies(
    out_of_order_tolerance=0, late_tolerance=from_seconds(600), early_window=from_seconds(300), adjust=True
)
DEFINITION = InputDefinition(
    alias="telemetry",
    names=CaptureNames("contoso", "telemetry"),
    policies=POLICIES,
    look_back=from_seconds(300),
    interval_seconds=300,
    reading={},
)
RUN = RunDefinition(name="telemetry", engine="1", canonical_query="SELECT 1", inputs=[DEFINITION])


def put(folder: Path, partition: str, path_time: datetime, last_modified: datetime, content: bytes = b"x") -> str:
    name = f"contoso/telemetry/{partition}/{path_time:%Y/%m/%d/%H/%M/%S}.avro"
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (last_modified.timestamp(),) * 2)
    return name


def ten_to(hours: int) -> list[Slice]:
    return list(slices_between(from_datetime(TEN), from_datetime(TEN + hours * HOUR), from_seconds(3600)))


def planned(
    folder: Path, hours: int = 1, definition: InputDefinition = DEFINITION, now: datetime = LATER
) -> PlannedInput:
    return pin_input(definition, open_container(folder.as_uri()), ten_to(hours), now)


def manifest_of(
    folder: Path, hours: int = 1, definition: RunDefinition = RUN, now: datetime = LATER, container: Any = None
) -> Manifest:
    return pin_blobs(definition, {"telemetry": container or open_container(folder.as_uri())}, ten_to(hours), now)


def names(planned_input: PlannedInput) -> list[str]:
    return [pinned.blob.name for pinned in planned_input.blobs]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Write two partitions with a blob every 20 minutes, from 8:00 to 14:00."""
    for partition in ("0", "1"):
        for number in range(19):
            arrival = TEN - 2 * HOUR + 20 * number * MINUTE
            put(tmp_path, partition, arrival - 5 * MINUTE, arrival)
    return tmp_path


def test_last_modified_decides_instead_of_the_time_in_the_path(tmp_path: Path) -> None:
    restored = put(tmp_path, "0", TEN - 48 * HOUR, TEN + MINUTE)
    put(tmp_path, "0", TEN + MINUTE, TEN + 5 * HOUR)
    assert names(planned(tmp_path)) == [restored]


def test_arrivals_at_both_ends_of_the_range_are_read(tmp_path: Path) -> None:
    """A slice reads from 75 minutes before its start (early, late, duplicates) to 10 minutes after its end (late)."""
    second = timedelta(seconds=1)
    first, last = TEN - 75 * MINUTE, TEN + HOUR + 10 * MINUTE
    put(tmp_path, "0", TEN - 2 * HOUR, first - second)
    inside = [put(tmp_path, "0", TEN - 2 * HOUR + MINUTE, first), put(tmp_path, "0", TEN + HOUR, last)]
    put(tmp_path, "0", TEN + 2 * HOUR, last + second)
    plan = planned(tmp_path)
    assert names(plan) == inside
    assert plan.slices[0].arrivals == Arrivals(from_datetime(first), from_datetime(last))


def test_every_blob_is_pinned_as_it_was_listed(world: Path) -> None:
    listed = {blob.name: blob for blob in open_container(world.as_uri()).list()}
    plan = planned(world)
    assert all(pinned.blob == listed[pinned.blob.name] for pinned in plan.blobs)
    assert all(pinned.partition == pinned.blob.name.split("/")[2] for pinned in plan.blobs)
    assert plan.size == len(plan.blobs)


def test_partitions_are_in_order_of_their_numbers_and_blobs_in_order_of_arrival(tmp_path: Path) -> None:
    expected = []
    for partition in ("0", "2", "10"):
        late = put(tmp_path, partition, TEN + MINUTE, TEN + 30 * MINUTE)
        tie = put(tmp_path, partition, TEN + 2 * MINUTE, TEN + 30 * MINUTE)
        early = put(tmp_path, partition, TEN + 3 * MINUTE, TEN + 20 * MINUTE)
        expected += [early, late, tie]
    plan = planned(tmp_path)
    assert plan.partitions == ("0", "2", "10")
    assert names(plan) == expected


def test_blobs_that_are_not_of_this_hub_s_capture_are_not_read(world: Path) -> None:
    before = planned(world)
    for name in ("contoso/telemetry/0/notes.txt", "contoso/other/0/2026/03/01/10/00/00.avro", "readme.md"):
        path = world / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
        os.utime(path, ((TEN + MINUTE).timestamp(),) * 2)
    assert planned(world) == before


@pytest.mark.parametrize(
    "path", ["{Year}-{Month}-{Day}/{Hour}/{Minute}/{Second}", "{Day}/{Month}/{Year}/{Hour}/{Minute}/{Second}"]
)
def test_names_that_do_not_match_at_all_are_reported_with_an_example(world: Path, path: str) -> None:
    names = CaptureNames("contoso", "telemetry", "{Namespace}/{EventHub}/{PartitionId}/" + path)
    with pytest.raises(RunError) as caught:
        planned(world, definition=replace(DEFINITION, names=names))
    message = str(caught.value)
    assert re.match(
        rf"none of the first \d+ blob names under {world.as_uri()}/contoso/telemetry/ belongs to this input, for ",
        message,
    )
    assert message.endswith(": check input.path and the other names in the input section")


def test_a_range_without_blobs_is_not_an_error(tmp_path: Path) -> None:
    put(tmp_path, "0", TEN - 900 * HOUR, TEN - 900 * HOUR)
    plan = planned(tmp_path)
    assert (plan.partitions, names(plan)) == (("0",), [])


def test_a_blob_written_at_the_end_of_its_interval_is_read_with_the_shortest_search(tmp_path: Path) -> None:
    put(tmp_path, "0", TEN, TEN + 5 * MINUTE + timedelta(seconds=9))
    assert len(names(planned(tmp_path, definition=replace(DEFINITION, search_hours=0)))) == 1


def test_a_partition_whose_blobs_are_elsewhere_is_known(world: Path) -> None:
    put(world, "7", TEN - 100 * HOUR, TEN - 100 * HOUR)
    plan = planned(world)
    assert plan.partitions == ("0", "1", "7")
    assert {pinned.partition for pinned in plan.blobs} == {"0", "1"}


@pytest.mark.parametrize("names", [CaptureNames("contoso", "other"), CaptureNames("fabrikam", "telemetry")])
def test_no_blobs_at_all_are_an_error_of_one_line(world: Path, names: CaptureNames) -> None:
    with pytest.raises(RunError) as caught:
        planned(world, definition=replace(DEFINITION, names=names))
    assert str(caught.value) == (
        f"no blob of this input under {world.as_uri()}/{names.prefix}: "
        "check input.container, input.path and the other names in the input section"
    )


def test_without_partition_folders_a_range_far_from_every_blob_is_an_error_that_says_so(tmp_path: Path) -> None:
    names = CaptureNames(
        "contoso", "telemetry", "{Namespace}/{EventHub}/{Year}{Month}{Day}{Hour}{Minute}{Second}/{PartitionId}"
    )
    path = tmp_path / names.name("0", TEN + 500 * HOUR, ".avro")
    path.parent.mkdir(parents=True)
    path.touch()
    with pytest.raises(RunError, match=r"^no blob of this input under .* is near this range: choose another range, or"):
        planned(tmp_path, definition=replace(DEFINITION, names=names))


def test_a_range_without_arrivals_gives_a_run_that_reads_nothing(tmp_path: Path) -> None:
    put(tmp_path, "0", TEN - 100 * HOUR, TEN - 100 * HOUR)
    plan = planned(tmp_path)
    assert plan.blobs == ()
    assert len(plan.slices) == 1


# Digests


def test_a_slice_s_digest_is_the_same_alone_and_in_a_range(world: Path) -> None:
    together = manifest_of(world, hours=3)
    containers = {"telemetry": open_container(world.as_uri())}
    manifests = [pin_blobs(RUN, containers, [slice_], LATER) for slice_ in ten_to(3)]
    assert [manifest.slices[0] for manifest in manifests] == list(together.slices)
    assert [manifest.inputs[0].slices[0] for manifest in manifests] == list(together.inputs[0].slices)
    assert {pinned for manifest in manifests for pinned in manifest.inputs[0].blobs} == set(together.inputs[0].blobs)
    assert len({manifest.digest for manifest in manifests} | {together.digest}) == 4


def test_planning_the_same_range_again_gives_the_same_run(world: Path) -> None:
    assert manifest_of(world) == manifest_of(world, now=LATER + HOUR)


def test_the_run_s_name_shows_its_range(world: Path) -> None:
    manifest = manifest_of(world, hours=2)
    assert manifest.run == f"20260301T100000Z-20260301T120000Z-{manifest.digest[:12]}"


class Changed:
    """A container that lists one blob with changed properties."""

    def __init__(self, container: Container, name: str, **changes: Any) -> None:
        self._container, self._name, self._changes = container, name, changes
        self.url = container.url

    def list_folders(self, prefix: str) -> Iterator[str]:
        return self._container.list_folders(prefix)

    def list(self, prefix: str = "") -> Iterator[Blob]:
        for blob in self._container.list(prefix):
            yield replace(blob, **self._changes) if blob.name == self._name else blob


class Listed:
    """A container that lists these blobs."""

    url = "memory:"

    def __init__(self, blobs: Iterable[Blob]) -> None:
        self._blobs = sorted(blobs, key=lambda blob: blob.name)
        self._names = [blob.name for blob in self._blobs]
        self.asked: list[str] = []

    def list(self, prefix: str = "") -> Iterator[Blob]:
        self.asked.append(prefix)
        for place in range(bisect_left(self._names, prefix), len(self._names)):
            if not self._names[place].startswith(prefix):
                return
            yield self._blobs[place]

    def list_folders(self, prefix: str) -> Iterator[str]:
        paths = (name.removeprefix(prefix) for name in self._names if name.startswith(prefix))
        return iter(sorted({prefix + path.split("/")[0] + "/" for path in paths if "/" in path}))


def listed(blobs: Iterable[Blob]) -> Any:
    return Listed(blobs)


@pytest.mark.parametrize(
    "change",
    [{"etag": "other"}, {"size": 2}, {"last_modified": TEN + 21 * MINUTE}],
    ids=lambda change: next(iter(change)),
)
def test_the_digest_changes_with_a_blob_that_the_slice_reads(world: Path, change: dict[str, Any]) -> None:
    before = manifest_of(world, hours=3)
    container: Any = Changed(open_container(world.as_uri()), blob_at(before, TEN + 20 * MINUTE).name, **change)
    after = manifest_of(world, hours=3, container=container)
    assert digests_that_differ(before, after) == [0, 1]
    assert after.run != before.run


def blob_at(manifest: Manifest, arrival: datetime) -> Blob:
    return next(pinned.blob for pinned in manifest.inputs[0].blobs if pinned.blob.last_modified == arrival)


def digests_that_differ(before: Manifest, after: Manifest) -> list[int]:
    pairs = zip(before.slices, after.slices, strict=True)
    return [number for number, (old, new) in enumerate(pairs) if old.digest != new.digest]


def test_the_digest_does_not_change_with_blobs_that_the_slice_does_not_read(world: Path) -> None:
    before = manifest_of(world, hours=3)
    put(world, "0", TEN + MINUTE, TEN + 2 * HOUR + 30 * MINUTE)
    put(world, "0", TEN + 2 * MINUTE, TEN + 100 * HOUR)
    put(world, "5", TEN + MINUTE, TEN - 100 * HOUR)
    assert digests_that_differ(before, manifest_of(world, hours=3)) == [2]


def test_a_new_blob_changes_the_digests_of_the_slices_that_read_it(world: Path) -> None:
    before = manifest_of(world, hours=3)
    put(world, "0", TEN + MINUTE, TEN + HOUR + 5 * MINUTE)
    assert digests_that_differ(before, manifest_of(world, hours=3)) == [0, 1, 2]
    before = manifest_of(world, hours=3)
    put(world, "0", TEN + 2 * MINUTE, TEN + 30 * MINUTE)
    assert digests_that_differ(before, manifest_of(world, hours=3)) == [0, 1]


def run_with(change: dict[str, Any]) -> RunDefinition:
    """Return the run with a change to its own settings or to those of its input."""
    if change.keys() <= vars(RUN).keys():
        return replace(RUN, **change)
    return replace(RUN, inputs=[replace(DEFINITION, **change)])


@pytest.mark.parametrize(
    "change",
    [
        {"engine": "2"},
        {"canonical_query": "SELECT 2"},
        {"policies": None},
        {"policies": replace(POLICIES, adjust=False)},
        {"policies": replace(POLICIES, out_of_order_tolerance=1)},
        {"policies": replace(POLICIES, late_tolerance=None)},
        {"policies": replace(POLICIES, late_tolerance=0)},
        {"policies": replace(POLICIES, early_window=0)},
        {"policies": replace(POLICIES, early_window=None)},
        {"policies": replace(POLICIES, adjust_early=True)},
        {"arrival_time": ArrivalTime.EVENT_ENQUEUED},
    ],
    ids=str,
)
def test_the_digest_changes_with_a_setting_that_changes_the_result(world: Path, change: dict[str, Any]) -> None:
    changed = run_with(change)
    assert changed.digest != RUN.digest
    assert manifest_of(world, definition=changed).slices[0].digest != manifest_of(world).slices[0].digest


@pytest.mark.parametrize("change", [{"name": "other"}, {"interval_seconds": 60}], ids=str)
def test_the_digest_does_not_change_with_a_setting_that_decides_nothing(world: Path, change: dict[str, Any]) -> None:
    assert manifest_of(world, definition=run_with(change)).digest == manifest_of(world).digest


def test_without_a_late_limit_any_later_blob_changes_the_digest(world: Path) -> None:
    unlimited = run_with({"policies": replace(POLICIES, late_tolerance=None)})
    before = manifest_of(world, definition=unlimited)
    put(world, "0", TEN + 90 * HOUR, TEN + 100 * HOUR)
    assert digests_that_differ(before, manifest_of(world, definition=unlimited)) == [0]


# Several inputs

FILES = InputDefinition(
    alias="files",
    names=InputPath("files/{date}/{time}/{partition}"),
    policies=None,
    look_back=0,
    interval_seconds=3600,
    reading={"format": "Json"},
)
BOTH = replace(RUN, inputs=[DEFINITION, FILES])


def put_file(folder: Path, partition: str, last_modified: datetime) -> Path:
    path = folder / f"files/{last_modified:%Y/%m/%d/%H}/{partition}/{last_modified:%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    os.utime(path, (last_modified.timestamp(),) * 2)
    return path


@pytest.fixture
def two(world: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Container]:
    """Return two containers: that of `world`, and one with a partition of files every 20 minutes."""
    folder = tmp_path_factory.mktemp("files")
    for number in range(19):
        put_file(folder, "1", TEN - 2 * HOUR + 20 * number * MINUTE)
    return {"telemetry": open_container(world.as_uri()), "files": open_container(folder.as_uri())}


def test_each_input_is_planned_by_its_own_archive(two: dict[str, Container]) -> None:
    manifest = pin_blobs(BOTH, two, ten_to(3), LATER)
    files, telemetry = manifest.inputs
    assert [telemetry, files] == [pin_input(one, two[one.alias], ten_to(3), LATER) for one in BOTH.inputs]
    assert (files.alias, files.partitions, manifest.input("telemetry").partitions) == ("files", ("1",), ("0", "1"))
    assert files.slices[0].arrivals != telemetry.slices[0].arrivals, "the files have no policies and no look-back"
    assert manifest.blob_count == manifest.size == len(files.blobs) + len(telemetry.blobs)
    assert from_json(manifest.to_json()) == manifest


def test_the_order_of_the_inputs_does_not_matter(two: dict[str, Container]) -> None:
    reversed_inputs = replace(BOTH, inputs=[FILES, DEFINITION])
    assert pin_blobs(reversed_inputs, two, ten_to(3), LATER) == pin_blobs(BOTH, two, ten_to(3), LATER)


def test_a_blob_of_any_input_changes_the_slices_that_read_it(two: dict[str, Container]) -> None:
    before = pin_blobs(BOTH, two, ten_to(3), LATER)
    changed: Any = Changed(two["files"], f"files/{TEN + HOUR:%Y/%m/%d/%H}/1/2000.json", etag="other")
    after = pin_blobs(BOTH, two | {"files": changed}, ten_to(3), LATER)
    assert digests_that_differ(before, after) == [1, 2], "the next slice looks for duplicates there"
    assert after.input("telemetry") == before.input("telemetry")


def test_what_one_input_reads_is_not_what_another_reads(two: dict[str, Container]) -> None:
    """The same blobs under exchanged aliases are another run."""
    twins = replace(RUN, inputs=[DEFINITION, replace(DEFINITION, alias="twin")])
    place: Any = two["telemetry"]
    other: Any = Changed(place, "contoso/telemetry/0/2026/03/01/10/15/00.avro", size=9)
    one = pin_blobs(twins, {"telemetry": place, "twin": other}, ten_to(1), LATER)
    assert digests_that_differ(one, pin_blobs(twins, {"telemetry": other, "twin": place}, ten_to(1), LATER)) == [0]


@pytest.mark.parametrize(
    "change",
    [{"alias": "other"}, {"policies": POLICIES}, {"reading": {"format": "Csv"}}],
    ids=lambda change: next(iter(change)),
)
def test_the_definition_s_digest_covers_every_input(change: dict[str, Any]) -> None:
    assert replace(BOTH, inputs=[DEFINITION, replace(FILES, **change)]).digest != BOTH.digest
    assert replace(BOTH, inputs=[FILES, DEFINITION]).digest == BOTH.digest != RUN.digest


def test_each_input_has_its_own_incomplete_partitions(two: dict[str, Container]) -> None:
    """The newest blobs arrived at the end of the last slice; telemetry may be ten minutes late."""
    files, telemetry = pin_blobs(BOTH, two, ten_to(4), TEN).inputs
    assert [planned_slice.incomplete_partitions for planned_slice in files.slices] == [(), (), (), ("1",)]
    assert [planned_slice.incomplete_partitions for planned_slice in telemetry.slices] == [(), (), (), ("0", "1")]


# Completeness


def test_a_later_blob_proves_a_partition_complete(tmp_path: Path) -> None:
    """The blob must be strictly later than the end plus the late tolerance: a tie may follow in the same second."""
    edge = TEN + HOUR + 10 * MINUTE
    put(tmp_path, "0", TEN, edge + timedelta(seconds=1))
    put(tmp_path, "1", TEN, edge)
    assert planned(tmp_path, now=edge).slices[0].incomplete_partitions == ("1",)


def test_the_clock_proves_every_partition_complete(tmp_path: Path) -> None:
    put(tmp_path, "0", TEN, TEN)
    due = TEN + HOUR + 10 * MINUTE + 5 * MINUTE
    assert planned(tmp_path, now=due).slices[0].incomplete_partitions == ("0",)
    assert planned(tmp_path, now=due + timedelta(seconds=1)).slices[0].incomplete_partitions == ()


def test_each_slice_of_a_range_is_complete_by_itself(tmp_path: Path) -> None:
    put(tmp_path, "0", TEN, TEN + 2 * HOUR)
    plan = planned(tmp_path, hours=3, now=TEN)
    assert [planned_slice.incomplete_partitions for planned_slice in plan.slices] == [(), ("0",), ("0",)]


@pytest.mark.parametrize(
    "policies", [None, replace(POLICIES, late_tolerance=0), replace(POLICIES, late_tolerance=None)]
)
def test_without_a_late_tolerance_the_end_of_the_slice_is_enough(policies: Policies | None) -> None:
    definition = replace(DEFINITION, policies=policies)
    slice_ = ten_to(1)[0]
    assert is_complete(definition, slice_, NewestBlob("0", "", 0, slice_.end + 1), TEN)
    assert not is_complete(definition, slice_, NewestBlob("0", "", 0, slice_.end), TEN)
    assert not is_complete(definition, slice_, None, TEN)


def test_completeness_is_not_part_of_the_run(world: Path) -> None:
    now = manifest_of(world, hours=4, now=TEN)
    later = manifest_of(world, hours=4, now=LATER)
    assert now.inputs[0].slices[3].incomplete_partitions == ("0", "1")
    assert now.run == later.run


# By enqueued time

ENQUEUED = replace(DEFINITION, arrival_time=ArrivalTime.EVENT_ENQUEUED)
APART = timedelta(microseconds=MAX_CLOCK_SKEW // 10)


def by_enqueued(folder: Path, **settings: Any) -> PlannedInput:
    return planned(folder, definition=ENQUEUED, **settings)


def test_the_names_show_which_blobs_hold_what_was_enqueued(tmp_path: Path) -> None:
    """A window ends where the next begins. Both ends may be off by the difference between the clocks."""
    first, last = TEN - 75 * MINUTE, TEN + HOUR + 10 * MINUTE
    second = timedelta(seconds=1)
    starts = [TEN - 2 * HOUR, first - APART - second, first - APART, last + APART, last + APART + second]
    blobs = [put(tmp_path, "0", start, LATER) for start in starts]
    assert names(by_enqueued(tmp_path)) == blobs[1:4], "the second window ends where the third begins"


def test_a_blob_written_before_the_arrivals_is_not_read(tmp_path: Path) -> None:
    first = TEN - 75 * MINUTE
    second = timedelta(seconds=1)
    put(tmp_path, "0", TEN - 5 * HOUR, first - APART - second)
    needed = put(tmp_path, "0", TEN - 4 * HOUR, first - APART)
    assert names(by_enqueued(tmp_path)) == [needed]


def test_a_copied_archive_is_read_by_its_names(tmp_path: Path) -> None:
    """Every LastModified is the time of the copy: as arrival times, they would all be in one slice."""
    blobs = [put(tmp_path, "0", TEN + 5 * n * MINUTE, LATER) for n in range(-36, 36)]
    read = names(by_enqueued(tmp_path, now=LATER + HOUR))
    assert read == blobs[blobs.index(read[0]) : blobs.index(read[-1]) + 1]
    assert len(read) == 12 + 12 + 3 + 2 + 4, (
        "the hour, 75 minutes before it, 10 after it, and the difference of the clocks"
    )


def test_blobs_are_in_the_order_of_their_windows_whenever_they_were_written(tmp_path: Path) -> None:
    first = put(tmp_path, "0", TEN, TEN + HOUR)
    second = put(tmp_path, "0", TEN + 5 * MINUTE, TEN + 10 * MINUTE)
    plan = by_enqueued(tmp_path)
    assert names(plan) == [first, second]
    ten = from_datetime(TEN)
    five = from_seconds(300)
    assert [pinned.enqueued for pinned in plan.blobs] == [
        EnqueuedRange(ten, ten + five),
        EnqueuedRange(ten + five, ten + 2 * five),
    ]
    assert [pinned.arrival for pinned in plan.blobs] == [ten, ten + five]


def test_a_blob_between_two_that_are_read_is_never_left_out(tmp_path: Path) -> None:
    """The end of a window never decreases: blobs hold events in the order of their names, whatever their times."""
    late = put(tmp_path, "0", TEN - HOUR, LATER)
    between = put(tmp_path, "0", TEN + 20 * MINUTE, TEN - 50 * MINUTE)
    assert names(by_enqueued(tmp_path)) == [late, between]


def test_two_blobs_with_the_same_time_in_their_names_have_the_same_window(tmp_path: Path) -> None:
    pair = [put(tmp_path, "0", TEN, TEN + 5 * MINUTE)]
    old = (tmp_path / pair[0]).rename((tmp_path / pair[0]).with_suffix(""))
    pair = [str(old.relative_to(tmp_path)), put(tmp_path, "0", TEN, TEN + 5 * MINUTE)]
    put(tmp_path, "0", TEN + 5 * MINUTE, TEN + 10 * MINUTE)
    blobs = by_enqueued(tmp_path).blobs
    assert [pinned.blob.name for pinned in blobs[:2]] == pair
    assert blobs[0].enqueued == blobs[1].enqueued == EnqueuedRange(from_datetime(TEN), from_datetime(TEN + 5 * MINUTE))


def test_a_later_window_proves_a_partition_complete(tmp_path: Path) -> None:
    """It does not matter when the blob was written: no later blob can change the slice."""
    edge = TEN + HOUR + 10 * MINUTE + APART
    put(tmp_path, "0", edge + timedelta(seconds=1), edge + 5 * MINUTE)
    put(tmp_path, "1", edge, LATER)
    plan = by_enqueued(tmp_path, now=edge)
    assert plan.slices[0].incomplete_partitions == ("1",)
    put(tmp_path, "0", edge + 2 * MINUTE, edge + 5 * MINUTE)
    assert by_enqueued(tmp_path, now=edge).slices[0].digest == plan.slices[0].digest
    assert by_enqueued(tmp_path, now=edge + 5 * MINUTE).slices[0].incomplete_partitions == ("1",)
    assert by_enqueued(tmp_path, now=edge + 6 * MINUTE).slices[0].incomplete_partitions == ()


def test_windows_survive_the_manifest_s_json(tmp_path: Path) -> None:
    put(tmp_path, "0", TEN, TEN + 5 * MINUTE)
    manifest = manifest_of(tmp_path, definition=replace(RUN, inputs=[ENQUEUED]))
    assert from_json(manifest.to_json()) == manifest


@given(
    gaps=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40)), max_size=8),
    first=st.integers(-400, 500),
    length=st.one_of(st.none(), st.integers(0, 400)),
)
def test_no_blob_that_may_hold_an_arrival_is_left_out(
    gaps: list[tuple[int, int]], first: int, length: int | None
) -> None:
    """Every event was enqueued in its blob's window, give or take MAX_CLOCK_SKEW, and before the blob was written."""
    opened, blobs = 0, dict[str, Blob]()
    for gap, delay in gaps:
        opened += 60 * gap
        written = TEN + timedelta(seconds=opened + 60 + 60 * delay)
        name = f"contoso/telemetry/0/{TEN + timedelta(seconds=opened):%Y/%m/%d/%H/%M/%S}.avro"
        blobs[name] = Blob(name, "", 1, written)
    start = from_datetime(TEN) + from_seconds(first)
    last = None if length is None else start + from_seconds(length)
    arrivals = Arrivals(start, last)
    listing, _ = survey(ENQUEUED, listed(blobs.values()), [arrivals], LATER)
    blobs_in_order = in_order(listing.blobs, ENQUEUED)
    assert len(blobs_in_order) == len(blobs)
    read = blobs_that_may_hold(blobs_in_order, arrivals)
    for place, pinned in enumerate(blobs_in_order):
        following = blobs_in_order[place + 1].arrival if place + 1 < len(blobs_in_order) else 1 << 62
        end = min(following, from_datetime(pinned.blob.last_modified)) + MAX_CLOCK_SKEW
        may_hold = end >= start and (last is None or pinned.arrival - MAX_CLOCK_SKEW <= last)
        assert pinned in read or not may_hold
    assert read == [pinned for pinned in blobs_in_order if pinned in read]


# To and from JSON


def test_a_manifest_survives_its_own_json(world: Path) -> None:
    for definition in (RUN, run_with({"policies": replace(POLICIES, late_tolerance=None)})):
        manifest = manifest_of(world, hours=3, definition=definition)
        assert from_json(manifest.to_json()) == manifest


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"run":"x"}', b"\xff"])
def test_content_that_is_not_a_manifest_is_an_error_of_one_line(world: Path, content: bytes) -> None:
    for damaged in (content, manifest_of(world).to_json()[:-20]):
        with pytest.raises(RunError, match=r"^the run's manifest cannot be read: .+; plan again$"):
            from_json(damaged)


@given(
    seconds=st.lists(st.integers(0, 20), max_size=12).map(sorted),
    first=st.integers(-1, 21),
    last=st.one_of(st.none(), st.integers(-1, 21)),
)
def test_the_blobs_that_arrived_in_a_range_are_contiguous(seconds: list[int], first: int, last: int | None) -> None:
    blobs: Sequence[PinnedBlob] = [
        PinnedBlob("telemetry", "0", Blob(str(n), "", 1, TEN + timedelta(seconds=second)))
        for n, second in enumerate(seconds)
    ]
    start = from_datetime(TEN)
    arrivals = Arrivals(start + from_seconds(first), None if last is None else start + from_seconds(last))
    assert blobs_that_may_hold(blobs, arrivals) == [pinned for pinned in blobs if arrivals.contains(pinned.arrival)]


def test_a_month_of_many_partitions_is_planned_in_seconds() -> None:
    """The listing is read once for each partition, not once for each slice."""
    times = [TEN + 5 * n * MINUTE for n in range(8064)]
    blobs = [
        Blob(f"contoso/telemetry/{partition}/{time:%Y/%m/%d/%H/%M/%S}.avro", "", 1, time)
        for partition in range(4)
        for time in times
    ]

    manifest = pin_blobs(RUN, {"telemetry": listed(blobs)}, ten_to(28 * 24), LATER)
    assert manifest.blob_count == len(blobs)
