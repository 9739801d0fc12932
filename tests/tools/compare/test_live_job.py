"""`recapture compare`, judged row by row by the simulated live job, which knows why each of its rows differs."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from recapture.definition.pipeline import Pipeline, load
from recapture.execute.processes.compute import compute
from recapture.execute.processes.workers import Workers
from recapture.run.audit import audit
from recapture.run.plan import plan_run
from recapture.run.publish import publish
from recapture.run.slices import slices_of
from recapture.run.suites import NONE_GIVEN
from recapture.run_files.computed import Computed, read_computed
from recapture.run_files.planned import PlannedRun
from recapture.storage.scratch import scratch_folder
from recapture.table.row_changes import comparisons
from recapture.tools.compare import document as documents
from recapture.tools.compare.assumptions import assumptions
from recapture.tools.compare.document import Comparison, compare, output_of, time_column
from recapture.tools.compare.words import (
    CHANGED_ARCHIVE,
    DIGITS,
    DOWNTIME,
    DUPLICATES,
    ENQUEUED,
    HOLE,
    UNEXPLAINED,
)
from recapture.tools.diff.document import published_entries
from recapture.tools.diff.tried import Tried
from tests.live_job.case import Case, draw, live_rows
from tests.live_job.faults import (
    Downtime,
    EnqueuedArrival,
    Fault,
    LastDigits,
    LateBlob,
    MissingPartition,
    OtherQuery,
    RowOrder,
    SmallerTolerance,
    WrittenTwice,
    draw_fault,
    inject,
)
from tests.live_job.files import write_archive, write_case, write_live
from tests.live_job.truth import differences
from tests.live_job.world import RANGE_END, RANGE_START
from tests.worlds import World, lenient

NAMES = {
    Downtime.name: DOWNTIME,
    EnqueuedArrival.name: ENQUEUED,
    LastDigits.name: DIGITS,
    LateBlob.name: CHANGED_ARCHIVE,
    MissingPartition.name: HOLE,
    WrittenTwice.name: DUPLICATES,
}
"""Reason of the differences that a fault alone makes; the other faults are settings."""
OF_THE_JOB = (
    RowOrder.name,
    SmallerTolerance.name,
    EnqueuedArrival.name,
    OtherQuery.name,
    LastDigits.name,
    WrittenTwice.name,
    Downtime.name,
)


def publish_case(processes: Workers, home: Path, case: Case) -> Pipeline:
    """Write a case, and publish its range, whatever is missing from the archive."""
    file = write_case(home, case)
    world = World(home)
    world.amend(quality={"suite": lenient(world)})
    pipeline = load(file)
    run = plan_run(pipeline, RANGE_START, RANGE_END)
    with scratch_folder("live-job") as scratch:
        compute(processes, run, scratch)
    computed = read_computed(run.files)
    publish(run, computed, audit(run, computed, NONE_GIVEN, accept_loss=True))
    return pipeline


def found(
    processes: Workers,
    pipeline: Pipeline,
    live: Path,
    given: Tried,
    monkeypatch: pytest.MonkeyPatch,
    downtimes: Sequence[tuple[datetime, datetime]] = (),
) -> dict[tuple[str, str], str]:
    """Return the reason of each row that differs, by the end of its window and its device."""
    monkeypatch.setattr(documents, "MAX_EXAMPLES", 100_000)
    output = output_of(pipeline, None)
    slices = slices_of(pipeline, RANGE_START, RANGE_END)
    entries = published_entries(pipeline, slices)
    comparison = Comparison(pipeline, output, slices, entries, {}, time_column(pipeline, output, None), downtimes)

    with scratch_folder("live-job") as folder, comparisons("live-job-rows") as connection:

        def computing(_: Pipeline) -> Callable[[PlannedRun], Computed]:
            return partial(compute, processes, scratch=folder)

        tried = assumptions(pipeline, output.alias, (slices, entries), given, folder, computing)
        result = compare(connection, comparison, live.as_uri(), tried, folder)
    place = {name: number for number, name in enumerate(result["example_columns"])}
    reasons = {
        (example["values"][place["windowEnd"]], example["values"][place["deviceId"]]): example["reason"]
        for example in result["examples"]
    }
    assert len(reasons) == result["different"]
    return reasons


def given_by(fault: Fault, home: Path) -> tuple[Tried, str]:
    """Return what a person would say about the live job, and the reason that this gives."""
    match fault:
        case SmallerTolerance():
            return Tried(late_seconds=fault.late.seconds), f"a late tolerance of {fault.late.seconds} s"
        case OtherQuery():
            return Tried(query=home / "live.asaql"), f"the query in {home / 'live.asaql'}"
    return Tried(), NAMES.get(fault.name, "")


def expected(case: Case, fault: Fault, reason: str) -> dict[tuple[str, str], str]:
    """Return the rows that differ because of a fault, each with this reason."""
    return {
        (text(difference.identity[0]), difference.identity[1] or "null"): reason
        for difference in differences(case, [fault])
    }


def text(instant: Any) -> str:
    return str(instant.isoformat().replace("+00:00", "Z"))


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_each_fault_of_the_live_job_is_the_reason_of_the_rows_that_it_changes(
    processes: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    case = draw(seed, ("tumbling", "hopping", "filtered")[seed % 3])
    pipeline = publish_case(processes, tmp_path, case)
    differing = 0
    for name in OF_THE_JOB:
        fault = draw_fault(name, case, seed)
        assert fault is not None
        changed = inject(case, [fault])
        (tmp_path / "live.asaql").write_text(changed.live.query.text)
        live = tmp_path / name.replace(" ", "-")
        write_live(live, live_rows(changed), "json")
        given, reason = given_by(fault, tmp_path)
        rows = expected(case, fault, reason)
        down = [(fault.start, fault.end)] if isinstance(fault, Downtime) else []
        assert found(processes, pipeline, live, given, monkeypatch, down) == rows, name
        differing += len(rows)
    assert differing > 0


@pytest.mark.parametrize("name", [LateBlob.name, MissingPartition.name])
def test_each_fault_of_the_archive_is_the_reason_of_the_rows_that_it_changes(
    processes: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case = next(
        case
        for case in (draw(seed, "tumbling", "EventEnqueuedUtcTime") for seed in range(100))
        if len(case.partitions) > 1
    )
    fault = draw_fault(name, case, 3)
    assert fault is not None
    changed = inject(case, [fault])
    pipeline = publish_case(processes, tmp_path, changed)
    write_archive(tmp_path, changed.written_later)
    rows = expected(case, fault, NAMES[name])
    assert rows
    assert found(processes, pipeline, tmp_path / "live", Tried(), monkeypatch) == rows
    assert UNEXPLAINED not in rows.values()
