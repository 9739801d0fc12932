"""What the advice warns about, each in an archive that has it (`recapture.tools.advise.input_warnings`)."""

import re
from pathlib import Path
from typing import Any

import pytest

from recapture.errors import DamagedBlobError, DefinitionError, RunError
from recapture.tools.advise.advice import advise
from recapture.tools.sample import capture_file
from tests.blobs import rewrite
from tests.tools.advise.runs import BY_DEVICE, PLAIN, advised, event, fleet, input_section, put
from tests.worlds import HOUR, TELEMETRY, TEN, World, at, blob_name

RIGHT = {f"device-{number}": -0.2 for number in range(4)}


def archive(home: Path, clocks: dict[str, float] | None = None, **sent: Any) -> World:
    """Return an hour of four devices whose clocks are right, and of others."""
    world = World(home)
    fleet(world, RIGHT | (clocks or {}), **sent)
    return world


def warnings(world: World, query: str = BY_DEVICE, **sections: Any) -> list[str]:
    """Return the warnings of the advice and of the pipeline, without the name of its file."""
    pipeline = world.define(query, **sections)
    return [text.removeprefix(f"{pipeline.file}: ") for text in advised(pipeline).summary["warnings"]]


def test_a_healthy_archive_has_no_warning(tmp_path: Path) -> None:
    assert warnings(archive(tmp_path)) == []


def test_devices_with_wrong_clocks_are_named_with_their_errors(tmp_path: Path) -> None:
    world = archive(tmp_path, {"fast": 121, "slow": -180})
    wrong = "the clocks of 2 of 6 devices are wrong: slow is 3 min 1 s behind, fast is 2 min ahead"
    assert warnings(world) == [wrong]
    (remedy,) = (text for text in warnings(world, PLAIN) if text.startswith(wrong))
    assert remedy.endswith("; a clock that is ahead puts the other devices out of order: OVER deviceId prevents it")


def test_a_device_whose_events_are_all_dropped_is_not_said_to_put_others_out_of_order(tmp_path: Path) -> None:
    world = archive(tmp_path, {"fast": 900})
    wrong, _ = warnings(world, PLAIN)
    assert wrong == (
        "the clock of 1 of 5 devices is wrong: fast is 14 min 59 s ahead (all its events are dropped as too early)"
    )
    adjusted = warnings(world, PLAIN, early_policy="Adjust")
    assert any(text.endswith("OVER deviceId prevents it") for text in adjusted), "then they push the watermark"


def test_a_clock_that_is_ahead_by_less_than_the_tolerance_puts_nobody_out_of_order(tmp_path: Path) -> None:
    world = archive(tmp_path, {"fast": 20})
    (wrong,) = warnings(world, PLAIN, eventsOutOfOrderMaxDelayInSeconds=599)
    assert wrong == "the clock of 1 of 5 devices is wrong: fast is 19 s ahead"


def test_only_some_of_many_wrong_clocks_are_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    fleet(world, {f"d{number}": 100 * number for number in range(9)})
    (text, *_) = warnings(world)
    assert text.startswith(
        "the clocks of 8 of 9 devices are wrong: d8 is 13 min 19 s ahead (all its events are dropped as too early), "
    )
    assert text.endswith("and 3 more")


def test_events_that_are_too_early_are_counted(tmp_path: Path) -> None:
    world = archive(tmp_path, {"fast": 900})
    (_, early) = warnings(world)
    assert early == (
        "55 events have a time more than 5 min after arrival: they are dropped, and no tolerance changes that; correct "
        "the clocks"
    )
    assert "their times are adjusted" in warnings(world, early_policy="Adjust")[-1]


def test_a_late_tolerance_below_the_capture_interval_is_warned_about(tmp_path: Path) -> None:
    (text,) = warnings(archive(tmp_path), eventsLateArrivalMaxDelayInSeconds=60)
    assert text.startswith("eventsLateArrivalMaxDelayInSeconds is 60, less than the capture interval of 300: ")


def test_a_smallest_setting_below_the_capture_interval_is_warned_about(tmp_path: Path) -> None:
    """All events of this hour were sent just before their blobs were written."""
    world = archive(tmp_path, minutes=range(4, 60, 5))
    (text,) = warnings(world)
    assert text.startswith("a late tolerance of 2 min keeps 99% of the events unchanged in this range, but is less ")
    assert text.endswith("take 300 or more")
    assert warnings(world, inputs=input_section(arrival_time="EventEnqueuedUtcTime")) == []


def test_copied_blobs_are_found_by_their_last_modified_times(tmp_path: Path) -> None:
    world = archive(tmp_path)
    earlier = TEN - 5 * HOUR
    name = put(world, "1", at(30), [(earlier, event(earlier, "device-1")), (earlier, event(earlier, "device-2"))], 0)
    (copied, late, *_) = warnings(world)
    assert copied == (
        "partition 1: 2 events in 1 blob were enqueued up to 5 h 30 min before their blob's LastModified, for example "
        f"in {name}, but the capture interval is 300 s: if the blobs were copied, LastModified makes their events "
        "late: set arrival_time to EventEnqueuedUtcTime"
    )
    assert late == (
        "2 events are more than 1 h late, the longest tolerance that this range can judge; the latest is 5 h 30 min "
        "late: choose a longer range to judge longer tolerances"
    )


def test_an_archive_that_was_copied_whole_keeps_its_enqueued_times(tmp_path: Path) -> None:
    world = World(tmp_path)
    events = [(at(minute), event(at(minute), f"device-{minute % 2}")) for minute in range(10, 50)]
    put(world, "0", at(600), events, 0)
    (text,) = warnings(world, inputs=input_section(arrival_time="EventEnqueuedUtcTime"))
    assert "40 events in 1 blob were enqueued up to 9 h 50 min before" in text
    assert text.endswith("keep arrival_time at EventEnqueuedUtcTime: by LastModified these events would arrive late")


def test_events_that_were_enqueued_after_last_modified_are_found(tmp_path: Path) -> None:
    world = World(tmp_path)
    put(world, "0", at(20), [(at(40), event(at(20 + n / 60), f"device-{n % 2}")) for n in range(20)], 0)
    (text, *_) = warnings(world)
    assert "20 events in 1 blob were enqueued up to 20 min after their blob's LastModified" in text


def test_where_no_setting_keeps_enough_a_key_that_does_is_named(tmp_path: Path) -> None:
    world = archive(tmp_path, {"fast": 700}, interval=15)
    section = input_section(capture_interval_seconds=900)
    (*_, text) = warnings(world, PLAIN, inputs=section, eventsLateArrivalMaxDelayInSeconds=900)
    assert re.fullmatch(
        r"no setting up to 1 h late and 599 s out of order keeps 99% of the events unchanged without OVER, at most "
        r"\d\d\.\d\d%; with OVER deviceId, 20 min late and 0 s out of order does",
        text,
    )


def test_what_capture_has_not_written_yet_is_warned_about(tmp_path: Path) -> None:
    world = archive(tmp_path, minutes=range(30))
    fleet(world, RIGHT, partition="1")
    advice = advise(world.define(BY_DEVICE), TEN, TEN + HOUR, at(61))
    assert advice.warnings == ["more may still arrive in this range from 1 partition (0): the counts may grow"]


def test_a_damaged_blob_is_left_out_if_it_would_be_quarantined_or_else_stops_the_command(tmp_path: Path) -> None:
    world = World(tmp_path)
    blob = world.capture / fleet(world, RIGHT)[3]
    rewrite(blob, blob.read_bytes()[:-1])
    (text,) = warnings(world, on_damaged_blob="quarantine")
    name = str(blob.relative_to(world.capture))
    assert text == f"1 blob is damaged and was left out, for example {name}: their events are not counted"
    with pytest.raises(DamagedBlobError, match=f"blob {name} is damaged: .*; restore it"):
        advised(world.define(BY_DEVICE))


def test_an_archive_without_events_is_an_error_that_names_the_range(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.put("0", at(-600))
    message = "no event arrived from 2024-03-01T10:00:00Z to 2024-03-01T11:00:00Z: choose another range"
    with pytest.raises(RunError, match=message):
        advised(world.define())
    with pytest.raises(RunError, match="no blob of this input"):
        advised(World(tmp_path).define(inputs=input_section(event_hub="other")))


def test_without_timestamp_by_there_is_nothing_to_advise(tmp_path: Path) -> None:
    world = World(tmp_path)
    pipeline = world.define("SELECT COUNT(*) AS n INTO aggregates FROM telemetry GROUP BY TumblingWindow(minute, 5)")
    with pytest.raises(DefinitionError, match=r"nothing to advise, because the query has no TIMESTAMP BY"):
        advised(pipeline)


def test_each_input_has_its_own_advice_and_one_without_events_is_named(tmp_path: Path) -> None:
    world = archive(tmp_path, {"fast": 121})
    silent = TELEMETRY | {"alias": "silent", "event_hub": "silent"}
    again = TELEMETRY | {"alias": "again", "arrival_time": "EventEnqueuedUtcTime"}
    path = world.capture / blob_name("0", at(-600), hub="silent")
    path.parent.mkdir(parents=True)
    path.write_bytes(capture_file([]))
    query = " ".join(
        f"SELECT COUNT(*) AS n INTO aggregates FROM {source} GROUP BY TumblingWindow(minute, 5)"
        for source in (
            "telemetry TIMESTAMP BY eventTime OVER deviceId",
            "silent TIMESTAMP BY eventTime",
            "again TIMESTAMP BY eventTime",
        )
    )
    advice = advised(world.define(query, inputs=[TELEMETRY, silent, again]))
    summary = advice.summary
    assert [(one["alias"], one["arrival_time"], one["events"]) for one in summary["inputs"]] == [
        ("telemetry", "BlobLastModified", 275),
        ("again", "EventEnqueuedUtcTime", 300),
    ]
    assert summary["without_events"] == ["silent"]
    assert advice.warnings[0] == "no event of input silent arrived in this range"
    assert [text for text in advice.warnings if "of input again is wrong: " in text]
