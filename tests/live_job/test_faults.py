"""What each fault does to the rows, and what the truth says of several at once."""

import math
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import get_args

import pytest

from tests.live_job.case import Arrival, Case, Kind, archived_rows, draw, in_range, live_rows
from tests.live_job.faults import (
    FAULTS,
    ArchivedTwice,
    Downtime,
    Fault,
    LastDigits,
    LateBlob,
    MissingPartition,
    RowOrder,
    SmallerTolerance,
    WrittenTwice,
    draw_fault,
    draw_faults,
    inject,
)
from tests.live_job.truth import differences, sides
from tests.live_job.world import INTERVAL, MINUTE, RANGE_END, RANGE_START

KINDS: tuple[Kind, ...] = get_args(Kind)
ARRIVALS: tuple[Arrival, ...] = get_args(Arrival)
CASES = [draw(seed, kind, arrival) for seed, kind in enumerate(KINDS * 2) for arrival in ARRIVALS]
OUTAGE = RANGE_START + 33 * MINUTE
"""When the job stops in these tests."""


@pytest.fixture(params=KINDS[:2])
def case(request: pytest.FixtureRequest) -> Case:
    """A case with several partitions and rows in all its windows."""
    return draw(7, request.param)


def test_without_faults_both_sides_have_the_same_rows_in_the_same_order() -> None:
    for case in CASES:
        assert in_range(live_rows(case)) == in_range(archived_rows(case)) != []


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_alone_is_the_only_reason_of_all_differences(name: str) -> None:
    reasons = Counter(
        difference.reasons
        for seed, case in enumerate(CASES)
        if (fault := draw_fault(name, case, seed)) is not None
        for difference in differences(case, [fault])
    )
    assert list(reasons) == ([] if name == RowOrder.name else [(frozenset([name]),)])


def test_a_job_that_starts_now_lacks_the_windows_that_ended_while_it_was_down(case: Case) -> None:
    fault = Downtime(OUTAGE, "now")
    lost = [row for difference in differences(case, [fault]) for row in difference.archived]
    emitted_before = max(row.end for row in live_rows(inject(case, [fault])) if row.end < fault.end)
    assert lost == [row for row in in_range(archived_rows(case)) if emitted_before < row.end < fault.end] != []


def test_a_job_without_history_cuts_the_windows_of_its_start(case: Case) -> None:
    fault = Downtime(OUTAGE, "now, without history")
    cut = [difference for difference in differences(case, [fault]) if difference.live]
    assert cut
    assert all(difference.live[0].events < difference.archived[0].events for difference in cut)


def test_a_job_that_continues_after_its_last_output_lacks_nothing(case: Case) -> None:
    assert differences(case, [Downtime(OUTAGE, "last output")]) == []


def test_an_event_that_arrives_again_within_an_hour_changes_no_row(case: Case) -> None:
    opened = RANGE_START - 15 * INTERVAL
    assert differences(case, [ArchivedTwice("0", opened, intervals_later=0)]) == []


def test_an_event_that_arrives_again_after_an_hour_is_a_late_event(case: Case) -> None:
    adjusting = replace(case, policy=replace(case.policy, adjusts=True))
    adjusting = replace(adjusting, live=replace(adjusting.live, policy=adjusting.policy))
    faults = [ArchivedTwice("0", RANGE_START - number * INTERVAL, intervals_later=15) for number in range(4, 10)]
    found = [difference for fault in faults for difference in differences(adjusting, [fault])]
    assert found
    assert sum(row.events for difference in found for row in difference.archived) > sum(
        row.events for difference in found for row in difference.live
    )


def test_rows_that_are_written_twice_are_the_same_twice(case: Case) -> None:
    found = differences(case, [WrittenTwice(RANGE_START, RANGE_END)])
    assert len(found) == len(in_range(live_rows(case)))
    assert all(difference.live == difference.archived * 2 for difference in found)


def test_last_digits_differ_by_less_than_anybody_prints() -> None:
    for case in CASES:
        for difference in differences(case, [LastDigits()]):
            (live,), (archived,) = difference.live, difference.archived
            assert live.average is not None
            assert archived.average is not None
            assert live.average != archived.average
            assert math.isclose(live.average, archived.average, rel_tol=1e-15)
            assert replace(live, average=archived.average) == archived


def test_rows_in_another_order_are_the_same_rows(case: Case) -> None:
    written, shuffled = live_rows(case), live_rows(inject(case, [RowOrder(1)]))
    assert written != shuffled
    assert Counter(written) == Counter(shuffled)


def test_a_late_blob_comes_after_the_backfill_and_is_whole(case: Case) -> None:
    modified = RANGE_END + timedelta(hours=2)
    changed = inject(case, [LateBlob("0", RANGE_START, modified)])
    (lost,) = {*case.archive} - {*changed.archive}
    assert changed.written_later == (replace(lost, modified=modified),)


def test_a_window_that_was_lost_in_an_outage_does_not_differ_because_of_a_tolerance(case: Case) -> None:
    faults: list[Fault] = [Downtime(OUTAGE, "now"), SmallerTolerance(case.policy.late // 10)]
    found = differences(case, faults)
    lost = [difference for difference in found if not difference.live]
    assert {difference.reasons for difference in lost} == {(frozenset(["downtime"]),)}
    assert (frozenset(["smaller tolerance"]),) in {difference.reasons for difference in found}


def test_a_row_that_two_faults_changed_has_both_as_its_reason(case: Case) -> None:
    faults: list[Fault] = [WrittenTwice(RANGE_START, RANGE_END), MissingPartition("0", RANGE_START + 10 * MINUTE)]
    reasons = {difference.reasons for difference in differences(case, faults)}
    assert (frozenset(["written twice", "missing partition"]),) in reasons


@pytest.mark.parametrize("seed", range(10))
def test_several_faults_explain_every_difference(seed: int) -> None:
    case = CASES[seed]
    faults = draw_faults(case, seed, count=4)
    found = differences(case, faults)
    assert all(difference.reasons for difference in found)
    unequal = [identity for identity, (live, archived) in sides(inject(case, faults)).items() if live != archived]
    assert Counter(difference.identity for difference in found) == Counter(unequal)
