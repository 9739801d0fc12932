"""A backfill by hand keeps updates from computing its range; other backfills do not wait for it."""

from pathlib import Path

import pytest

from recapture.errors import RunError
from recapture.keep.claims import LEASE, claim, hold, is_claimed, release, renew
from recapture.keep.due import DueRange, DueSlice
from recapture.keep.holding import holding, renewing
from recapture.run_files.work import WORK, Work
from recapture.storage import Container, open_container
from recapture.time_model import ticks

HOUR = ticks.from_seconds(3600)
NOW = 100 * HOUR


@pytest.fixture
def run_files(tmp_path: Path) -> Container:
    return open_container(tmp_path.as_uri())


def is_free(work: Work, start: int, now: int) -> bool:
    """Return whether an update may compute the slice from `start`."""
    range_ = DueRange((DueSlice(start, ("missing",), 0),), HOUR)
    return is_claimed(claim(work, "update", range_, now), "update", range_)


def test_an_update_leaves_the_range_of_a_backfill_alone_until_the_backfill_has_ended() -> None:
    work = hold(Work(), "backfill", 2 * HOUR, 4 * HOUR, NOW)
    assert [is_free(work, hour * HOUR, NOW) for hour in range(1, 5)] == [True, False, False, True]
    assert is_free(release(work, "backfill"), 2 * HOUR, NOW)


def test_the_range_of_a_killed_backfill_is_free_after_the_lease_that_it_renewed_last() -> None:
    work = renew(hold(Work(), "backfill", 2 * HOUR, 4 * HOUR, NOW), "backfill", NOW + LEASE - 1)
    assert not is_free(work, 2 * HOUR, NOW + LEASE)
    assert is_free(work, 2 * HOUR, NOW + 2 * LEASE - 1)


def test_backfills_of_overlapping_ranges_do_not_wait_for_each_other(run_files: Container) -> None:
    with holding(run_files, 0, 2 * HOUR), holding(run_files, HOUR, 3 * HOUR):
        assert [(lease.start, lease.end) for lease in WORK.read(run_files).leases] == [(0, 2 * HOUR), (HOUR, 3 * HOUR)]
    assert WORK.read(run_files).leases == ()


def test_a_range_is_free_after_a_backfill_that_failed(run_files: Container) -> None:
    with pytest.raises(RunError), holding(run_files, 0, HOUR):
        raise RunError("a blob is damaged")
    assert WORK.read(run_files).leases == ()


def test_a_lease_is_renewed_as_soon_as_the_range_is_computed(run_files: Container) -> None:
    """It may have waited for a slot for longer than the lease."""
    WORK.change(run_files, lambda work: hold(work, "backfill", 0, HOUR, NOW))
    with renewing(run_files, "backfill", lambda: NOW + 2 * LEASE):
        pass
    assert not is_free(WORK.read(run_files), 0, NOW + 2 * LEASE)
