"""The state of a published slice: blocked, stale, outdated, or as its audit said."""

import json
from typing import Any

import pytest

from recapture.errors import PermanentError
from recapture.run.outdated import PARTS, UNKNOWN, in_words, outdated_slices, parts_of
from recapture.run.slice_state import Standing, State
from recapture.run.status import status
from recapture.run_files.changes import Changes, read_changes
from recapture.run_files.work import Failure, Work
from recapture.storage import open_container
from recapture.table.publications import ShownEntry
from recapture.time_model import ticks
from tests.worlds import COUNTS, TELEMETRY, World

NINE, TEN, ELEVEN = (f"2024-03-01T{hour:02}:00:00Z" for hour in (9, 10, 11))
HOUR = ticks.from_seconds(3600)
PRESENT = dict.fromkeys(PARTS, "1")


def entry(quality: str = "passed", run: str | None = "first", **parts: str) -> ShownEntry:
    return ShownEntry(run, quality, parts=json.dumps(PRESENT | parts))


def test_parts_that_differ_are_named_in_order() -> None:
    entries = {NINE: entry(), TEN: entry(suite="2", query="2"), ELEVEN: entry(run=None, query="2")}
    assert outdated_slices(PRESENT, entries) == {TEN: ("query", "suite")}


def test_a_publication_of_an_older_version_is_not_known_to_be_of_the_present_definition() -> None:
    assert outdated_slices(PRESENT, {NINE: ShownEntry("first", "passed")}) == {NINE: (UNKNOWN,)}


@pytest.mark.parametrize(
    ("blocked", "stale", "differing", "quality", "state"),
    [
        (True, True, ("query",), "passed", State.BLOCKED),
        (False, True, ("query",), "passed", State.STALE),
        (False, False, ("query",), "passed", State.OUTDATED),
        (False, False, (UNKNOWN,), "passed", State.OUTDATED),
        (False, False, ("suite",), "passed with warnings", State.OUTDATED),
        (False, False, ("engine",), "passed", State.PUBLISHED),
        (False, False, ("engine", "policies"), "passed", State.OUTDATED),
        (False, False, (), "passed with warnings", State.WARNINGS),
        (False, False, (), "approved", State.APPROVED),
    ],
)
def test_the_most_urgent_state_is_shown(
    blocked: bool, stale: bool, differing: tuple[str, ...], quality: str, state: State
) -> None:
    standing = Standing(
        {TEN: entry(quality)},
        {TEN: "stopped"} if blocked else {},
        Changes({TEN: "first"} if stale else {}),
        {TEN: differing} if differing else {},
    )
    assert standing.state(TEN) is state


def test_blobs_that_changed_after_another_run_do_not_make_a_slice_stale() -> None:
    assert Standing({TEN: entry()}, {}, Changes({TEN: "another"}), {}).state(TEN) is State.PUBLISHED


def failure(run: str | None) -> Failure:
    start = ticks.from_text(TEN)
    runs = {} if run is None else {TEN: run}
    return Failure(start, start + HOUR, (start,), start, start, "a blob is damaged", {}, {}, runs)


@pytest.mark.parametrize(
    ("published", "failed_after", "stale", "state"),
    [
        (None, None, False, State.FAILED),
        ("first", "first", True, State.FAILED),
        ("first", "first", False, State.PUBLISHED),
        ("second", "first", True, State.STALE),
        ("second", None, False, State.PUBLISHED),
    ],
)
def test_a_slice_that_an_update_failed_at_is_failed_as_long_as_it_has_to_be_computed(
    published: str | None, failed_after: str | None, stale: bool, state: State
) -> None:
    entries = {} if published is None else {TEN: entry(run=published)}
    changes = Changes({TEN: published} if stale and published is not None else {})
    standing = Standing(entries, {}, changes, {}, Work(failures=(failure(failed_after),)))
    assert standing.state(TEN) is state


def test_an_unpublished_slice_has_no_state() -> None:
    assert Standing({}, {}, Changes(), {}).state(TEN) is None


@pytest.mark.parametrize(
    ("changed", "part"),
    [
        ({"query": COUNTS.replace("COUNT(*)", "COUNT(temperature)")}, "query"),
        ({"eventsOutOfOrderMaxDelayInSeconds": 7}, "policies"),
        ({"inputs": [TELEMETRY | {"arrival_time": "EventEnqueuedUtcTime"}]}, "inputs"),
        ({"quality": "suite.json"}, "suite"),
    ],
)
def test_every_change_of_the_pipeline_is_found_in_its_part(world: World, changed: dict[str, Any], part: str) -> None:
    before, after = parts_of(world.define()), parts_of(world.define(**changed))
    assert [name for name in PARTS if before[name] != after[name]] == [part]
    assert list(before) == list(PARTS)


def test_a_script_is_a_part_of_its_own(world: World) -> None:
    world.home.mkdir(exist_ok=True)
    query = COUNTS.replace("COUNT(*)", "SUM(udf.f(temperature))")
    parts = []
    for script in ("function main(x) { return x; }", "function main(x) { return x + 1; }"):
        world.home.joinpath("f.js").write_text(script)
        parts.append(parts_of(world.define(query=query, functions={"f": {"script": "f.js", "output_type": "float"}})))
    assert [name for name in PARTS if parts[0][name] != parts[1][name]] == ["functions"]


def test_a_change_that_decides_no_row_changes_no_part(world: World) -> None:
    before = parts_of(world.define())
    assert parts_of(world.define(query=COUNTS.replace("SELECT", "select  "))) == before


@pytest.fixture
def world(tmp_path: Any) -> World:
    world = World(tmp_path)
    world.write_suite({"type": "expect_column_to_exist", "kwargs": {"column": "slice_start"}}, name="suite")
    return world


def test_a_slice_whose_blobs_nobody_can_compare_is_not_shown_as_good() -> None:
    unreadable = Changes(problem="changed.json is damaged")
    assert Standing({TEN: entry()}, {}, unreadable, {}).state(TEN) is State.UNCHECKED
    assert Standing({TEN: entry()}, {}, Changes(unknown=(TEN,)), {}).state(TEN) is State.UNCHECKED
    assert Standing({TEN: entry()}, {}, Changes(unknown=(NINE,)), {}).state(TEN) is State.PUBLISHED
    assert Standing({TEN: entry()}, {TEN: "stopped"}, unreadable, {}).state(TEN) is State.BLOCKED
    assert Standing({TEN: entry(run=None)}, {}, unreadable, {}).state(TEN) is None


@pytest.mark.parametrize("content", [b"", b"{", b'{"format": 3}', b'{"format": 3, "content": {"slices": 1}}'])
def test_status_shows_the_slices_although_the_record_of_the_checks_is_damaged(world: World, content: bytes) -> None:
    pipeline = world.define()
    record = world.table / "_recapture" / "changed.json"
    record.parent.mkdir(parents=True)
    record.write_bytes(content)
    (problem,) = status(pipeline)["problems"]
    assert str(problem["problem"]).startswith(
        f"{world.table.as_uri()}/_recapture/changed.json, the record of the checks"
    )
    with pytest.raises(
        PermanentError, match="is damaged: restore it, or delete it and check all published slices again"
    ):
        read_changes(open_container(pipeline.outputs[0].table))


def test_what_differs_from_the_definition_is_said_in_words() -> None:
    assert in_words([("engine", "query"), ("suite",), ("query",)]) == "other query, suite, version of Recapture"
    assert in_words([("engine",), ()]) == "other version of Recapture"
    assert in_words([(UNKNOWN,), ("policies",)]) == "other policies; definition not recorded"
    assert in_words([(), ()]) == ""
