"""Plans for archives that Capture did not write: IoT Hub's blobs, and blobs under a path of folders."""

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.archive import changes
from recapture.archive.definitions import MAX_CLOCK_SKEW, ArrivalTime, InputDefinition
from recapture.archive.listing import NewestBlob
from recapture.archive.pinning import PlannedInput, blobs_that_may_hold, in_order, is_complete, pin_input, survey
from recapture.archive.progress import partition_progress
from recapture.errors import RunError
from recapture.formats.iot_hub import IotHubNames
from recapture.formats.path_names import InputPath
from recapture.storage import Blob, open_container
from recapture.time_model.slices import Arrivals
from recapture.time_model.ticks import from_datetime, from_seconds
from tests.archive.test_listing import Watched
from tests.archive.test_manifest import DEFINITION, HOUR, LATER, MINUTE, TEN, listed, names, ten_to

IOT_HUB = replace(DEFINITION, names=IotHubNames("contoso"))
FOLDER = replace(DEFINITION, names=InputPath("logs"), interval_seconds=0)
DAYS = replace(DEFINITION, names=InputPath("logs/{date}"), interval_seconds=86_400, search_hours=24)
HOURS = replace(DEFINITION, names=InputPath("logs/{partition}/{date}/{time}"), interval_seconds=3600, search_hours=24)


def put(folder: Path, name: str, last_modified: datetime) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    os.utime(path, (last_modified.timestamp(),) * 2)
    return name


def planned(folder: Path, definition: InputDefinition, hours: int = 1, now: datetime = LATER) -> PlannedInput:
    return pin_input(definition, open_container(folder.as_uri()), ten_to(hours), now)


def listed_for(folder: Path, definition: InputDefinition) -> list[str]:
    """Return the prefixes that are listed for a slice."""
    container = Watched(open_container(folder.as_uri()))
    pin_input(definition, container, ten_to(1), LATER)  # type: ignore[arg-type]
    return sorted(container.listed)


def hourly(times: int, start: datetime = TEN - 240 * HOUR) -> Iterator[datetime]:
    return (start + number * HOUR for number in range(times))


# IoT Hub


def test_an_iot_hub_s_archive_is_listed_by_its_partitions_and_days(tmp_path: Path) -> None:
    """A partition folder may have a leading zero."""
    for opened in hourly(250):
        for partition in ("00", "01", "11"):
            put(tmp_path, f"contoso/{partition}/{opened:%Y/%m/%d/%H/%M}.avro", opened + 5 * MINUTE)
    plan = planned(tmp_path, IOT_HUB)
    assert plan.partitions == ("0", "1", "11")
    assert {pinned.partition for pinned in plan.blobs} == {"0", "1", "11"}
    prefixes = listed_for(tmp_path, replace(IOT_HUB, search_hours=24))
    assert {prefix.split("/", 2)[1] for prefix in prefixes} == {"0", "00", "1", "01", "11"}
    assert {prefix.split("/", 2)[2] for prefix in prefixes} == {"2026/02/28/", "2026/03/01/"}


def test_a_configured_partition_without_a_folder_is_silent(tmp_path: Path) -> None:
    put(tmp_path, "contoso/00/2026/03/01/10/05.json", TEN + 10 * MINUTE)
    plan = planned(tmp_path, replace(IOT_HUB, partitions=2))
    assert (plan.partitions, plan.silent) == (("0", "1"), ("1",))


def test_several_blobs_of_a_minute_are_all_read(tmp_path: Path) -> None:
    blobs = [
        put(tmp_path, f"contoso/0/2026/03/01/10/05{suffix}", TEN + 10 * MINUTE) for suffix in (".avro", "-1.avro", "_2")
    ]
    assert sorted(names(planned(tmp_path, IOT_HUB))) == sorted(blobs)


def test_last_modified_decides_unless_the_arrival_time_is_the_enqueued_time(tmp_path: Path) -> None:
    copied = put(tmp_path, "contoso/0/2026/03/01/10/05.avro", LATER)
    restored = put(tmp_path, "contoso/0/2026/02/28/10/05.avro", TEN + MINUTE)
    assert names(planned(tmp_path, IOT_HUB)) == [restored]
    enqueued = planned(tmp_path, replace(IOT_HUB, arrival_time=ArrivalTime.EVENT_ENQUEUED))
    assert copied in names(enqueued)


@given(
    named_by_end=st.booleans(),
    batches=st.lists(st.tuples(st.integers(0, 900), st.integers(0, 299), st.integers(0, 30)), max_size=8),
    first=st.integers(-400, 3000),
    length=st.one_of(st.none(), st.integers(0, 400)),
)
def test_no_batch_that_may_hold_an_arrival_is_left_out(
    named_by_end: bool, batches: list[tuple[int, int, int]], first: int, length: int | None
) -> None:
    """A name may have the minute of the first event or of the last; IoT Hub guarantees neither."""
    definition = replace(IOT_HUB, arrival_time=ArrivalTime.EVENT_ENQUEUED)
    assert isinstance(definition.names, IotHubNames)
    begin = 0
    blobs: list[Blob] = []
    holds: dict[str, tuple[int, int]] = {}
    for pause, lasts, delay in batches:
        begin += pause
        end = begin + lasts
        named = TEN + timedelta(seconds=end if named_by_end else begin)
        name = definition.names.name("0", named, f"-{len(blobs)}.avro")
        blobs.append(Blob(name, "", 1, TEN + timedelta(seconds=end + 60 * delay)))
        holds[name] = (begin, end)
        begin = end
    start = from_datetime(TEN) + from_seconds(first)
    arrivals = Arrivals(start, None if length is None else start + from_seconds(length))
    listing, _ = survey(definition, listed(blobs), [arrivals], LATER)
    ordered = in_order(listing.blobs, definition)
    assert [pinned.blob.name for pinned in ordered] == [
        blob.name for blob in blobs if blob in [p.blob for p in ordered]
    ]
    read = {pinned.blob.name for pinned in blobs_that_may_hold(ordered, arrivals)}
    for name, (earliest, latest) in holds.items():
        ends = from_datetime(TEN) + from_seconds(latest) >= arrivals.first
        begins = arrivals.last is None or from_datetime(TEN) + from_seconds(earliest) <= arrivals.last
        assert name in read or not (ends and begins)
    for pinned in ordered:
        assert pinned.enqueued is not None
        earliest, latest = (from_datetime(TEN) + from_seconds(second) for second in holds[pinned.blob.name])
        assert pinned.enqueued.first - MAX_CLOCK_SKEW <= earliest
        assert latest <= pinned.enqueued.last + MAX_CLOCK_SKEW


# A path of folders


def test_without_a_date_the_whole_folder_is_listed_and_last_modified_decides(tmp_path: Path) -> None:
    for number, opened in enumerate(hourly(250)):
        put(tmp_path, f"logs/{number}.json", opened + MINUTE)
        put(tmp_path, f"other/{number}.json", opened + MINUTE)
    assert listed_for(tmp_path, FOLDER) == ["logs/", "logs/"], "once to see whether there is any"
    plan = planned(tmp_path, FOLDER)
    assert names(plan) == ["logs/239.json", "logs/240.json", "logs/241.json"]
    assert (plan.partitions, plan.silent, plan.far) == (("0",), (), None)


def test_a_blob_without_a_time_is_never_far_and_always_within_reach(tmp_path: Path) -> None:
    old = put(tmp_path, "logs/of-2019.json", TEN + MINUTE)
    plan = planned(tmp_path, replace(FOLDER, search_hours=0))
    assert names(plan) == [old]
    assert plan.far is None


def test_an_hour_in_which_nothing_was_written_gives_a_run_that_reads_nothing(tmp_path: Path) -> None:
    for definition in (FOLDER, DAYS):
        put(tmp_path, "logs/2019/01/01/a.json", TEN - 9999 * HOUR)
        plan = planned(tmp_path, definition)
        assert (plan.blobs, plan.partitions) == ((), ("0",))
        assert [planned_slice.incomplete_partitions for planned_slice in plan.slices] == [()]


def test_only_the_days_of_the_search_are_listed(tmp_path: Path) -> None:
    """A day's blob may be written until the end of the day, plus `search_hours`."""
    for opened in hourly(300):
        put(tmp_path, f"logs/{opened:%Y/%m/%d/%H}.json", opened + HOUR)
    assert listed_for(tmp_path, DAYS) == ["logs/"] + [
        f"logs/{day}" for day in ("2026/02/27", "2026/02/28", "2026/03/01", "2026/03/02")
    ]
    assert names(planned(tmp_path, DAYS)) == [f"logs/2026/03/01/{hour}.json" for hour in ("08", "09", "10")]


def test_a_blob_far_from_its_folder_s_day_is_reported(tmp_path: Path) -> None:
    put(tmp_path, "logs/2026/03/01/a.json", TEN + MINUTE)
    put(tmp_path, "logs/2026/02/27/b.json", TEN + MINUTE)
    plan = planned(tmp_path, DAYS)
    assert names(plan) == ["logs/2026/03/01/a.json"]
    assert plan.far is not None
    assert (plan.far.unread, plan.far.example) == (1, "logs/2026/02/27/b.json")


def test_partition_folders_are_partitions(tmp_path: Path) -> None:
    for partition in ("0", "1", "2"):
        put(tmp_path, f"logs/{partition}/2026/03/01/10/a.csv.gz", TEN + MINUTE)
    plan = planned(tmp_path, HOURS)
    assert plan.partitions == ("0", "1", "2")
    assert all(pinned.partition == pinned.blob.name.split("/")[1] for pinned in plan.blobs)


def test_by_enqueued_time_the_folders_of_the_hours_around_are_read(tmp_path: Path) -> None:
    """The events in an hour's folder were enqueued in that hour, or up to an hour before or after it."""
    for opened in hourly(40, TEN - 20 * HOUR):
        put(tmp_path, f"logs/0/{opened:%Y/%m/%d/%H}/a.json", LATER)
    plan = planned(tmp_path, replace(HOURS, arrival_time=ArrivalTime.EVENT_ENQUEUED))
    hours = sorted({name.split("/")[5] for name in names(plan)})
    assert hours == ["07", "08", "09", "10", "11", "12"]


def test_an_archive_without_blobs_is_an_error_that_says_where_to_look(tmp_path: Path) -> None:
    for definition in (IOT_HUB, FOLDER, HOURS, replace(DEFINITION, names=InputPath())):
        with pytest.raises(RunError, match=r"^no blob of this input under .*: check input\.container, input\.path and"):
            planned(tmp_path, definition)


# How far the archive reaches


def test_by_last_modified_a_slice_is_complete_when_the_clock_says_so(tmp_path: Path) -> None:
    """A user's own writer has no interval to wait for; only the clocks may differ."""
    slice_ = ten_to(1)[0]
    due = TEN + HOUR + 10 * MINUTE + timedelta(microseconds=MAX_CLOCK_SKEW // 10)
    for definition in (FOLDER, DAYS):
        assert not is_complete(definition, slice_, None, due)
        assert is_complete(definition, slice_, None, due + timedelta(seconds=1))
    put(tmp_path, "logs/a.json", TEN + MINUTE)
    (newest,) = planned(tmp_path, FOLDER).newest
    reach = partition_progress(FOLDER, "0", newest, empty_blobs=False, now=due)
    assert str(reach) == (
        "partition 0: written up to 2026-03-01T11:10:00Z, by the clock; "
        "the newest blob has LastModified 2026-03-01T10:01:00Z"
    )
    assert reach.to_dict()["path_time"] is None


def test_by_enqueued_time_a_slice_is_complete_one_period_after_its_last_arrival() -> None:
    """A later folder proves it too."""
    slice_, enqueued = ten_to(1)[0], replace(HOURS, arrival_time=ArrivalTime.EVENT_ENQUEUED)
    needed = TEN + HOUR + 10 * MINUTE + timedelta(microseconds=MAX_CLOCK_SKEW // 10)
    assert not is_complete(enqueued, slice_, None, needed + HOUR)
    assert is_complete(enqueued, slice_, None, needed + HOUR + timedelta(seconds=1))
    later = NewestBlob("0", "", from_datetime(TEN + 2 * HOUR), from_datetime(LATER))
    assert is_complete(enqueued, slice_, later, TEN)


# Changes since the plan


@pytest.mark.parametrize(
    ("definition", "name"),
    [
        (IOT_HUB, "contoso/00/2026/03/01/10/05.json"),
        (FOLDER, "logs/a.json"),
        (DAYS, "logs/2026/03/01/a.json"),
        (HOURS, "logs/3/2026/03/01/10/a.json"),
    ],
)
def test_a_blob_modified_or_deleted_since_it_was_planned_is_named(
    tmp_path: Path, definition: InputDefinition, name: str
) -> None:
    put(tmp_path, name, TEN + 10 * MINUTE)
    plan, container = planned(tmp_path, definition), open_container(tmp_path.as_uri())
    assert changes.in_input(plan, definition.names, container) == []
    put(tmp_path, name, TEN + 20 * MINUTE)
    (modified,) = changes.in_input(plan, definition.names, container)
    assert str(modified).startswith(f"{name} was modified (LastModified 2026-03-01T10:10:00Z, now 2026-03-01T10:20:00Z")
    (tmp_path / name).unlink()
    (deleted,) = changes.in_input(plan, definition.names, container)
    assert str(deleted) == f"{name} was deleted"
