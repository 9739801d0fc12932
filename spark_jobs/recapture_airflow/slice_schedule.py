"""When the DAGs of a pipeline run, and which of their tasks come first."""

from datetime import UTC, datetime
from typing import Any

from airflow.task.priority_strategy import PriorityWeightStrategy
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable
from airflow.timetables.trigger import CronTriggerTimetable

OLDEST = datetime(2000, 1, 1, tzinfo=UTC)
"""Start date of the DAGs. Airflow runs no task of an earlier interval, not even in a backfill."""
SCHEDULED, CONTINUED, BACKFILL, TOGETHER = "scheduled", "continued", "backfill", "together"
"""First part of the ids of DAG runs: of the schedule, of updates that go on, of Airflow's backfills, and of runs that
compute the slices of several runs of a backfill."""


class SliceTimetable(CronDataIntervalTimetable):
    """Timetable that gives Airflow's backfills a DAG run for every slice, and creates no run on its own."""

    def __init__(self, hours: int) -> None:
        super().__init__("@hourly" if hours == 1 else f"0 */{hours} * * *" if hours < 24 else "@daily", "UTC")
        self._hours = hours

    @property
    def summary(self) -> str:
        """Text of the interface, which would otherwise show a schedule."""
        return "backfills and runs by hand"

    def serialize(self) -> dict[str, Any]:
        """Return the arguments of the timetable as JSON."""
        return {"hours": self._hours}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> "SliceTimetable":
        """Return the timetable with these arguments."""
        return cls(data["hours"])

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """Return the next interval of a backfill, for which `restriction.catchup` is True; None for the scheduler."""
        if not restriction.catchup:
            return None
        return super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=restriction
        )


def every(minutes: int) -> CronTriggerTimetable:
    """Return the timetable of updates; `minutes` divides an hour."""
    return CronTriggerTimetable("0 * * * *" if minutes == 60 else f"*/{minutes} * * * *", timezone="UTC")


class NewestFirst(PriorityWeightStrategy):
    """Priority of a task in a pool: updates first, the newest slice before older ones; Airflow's backfills come last.

    Airflow itself would give the slot of a pool to the run with the oldest logical date.
    """

    def __repr__(self) -> str:
        """Return the same string in every process: Airflow stores it, and makes a new version of a DAG that differs."""
        return "NewestFirst()"

    def get_weight(self, ti: Any) -> int:
        """Return the weight of a task. Its run is known by its id alone, which has the kind of the run and a time."""
        kind, _, rest = str(ti.run_id).partition("__")
        if kind in (SCHEDULED, CONTINUED):
            return 1_000_000 + int(datetime.fromisoformat(rest.partition("__")[0]).timestamp()) // 3600
        return 1 if kind in (BACKFILL, TOGETHER) else 2
