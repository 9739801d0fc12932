"""The audit between staging and publishing: what blocks, what only marks, and that nothing slips through."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recapture.definition.pipeline import Pipeline
from recapture.errors import AuditError, DefinitionError, RunError
from recapture.execute.processes.workers import Workers
from recapture.quality import suites
from recapture.run.plan import plan_run, preview, require_auditable
from recapture.run.status import status
from tests.commands import FIRST_HOUR, Command
from tests.stages import audit, publish
from tests.worlds import (
    COUNTS,
    TEN,
    World,
    at,
    backfill,
    body,
    lenient,
    not_warmer_than,
    published,
    run_file,
    staged,
    version,
)


def judged(world: World, severity: str, largest: float) -> Pipeline:
    """Return a pipeline whose suite requires mean temperatures of at most `largest`."""
    return world.define(quality=world.write_suite(not_warmer_than(largest, severity=severity)))


def test_a_critical_failure_blocks_with_its_reason_until_it_is_fixed(processes: Workers, world: World) -> None:
    with pytest.raises(AuditError, match="nothing was published: rooms: not met: no room is too warm") as raised:
        backfill(processes, judged(world, "critical", 19), TEN, at(60))
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 1
    assert version(world.table) is None
    assert backfill(processes, judged(world, "critical", 21), TEN, at(60))["changed"]
    assert [row["avgTemperature"] for row in published(world.table)] == [20]


def test_what_is_published_stays_when_a_later_run_is_blocked(processes: Workers, world: World) -> None:
    backfill(processes, judged(world, "critical", 21), TEN, at(60))
    before = version(world.table), published(world.table)
    world.put("0", at(13), [body("a", at(11), 40)], 1)
    with pytest.raises(AuditError):
        backfill(processes, judged(world, "critical", 21), TEN, at(60))
    assert (version(world.table), published(world.table)) == before


def test_a_blocked_run_cannot_be_published_by_the_publish_stage_alone(processes: Workers, world: World) -> None:
    run = staged(processes, judged(world, "critical", 19), TEN, at(60))
    with pytest.raises(AuditError):
        audit(run)
    with pytest.raises(AuditError, match="nothing is published"):
        publish(run)
    assert version(world.table) is None


def test_a_run_that_was_not_audited_cannot_be_published(processes: Workers, world: World) -> None:
    run = staged(processes, world.define(), TEN, at(60))
    with pytest.raises(RunError, match=r"audit\.json"):
        publish(run)
    assert version(world.table) is None


def test_a_warning_publishes_and_marks(processes: Workers, world: World) -> None:
    pipeline = judged(world, "warning", 19)
    report = backfill(processes, pipeline, TEN, at(60))
    assert report["quality"]["verdict"] == "passed with warnings"
    assert "no room is too warm" in report["quality"]["text"]
    assert len(published(world.table)) == 1
    assert [slice_["quality"] for slice_ in status(pipeline)["slices"]] == ["passed with warnings"]


def test_an_info_only_notes(processes: Workers, world: World) -> None:
    report = backfill(processes, judged(world, "info", 19), TEN, at(60))
    assert report["quality"]["verdict"] == "passed"
    assert "INFO     rooms" in report["quality"]["text"]


def test_an_unchanged_rerun_gives_the_slices_the_mark_of_its_own_audit(processes: Workers, world: World) -> None:
    backfill(processes, judged(world, "warning", 19), TEN, at(60))
    again = backfill(processes, judged(world, "warning", 21), TEN, at(60))
    assert (again["changed"], again["quality"]["verdict"]) == (False, "passed")
    assert [slice_["quality"] for slice_ in status(world.define())["slices"]] == ["passed"]
    assert again["warnings"] == []


@pytest.mark.usefixtures("great_expectations")
@pytest.mark.parametrize(
    ("kind", "column", "message"),
    [
        ("expect_column_to_exist", {"colum": "x"}, "colum"),
        ("expect_column_values_to_be_between", {"column": "events"}, "min_value and max_value cannot both be None"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_is_read(
    world: World, kind: str, column: dict[str, str], message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        plan_run(world.define(quality=world.write_suite({"type": kind, "kwargs": column})), TEN, at(60))
    assert not world.table.exists()


def test_without_great_expectations_a_range_can_be_previewed_but_no_run_is_planned(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suites, "find_spec", lambda name: None)
    suites.schema_folder.cache_clear()
    pipeline = world.define()
    preview(pipeline, TEN, at(60))
    with pytest.raises(DefinitionError, match=r"install recapture\[quality\]"):
        plan_run(pipeline, TEN, at(60))
    with pytest.raises(DefinitionError, match=r"install recapture\[quality\]"):
        require_auditable(pipeline)
    assert not world.table.exists()


def test_slices_that_capture_has_not_finished_are_not_published(processes: Workers, tmp_path: Path) -> None:
    ended = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    start = ended - timedelta(hours=1)
    world = World(tmp_path)
    world.put("0", start + timedelta(minutes=2), [body("a", start + timedelta(minutes=1))])
    pipeline = world.define(eventsLateArrivalMaxDelayInSeconds=86_400)
    with pytest.raises(AuditError, match="Capture may not have written everything that arrived"):
        backfill(processes, pipeline, start, ended)
    assert version(world.table) is None


def test_the_audits_result_is_stored_with_the_run(processes: Workers, world: World) -> None:
    report = backfill(processes, judged(world, "warning", 19), TEN, at(60))
    document = run_file(world.table, report["run"], "audit.json")
    assert document["verdict"] == "passed with warnings"
    assert {result["suite"] for result in document["json"]["results"]} == {"run_metrics", "rooms"}


# Events that do not become rows


def backfilled(command: Command, world: World, code: int = 0) -> str:
    """Return what a backfill of the hour from ten prints: on standard error, if it fails."""
    out, err = command.run("backfill", world.file, *FIRST_HOUR, code=code)
    return err if code else out


def of_bodies(home: Path, *bodies: bytes) -> World:
    world = World(home)
    world.put("0", at(12), bodies)
    world.put("0", at(90))
    world.define()
    return world


def test_a_slice_whose_events_are_all_malformed_exits_1_and_says_why_and_where_they_are(
    command: Command, tmp_path: Path
) -> None:
    world = of_bodies(tmp_path, *[b"deviceId,temperature\na,20"] * 5)
    output = backfilled(command, world, 1)
    assert "events cannot be used (at most 1 % expected): 1 of 1 slice with events (100 %)" in output
    assert "in slice 2024-03-01T10:00:00Z, 5 malformed of 5 events" in output
    assert "it starts with 'deviceId,temperature\\na,20'" in output
    assert "try input.format IotHub, ServiceBus, Json or Csv" in output
    assert "5 quarantined events are in file://" in output
    assert version(world.table) is None


def test_a_slice_without_a_valid_time_exits_1_and_names_the_field_and_the_existing_ones(
    command: Command, tmp_path: Path
) -> None:
    output = backfilled(command, of_bodies(tmp_path, b'{"deviceId": "a", "ts": 1709287800}'), 1)
    assert "eventTime is missing or null; its fields are deviceId, ts" in output
    assert "ts looks like seconds since 1970: TIMESTAMP BY DATEADD(second, ts, '1970-01-01T00:00:00Z')" in output


def test_a_slice_whose_events_are_all_dropped_exits_1_and_names_the_policy(command: Command, tmp_path: Path) -> None:
    world = of_bodies(tmp_path, body("a", at(-60)))
    world.define(eventsOutOfOrderPolicy="Drop")
    output = backfilled(command, world, 1)
    assert "the policies dropped all usable events (1 late_dropped of 1)" in output


@pytest.mark.parametrize("first_arrival", [-10, 2])
def test_the_report_names_the_event_that_moved_the_watermark_if_it_arrived_in_the_range(
    command: Command, tmp_path: Path, first_arrival: float
) -> None:
    world = World(tmp_path)
    ahead, behind = body("a", at(first_arrival + 4)), body("a", at(-6.5))
    world.put("0", at(first_arrival), [ahead])
    world.put("0", at(3), [behind, behind], 1)
    world.put("0", at(90))
    world.define(quality=lenient(world), eventsOutOfOrderPolicy="Drop")
    output = backfilled(command, world)
    pushed = "pushed the watermark past them"
    if first_arrival > 0:
        assert f"66.7% of the events were out of order: earlier events {pushed} (furthest ahead: event 0 of " in output
    else:
        assert f"100.0% of the events were out of order: events before this range {pushed}; " in output


def test_a_query_that_filters_everything_is_stopped_and_a_suite_lets_it_pass(command: Command, tmp_path: Path) -> None:
    world = of_bodies(tmp_path, *(body("a", at(10), number) for number in range(100)))
    nothing = COUNTS.replace("GROUP BY", "WHERE temperature > 999 GROUP BY")
    world.define(nothing)
    output = backfilled(command, world, 1)
    assert (
        "slice 2024-03-01T10:00:00Z has no rows, although the query read 100 events: check WHERE and HAVING" in output
    )
    expectation = {"type": "expect_column_to_exist", "kwargs": {"column": "deviceId"}}
    world.define(nothing, quality=world.write_suite(expectation, severities={"query_returns_rows": "info"}))
    output = backfilled(command, world)
    assert "audit passed\n" in output


def test_an_output_of_alerts_may_rightly_have_no_rows(command: Command, tmp_path: Path) -> None:
    world = of_bodies(tmp_path, *(body("a", at(10), number) for number in range(100)))
    alerts = {"alias": "aggregates", "table": "table", "quality": {"expect_rows": False}}
    world.define(COUNTS.replace("GROUP BY", "WHERE temperature > 999 GROUP BY"), outputs=[alerts])
    output = backfilled(command, world)
    assert "audit passed\n" in output
    assert "returns" not in output


def test_a_quarantine_that_is_not_empty_is_named_with_its_reasons(command: Command, tmp_path: Path) -> None:
    world = of_bodies(tmp_path, *(body("a", at(10), number) for number in range(20)), b"{")
    output = backfilled(command, world)
    assert f"1 row of these slices is in the quarantine, {(world.home / 'table_quarantine').as_uri()}:" in output
    assert "  1 malformed: " in output


def test_a_slice_without_events_passes(command: Command, tmp_path: Path) -> None:
    output = backfilled(command, of_bodies(tmp_path))
    assert "audit passed\n" in output
