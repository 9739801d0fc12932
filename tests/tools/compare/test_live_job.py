"""`recapture compare`, judged row by row by the simulated live job, which knows why each of its rows differs."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

from recapture.archive.definitions import MAX_CLOCK_SKEW
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
from recapture.table.publications import Approval
from recapture.table.row_changes import comparisons
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from recapture.tools.compare import document as documents
from recapture.tools.compare.document import Comparison, compare, output_of, time_column
from recapture.tools.compare.holes import incomplete_ends
from recapture.tools.compare.trials import Trials
from recapture.tools.compare.words import (
    ARCHIVED_TWICE,
    CHANGED_ARCHIVE,
    DEADLINE,
    DIGITS,
    DOWNTIME,
    DUPLICATES,
    ENQUEUED,
    HOLE,
    RESTART,
    UNEXPLAINED,
)
from recapture.tools.diff.document import published_entries
from recapture.tools.diff.tried import Tried
from tests.live_job.case import Arrival, Case, Kind, draw, live_rows
from tests.live_job.faults import (
    FAULTS,
    ArchivedTwice,
    Downtime,
    EnqueuedArrival,
    Fault,
    LastDigits,
    LateBlob,
    MissingPartition,
    OtherDeadline,
    OtherQuery,
    SmallerTolerance,
    WrittenTwice,
    draw_fault,
    inject,
)
from tests.live_job.files import write_archive, write_live, write_pipeline
from tests.live_job.truth import Explanations, in_order
from tests.live_job.windows import Identity
from tests.live_job.world import INTERVAL, RANGE_END, RANGE_START

FAULT_OF = {
    ARCHIVED_TWICE: ArchivedTwice.name,
    CHANGED_ARCHIVE: LateBlob.name,
    DEADLINE: OtherDeadline.name,
    DIGITS: LastDigits.name,
    DOWNTIME: Downtime.name,
    DUPLICATES: WrittenTwice.name,
    ENQUEUED: EnqueuedArrival.name,
    HOLE: MissingPartition.name,
    RESTART: Downtime.name,
    "a late tolerance of": SmallerTolerance.name,
    "the query in": OtherQuery.name,
}
"""Name of the fault that a cause names; some causes begin with these words."""
KINDS: tuple[Kind, ...] = ("tumbling", "hopping", "filtered", "session")
ARRIVALS: tuple[Arrival, ...] = ("BlobLastModified", "EventEnqueuedUtcTime")
IS_DEEP = settings.get_current_profile_name() == "deep"
WORLDS = range(50) if IS_DEEP else (1, 2, 15)
"""Seeds of the worlds in which all faults happen."""
ALONE = range(50) if IS_DEEP else (0, 3)
"""Seeds of the worlds in which each fault happens alone."""
APPROVAL = Approval("Ada", RANGE_END, "the audit says what the faults did")


def publish_case(processes: Workers, home: Path, case: Case) -> Pipeline:
    """Write the archive of a case, and publish its range, whatever is missing from the archive."""
    home.mkdir(exist_ok=True)
    write_archive(home, case.archive)
    pipeline = load(write_pipeline(home, case))
    run = plan_run(pipeline, RANGE_START, RANGE_END)
    with scratch_folder("live-job") as scratch:
        compute(processes, run, scratch)
    computed = read_computed(run.files)
    publish(run, computed, audit(run, computed, NONE_GIVEN, accept_loss=True), APPROVAL)
    return pipeline


def found(
    processes: Workers, home: Path, case: Case, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> dict[Identity, list[str]]:
    """Return the causes of each row that differs, if a person says what is known of the live job of a case.

    The archive of the case is published in the folder.
    """
    shutil.rmtree(home / "live", ignore_errors=True)
    write_live(home / "live", live_rows(case), "json")
    monkeypatch.setattr(documents, "MAX_EXAMPLES", 100_000)
    output = output_of(pipeline, None)
    slices = slices_of(pipeline, RANGE_START, RANGE_END)
    entries = published_entries(pipeline, slices)
    downtimes = [(outage.start, outage.end) for outage in case.live.outages]
    said = given(home, case)
    time = time_column(pipeline, output, None)
    comparison = Comparison(pipeline, output, slices, entries, {}, time, downtimes, said.late_seconds)

    with scratch_folder("live-job") as folder, comparisons("live-job-rows") as connection:

        def computing(_: Pipeline) -> Callable[[PlannedRun], Computed]:
            return partial(compute, processes, scratch=folder)

        trials = Trials(pipeline, output.alias, (slices, entries), said, folder)
        result = compare(connection, comparison, (home / "live").as_uri(), trials, computing, folder)
    place = {name: number for number, name in enumerate(result["example_columns"])}
    causes = {reason["reason"]: reason["causes"] for reason in result["reasons"]}
    reasons: dict[Identity, list[str]] = {}
    for example in result["examples"]:
        end, device = (example["values"][place[name]] for name in ("windowEnd", "deviceId"))
        reasons[datetime.fromisoformat(end), None if device == "null" else device] = causes[example["reason"]]
    assert len(reasons) == result["different"]
    return reasons


def given(home: Path, case: Case) -> Tried:
    """Return what a person would say about the live job."""
    live = case.live
    query = home / "live.asaql"
    query.write_text(live.query.text)
    return Tried(
        query=query if live.query.text != case.query.text else None,
        late_seconds=live.policy.late.seconds if live.policy != case.policy else None,
    )


def found_with(
    processes: Workers, home: Path, case: Case, faults: Sequence[Fault], monkeypatch: pytest.MonkeyPatch
) -> dict[Identity, list[str]]:
    """Publish a case in which these faults happened, and return the causes of each row that differs."""
    changed = inject(case, faults)
    pipeline = publish_case(processes, home, changed)
    now = datetime.now(UTC) + timedelta(seconds=2)
    write_archive(home, [replace(blob, modified=now) for blob in changed.written_later])
    return found(processes, home, changed, pipeline, monkeypatch)


def fault_of(cause: str) -> str:
    """Return the name of the fault that a cause names."""
    return next(name for words, name in FAULT_OF.items() if cause.startswith(words))


def require_true(case: Case, faults: Sequence[Fault], found: dict[Identity, list[str]]) -> None:
    """Fail unless exactly the rows that differ have a reason, and each reason names faults that explain its row.

    No fault that is not needed may be named. Of a hole, and a downtime of which nothing could be computed, one must be
    a part of an explanation. A blob that comes late is a hole until it is computed again.
    """
    explanations = Explanations(case, faults)
    assert sorted(found, key=in_order) == explanations.different()
    for identity, causes in found.items():
        assert UNEXPLAINED not in causes, (identity, explanations.smallest(identity))
        names = frozenset(map(fault_of, causes))
        if explanations.is_smallest(names, identity):
            continue
        by_time = {HOLE, DOWNTIME}.intersection(causes)
        smallest = explanations.smallest(identity, in_time=HOLE in by_time)
        assert by_time, (identity, causes, smallest)
        expected = {*map(fault_of, by_time), *([LateBlob.name] if HOLE in by_time else [])}
        assert any(expected & row_causes for row_causes in smallest), (identity, causes, smallest)


@pytest.mark.parametrize("seed", ALONE)
def test_each_fault_alone_is_the_reason_of_the_rows_that_it_changes_and_without_one_no_row_differs(
    processes: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    case = draw(seed, KINDS[seed % 4], ARRIVALS[seed // 4 % 2])
    pipeline = publish_case(processes, tmp_path / "case", case)
    assert found(processes, tmp_path / "case", case, pipeline, monkeypatch) == {}
    differing = 0
    for name in FAULTS:
        fault = draw_fault(name, case, seed)
        if fault is not None:
            changed = inject(case, [fault])
            if changed.archive == case.archive:
                reasons = found(processes, tmp_path / "case", changed, pipeline, monkeypatch)
            else:
                reasons = found_with(processes, tmp_path / name, case, [fault], monkeypatch)
            require_true(case, [fault], reasons)
            differing += len(reasons)
    assert differing > 0


def test_a_guess_that_explains_rows_by_coincidence_does_not_hide_a_hole(
    processes: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = draw(35, "session")
    fault = draw_fault(MissingPartition.name, case, 35)
    assert fault is not None
    require_true(case, [fault], found_with(processes, tmp_path, case, [fault], monkeypatch))


@pytest.fixture
def case() -> Case:
    """A case whose events arrive when they are enqueued, some of the hour before 11 after 11."""
    return draw(7, "tumbling", "EventEnqueuedUtcTime")


def test_a_blob_that_comes_late_is_the_reason_of_the_rows_that_it_changes(
    processes: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    fault = draw_fault(LateBlob.name, case, 3)
    assert fault is not None
    reasons = found_with(processes, tmp_path, case, [fault], monkeypatch)
    assert {fault_of(cause) for causes in reasons.values() for cause in causes} == {LateBlob.name}


def test_a_hole_is_the_reason_of_rows_of_the_slice_before_it_too_if_they_may_lack_late_events(
    processes: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    eleven = RANGE_START + 12 * INTERVAL
    fault = MissingPartition("0", since=eleven)
    reasons = found_with(processes, tmp_path, case, [fault], monkeypatch)
    assert {fault_of(cause) for causes in reasons.values() for cause in causes} == {MissingPartition.name}
    assert any(end <= eleven for end, _ in reasons)
    pipeline = load(tmp_path / "telemetry.yaml")
    slices = slices_of(pipeline, RANGE_START, RANGE_END)
    first = ticks.from_datetime(eleven - case.policy.late) - MAX_CLOCK_SKEW
    assert {(ends.start, ends.end) for ends in incomplete_ends(pipeline, slices, None)} == {(first, slices[-1].end)}
    assert incomplete_ends(pipeline, slices[:1], None) == [Slice(first, slices[0].end)]
    earliest = ticks.from_datetime(eleven - 2 * case.policy.late) - MAX_CLOCK_SKEW
    assert incomplete_ends(pipeline, slices[:1], 2 * case.policy.late.seconds)[0].start == earliest
    assert incomplete_ends(pipeline, slices[:1], -1) == [slices[0]]


def test_equal_worlds_have_no_difference(processes: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, kind in enumerate(KINDS[1:3]):
        case = draw(number, kind)
        assert found_with(processes, tmp_path / kind, case, [], monkeypatch) == {}


@pytest.mark.parametrize("seed", WORLDS)
def test_all_faults_together_are_named_for_every_row(
    processes: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    case = draw(seed, KINDS[seed % 4], ARRIVALS[seed // 4 % 2])
    without = () if seed % 3 == 0 else (MissingPartition.name,)
    drawn = (draw_fault(name, case, seed) for name in FAULTS if name not in without)
    faults = [fault for fault in drawn if fault is not None]
    require_true(case, faults, found_with(processes, tmp_path, case, faults, monkeypatch))
