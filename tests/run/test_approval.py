"""A run that its audit stopped: it blocks its slices until a person approves it or another run is published."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from recapture.errors import AuditError, PermanentError
from recapture.execute.processes.workers import Workers
from recapture.keep.check import check
from recapture.run.approval import approve
from recapture.run.rollback import rollback
from recapture.run.slice_state import blocked_slices_of
from recapture.run_files.changes import read_changes
from recapture.run_files.planned import PlannedRun
from recapture.storage import open_container
from recapture.table.delta import METADATA
from recapture.table.publications import Approval
from recapture.tools.coverage.reading import CoverageReader
from recapture.tools.coverage.run_page import run_page
from recapture.tools.reports.write import write_range_report
from tests.stages import approval_of, audit, publish, summary, write_run_report
from tests.worlds import TEN, World, at, body, not_warmer_than, one_event, published, staged

APPROVAL = Approval("Ada", datetime(2024, 3, 2, 8, tzinfo=UTC), "the heating was on")
NOON = TEN + timedelta(hours=2)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return one_event(tmp_path, hours=2)


def suite(world: World, largest: float) -> None:
    """Write a suite that requires mean temperatures of at most `largest`."""
    world.write_suite(not_warmer_than(largest))


def blocked(processes: Workers, world: World) -> PlannedRun:
    """Return the run of both hours after its audit stopped it."""
    suite(world, 19)
    run = staged(processes, world.define(quality="rooms.json"), TEN, NOON)
    with pytest.raises(AuditError):
        audit(run)
    return run


def coverage(run: PlannedRun) -> list[str]:
    """Return the states of the run's slices as the calendar shows them two hours later."""
    read = CoverageReader(run.pipeline).read(NOON + timedelta(hours=1))
    return [str(state.state) for state in read.slices][:2]


def test_a_blocked_run_is_published_if_a_person_approves_it(processes: Workers, world: World) -> None:
    run = blocked(processes, world)
    assert blocked_slices_of(run) == list(run.slices)
    assert coverage(run) == ["blocked", "blocked"]
    with pytest.raises(AuditError, match="nothing is published"):
        publish(run)
    approve(run, APPROVAL)
    outcome = publish(run)
    assert outcome.quality == "approved"
    assert len(published(world.table)) == 2
    assert blocked_slices_of(run) == []
    assert coverage(run) == ["published after approval"] * 2
    for table in (world.table, world.home / "table_publications"):
        commit: Any = DeltaTable(str(table)).history(1)[0]
        assert json.loads(commit[METADATA])["approvals"] == [
            {"run": run.id, "by": "Ada", "at": "2024-03-02T08:00:00Z", "reason": "the heating was on"}
        ]
    quality = summary(run)["quality"]
    assert quality["verdict"] == "failed"
    assert quality["approval"] == {"by": "Ada", "at": "2024-03-02T08:00:00Z", "reason": "the heating was on"}

    write_run_report(run)
    page = (world.table / "_recapture" / run.id / "report.html").read_text()
    assert "the audit stopped the run, and Ada approved 2 slices" in page
    assert "the heating was on" in page
    written = write_range_report(run.pipeline, TEN, NOON, world.home / "range.html")
    assert "Ada approved 2 slices" in written["verdict"]["sentence"]
    assert "the heating was on" in (world.home / "range.html").read_text()

    rollback(run.pipeline, TEN, NOON)
    assert coverage(run) == ["missing", "missing"]


def test_an_approval_covers_audits_with_the_same_result_and_no_others(processes: Workers, world: World) -> None:
    run = blocked(processes, world)
    assert approval_of(run) is None
    approve(run, APPROVAL)
    assert approval_of(run) == APPROVAL
    assert b"Ada approved the run" in run_page(run.files, run.pipeline.name, "")
    with pytest.raises(AuditError):
        audit(run)
    assert approval_of(run) == APPROVAL
    suite(world, 18)
    with pytest.raises(AuditError):
        audit(run)
    assert approval_of(run) is None
    assert b"approved" not in run_page(run.files, run.pipeline.name, "")
    with pytest.raises(AuditError, match="nothing is published"):
        publish(run)
    suite(world, 21)
    audit(run)
    assert publish(run).quality == "passed"
    assert coverage(run) == ["published", "published"]


@pytest.mark.parametrize("approved", ["before", "after"])
def test_a_run_is_not_published_over_a_later_one_although_a_person_approved_it(
    processes: Workers, world: World, approved: str
) -> None:
    run = blocked(processes, world)
    if approved == "before":
        approve(run, APPROVAL)
    world.put("0", at(90), [body("a", at(80))], 2)
    suite(world, 21)
    later = staged(processes, run.pipeline, NOON - timedelta(hours=1), NOON)
    audit(later)
    publish(later)
    message = f"run {run.id} cannot be published any more: run {later.id} was published for slice 2024-03-01T11:00:00Z"
    with pytest.raises(PermanentError, match=message):
        publish(run) if approved == "before" else approve(run, APPROVAL)
    assert coverage(run) == ["blocked", "published"]
    assert publish(later).quality == "passed"


def test_a_slice_is_stale_from_a_check_that_finds_another_blob_to_one_that_finds_the_first_again(
    processes: Workers, world: World
) -> None:
    suite(world, 21)
    run = staged(processes, world.define(quality="rooms.json"), TEN, NOON)
    audit(run)
    publish(run)
    assert check(run.pipeline, TEN, NOON)["changed"] == []
    added = world.put("0", at(90), [body("a", at(80))], 2)
    found = check(run.pipeline, TEN, NOON)
    assert (found["checked"], found["changed"], found["unknown"]) == (2, ["2024-03-01T11:00:00Z"], [])
    assert coverage(run) == ["published", "stale"]
    assert read_changes(open_container(world.table.as_uri())).end == "2024-03-01T12:00:00Z"
    check(run.pipeline, TEN, at(60))
    assert coverage(run) == ["published", "stale"], "a check of other slices changes nothing"
    added.unlink()
    check(run.pipeline, TEN, NOON)
    assert coverage(run) == ["published", "published"]
