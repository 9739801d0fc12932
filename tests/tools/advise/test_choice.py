"""The settings to compare, to show and to prefer (`tools.advise.tolerances`, `tools.advise.choice`)."""

import numpy as np
import pytest

from recapture.definition.sections import Job
from recapture.time_model.verdicts import Verdict
from recapture.tools.advise.choice import shown, smallest
from recapture.tools.advise.counting import ToleranceCounts
from recapture.tools.advise.input_advice import percent
from recapture.tools.advise.tolerances import Setting, Tolerances, tolerances

COMPARED = Tolerances((0, 60, 300, None), (0, 10, 599))


def counts(on_time: list[list[int]], events: int, late: list[int], early: int = 0) -> ToleranceCounts:
    """Return counts with these events on time; the others are late, or out of order if they are not late."""
    verdicts = np.zeros((len(COMPARED.late), len(COMPARED.out_of_order), len(Verdict)), np.int64)
    verdicts[:, :, Verdict.ON_TIME] = on_time
    verdicts[:, :, Verdict.EARLY_DROPPED] = early
    verdicts[:, :, Verdict.MALFORMED] = 3
    out_of_order = events - np.array(on_time) - np.array(late)[:, np.newaxis]
    verdicts[:, :, Verdict.LATE_ADJUSTED] = np.array(late)[:, np.newaxis]
    verdicts[:, :, Verdict.OUT_OF_ORDER_ADJUSTED] = out_of_order
    return ToleranceCounts(verdicts, np.array(late), out_of_order, early)


SOME = counts([[0, 0, 0], [500, 900, 990], [900, 995, 1000], [900, 995, 1000]], 1000, [1000, 5, 0, 0], early=7)


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.5, Setting(60, 0)), (0.99, Setting(60, 599)), (0.995, Setting(300, 10)), (1.0, Setting(300, 599))],
)
def test_the_smallest_late_tolerance_comes_first_then_the_smallest_out_of_order_tolerance(
    share: float, expected: Setting
) -> None:
    assert smallest(SOME, COMPARED, share) == expected


def test_events_that_no_tolerance_keeps_do_not_count() -> None:
    assert SOME.tolerable == 1000, "neither those that are too early nor malformed ones"


def test_there_may_be_no_setting_that_keeps_enough() -> None:
    few = counts([[0, 0, 0], [0, 0, 0], [10, 20, 30], [10, 20, 989]], 1000, [1000, 900, 0, 0])
    assert smallest(few, COMPARED, 0.99) is None
    assert smallest(few, COMPARED, 0.9) == Setting(None, 599)


def test_a_thousandth_of_a_thousand_events_may_be_lost_and_not_one_more() -> None:
    assert smallest(counts([[999] * 3] * 4, 1000, [0] * 4), COMPARED, 0.999) == Setting(0, 0)
    assert smallest(counts([[998] * 3] * 4, 1000, [0] * 4), COMPARED, 0.999) is None


def test_quantiles_the_best_settings_and_the_job_s_own_are_shown() -> None:
    """Half of the events, and nine tenths, are in order whatever the tolerance."""
    assert shown(SOME, COMPARED, Setting(300, 10)) == Tolerances((60, 300), (0, 10, 599))
    all_on_time = counts([[10] * 3] * 4, 10, [0] * 4)
    assert shown(all_on_time, COMPARED, Setting(300, 10)) == Tolerances((0, 300), (0, 10))


def job(late: int) -> Job:
    return Job.model_validate({"query": "", "eventsLateArrivalMaxDelayInSeconds": late})


def test_no_tolerance_is_compared_that_is_longer_than_the_range_unless_it_is_the_job_s() -> None:
    late = tolerances(job(77), 3600).late
    assert (late[-1], 77 in late, 7200 in late) == (3600, True, False)
    assert tolerances(job(9000), 3600).late[-2:] == (7200, 9000)


def test_no_limit_is_compared_if_it_is_the_job_s() -> None:
    assert tolerances(job(-1), 3600).late[-2:] == (3600, None)


@pytest.mark.parametrize(
    ("share", "expected"),
    [(1.0, "100%"), (0.99999, "99.99%"), (0.5, "50.00%"), (0.0, "0.00%"), (None, "–")],  # noqa: RUF001
)
def test_only_all_is_100_percent(share: float | None, expected: str) -> None:
    assert percent(share) == expected
