"""`recapture advise`: what it prints, its JSON, its page and its errors."""

import re
from pathlib import Path

import pytest

from tests.commands import FIRST_HOUR, Command
from tests.conftest import Python
from tests.tools.advise.runs import BY_DEVICE, PLAIN, fleet
from tests.worlds import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An hour of five devices, one of which has a clock that is two minutes ahead."""
    world = World(tmp_path)
    fleet(world, {f"device-{number}": -0.2 for number in range(4)} | {"fast": 121})
    world.define(PLAIN, eventsOutOfOrderMaxDelayInSeconds=2)
    return world


def rows(text: str) -> list[list[str]]:
    """Return the cells of the rows of all tables."""
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in text.splitlines() if line.startswith("│")]


def test_it_prints_the_smallest_settings_the_counts_of_each_setting_and_the_partitions(
    world: World, command: Command
) -> None:
    out, err = command.run("advise", world.file, *FIRST_HOUR)
    assert "telemetry: what arrived from 2024-03-01T10:00:00Z to 2024-03-01T11:00:00Z" in out
    assert "input telemetry: 275 events, the latest 5 min 2 s late; read 11 blobs" in out
    assert rows(out)[:6] == [
        ["none (query)", "99%", "7 min", "1 min 30 s", "E + 7 min", "100%"],
        ["none (query)", "99.9%", "7 min", "1 min 30 s", "E + 7 min", "100%"],
        ["none (query)", "all", "7 min", "1 min 30 s", "E + 7 min", "100%"],
        ["deviceId", "99%", "7 min", "0 s", "E + 7 min", "100%"],
        ["deviceId", "99.9%", "7 min", "0 s", "E + 7 min", "100%"],
        ["deviceId", "all", "7 min", "0 s", "E + 7 min", "100%"],
    ]
    # The clock that is ahead puts all others out of order, except those of the first minute.
    assert ["10 min", "2 s", "E + 10 min", "21.45%", "59", "0", "216"] in rows(out)
    assert rows(out)[-1] == ["0", "275", "59", "0", "216", "0", "0", "0", "0"]
    assert "warning: the clock of 1 of 5 devices is wrong: fast is 2 min ahead; " in err


def test_json_has_the_counts_of_every_setting_in_all_and_by_partition(world: World, command: Command) -> None:
    advice = command.json("advise", world.file, *FIRST_HOUR)
    assert (advice["late_seconds"], advice["out_of_order_seconds"], advice["policy"]) == (600, 2, "Adjust")
    (input_,) = advice["inputs"]
    assert input_["clocks"] == {
        "key": ["deviceId"],
        "devices": 5,
        "wrong": [{"device": "fast", "seconds": 120.0, "events": 55, "dropped": 0}],
    }
    assert [(key["over"], key["of_query"]) for key in input_["keys"]] == [([], True), (["deviceId"], False)]
    for key in input_["keys"]:
        assert [entry["keep"] for entry in key["smallest"]] == [0.99, 0.999, 1.0]
        assert any((row["late_seconds"], row["out_of_order_seconds"]) == (600, 2) for row in key["settings"])
        for row in key["settings"]:
            assert row["on_time"] + row["late_adjusted"] + row["out_of_order_adjusted"] == 275
            assert row["partitions"]["0"]["on_time"] == row["on_time"]


def test_the_page_is_written_where_out_says(world: World, command: Command) -> None:
    file = world.home / "advice.html"
    _, err = command.run("advise", world.file, *FIRST_HOUR, "--out", file)
    assert err.endswith(f"{file}: the page is written\n")
    assert file.read_text().startswith("<!DOCTYPE html>")


def test_a_page_that_cannot_be_written_is_a_usage_error(world: World, command: Command) -> None:
    advise = ("advise", world.file, *FIRST_HOUR)
    absent = command.error(*advise, "--out", world.home / "none" / "x.html")
    assert absent.endswith("choose another file with --out")
    folder = command.error(*advise, "--out", world.home)
    assert "cannot be written (Is a directory): choose another file with --out" in folder


def test_a_range_that_is_not_whole_slices_is_a_usage_error(world: World, command: Command) -> None:
    line = command.error("advise", world.file, "--from", "2024-03-01T10:00Z", "--to", "2024-03-01T10:30Z")
    assert "is not on a slice border" in line


def test_with_the_policy_drop_events_are_dropped_instead(world: World, command: Command) -> None:
    world.define(BY_DEVICE, eventsOutOfOrderPolicy="Drop", eventsLateArrivalMaxDelayInSeconds=-1)
    out = command.text("advise", world.file, *FIRST_HOUR)
    assert "late, dropped" in out
    assert ["no limit", "0 s", "E, never final", "100%", "275", "0", "0"] in rows(out)


def test_it_needs_neither_java_nor_spark(world: World, python: Python) -> None:
    script = (
        "import sys; from recapture import cli; code = cli.main(sys.argv[1:]); "
        "assert 'pyspark' not in sys.modules; sys.exit(code)"
    )
    completed = python("-c", script, "advise", world.file, *FIRST_HOUR, PATH="/nowhere", JAVA_HOME="/nowhere")
    assert completed.returncode == 0, completed.stderr
    assert re.search("smallest settings that keep events unchanged", completed.stdout.decode())
