"""When the DAGs of a pipeline run, and which tasks get the slot of a pool first."""

from datetime import datetime, timedelta
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.recapture_airflow.conftest import LoadPlugin
from tests.worlds import HOUR, TEN


@pytest.fixture(scope="module")
def plugin(load_plugin: LoadPlugin) -> ModuleType:
    return load_plugin("slice_schedule")


def starts(timetable: Any, first: datetime, last: datetime, *, catchup: bool) -> list[datetime]:
    """Return the starts of the runs that Airflow creates; it asks with `catchup` for a backfill."""
    from airflow.timetables.base import TimeRestriction
    from pendulum import instance

    restriction, interval, found = TimeRestriction(instance(first), instance(last), catchup), None, []
    while run := timetable.next_dagrun_info(last_automated_data_interval=interval, restriction=restriction):
        interval = run.data_interval
        found.append(interval.start)
    return found


@pytest.mark.parametrize("hours", [1, 6, 24])
def test_a_backfill_has_a_run_for_every_slice_and_the_scheduler_has_none(plugin: ModuleType, hours: int) -> None:
    timetable = plugin.SliceTimetable.deserialize(plugin.SliceTimetable(hours).serialize())
    midnight, length = TEN.replace(hour=0), timedelta(hours=hours)
    last = midnight + 2 * length
    assert starts(timetable, midnight, last, catchup=True) == [midnight, midnight + length, last]
    assert starts(timetable, midnight, last, catchup=False) == []


@pytest.mark.parametrize(("minutes", "cron"), [(10, "*/10 * * * *"), (60, "0 * * * *")])
def test_updates_begin_at_round_minutes(plugin: ModuleType, minutes: int, cron: str) -> None:
    from airflow.timetables.base import DataInterval, TimeRestriction
    from pendulum import instance

    timetable, ten = plugin.every(minutes), instance(TEN)
    last, restriction = DataInterval.exact(ten), TimeRestriction(ten, None, catchup=True)
    run = timetable.next_dagrun_info(last_automated_data_interval=last, restriction=restriction)
    assert (timetable.serialize()["expression"], run.run_after) == (cron, TEN + timedelta(minutes=minutes))


def test_the_slot_of_a_pool_goes_to_updates_of_the_newest_slices_and_last_to_backfills(plugin: ModuleType) -> None:
    later = (TEN + HOUR).isoformat()
    runs = [
        f"scheduled__{later}",
        f"scheduled__{TEN.isoformat()}",
        "continued__2024-03-01T08:00:00Z__20240301T110000.000000",
        "continued__2024-02-01T08:00:00Z__20240301T120000.000000",
        f"manual__{later}",
        f"backfill__{later}",
    ]
    weights = [plugin.NewestFirst().get_weight(SimpleNamespace(run_id=run)) for run in runs]
    assert weights == sorted(weights, reverse=True)
    assert len(set(weights)) == len(weights)
