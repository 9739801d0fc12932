"""When a pipeline's slices are computed: every slice once, and the newest first."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow._shared.timezones.timezone import coerce_datetime
from airflow.plugins_manager import AirflowPlugin
from airflow.task.priority_strategy import PriorityWeightStrategy
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from recapture.definition.pipeline import Pipeline

SCHEDULED = "scheduled__"
"""Prefix of the ids of runs that the schedule created. A backfill may change the type of a run, but never its id."""
BACKFILL = "backfill__"
OLDEST = datetime(2000, 1, 1, tzinfo=UTC)
"""Start date of the DAGs. Airflow runs no task of an earlier interval, not even in a backfill."""
WORKING_RUNS = 2
"""Number of scheduled runs that may be active in addition to those that only wait."""


class SliceTimetable(CronDataIntervalTimetable):
    """Timetable that gives every slice from the first on a DAG run, also after a pause or an outage.

    The first slice is the one that begins at `start`, or else the newest that has ended when the schedule creates its
    first run. The newest slice without a run is always the next. Backfills neither move the first slice nor hide an
    earlier one.
    """

    def __init__(self, hours: int, start: datetime | None = None) -> None:
        super().__init__("@hourly" if hours == 1 else f"0 */{hours} * * *" if hours < 24 else "@daily", "UTC")
        self._hours, self._start = hours, start

    def serialize(self) -> dict[str, Any]:
        """Return the arguments of the timetable as JSON."""
        return {"hours": self._hours, "start": None if self._start is None else self._start.isoformat()}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> "SliceTimetable":
        """Return the timetable with these arguments."""
        return cls(data["hours"], None if data["start"] is None else datetime.fromisoformat(data["start"]))

    def run_info_from_dag_run(self, *, dag_run: Any) -> DagRunInfo:
        """Return the interval before the next one. Airflow calls this to find the interval after a run."""
        from sqlalchemy.orm import object_session

        session = object_session(dag_run)
        assert session is not None, "Airflow reads the run in a session"
        following = self._next_start(session, dag_run)
        return DagRunInfo.interval(self._get_prev(following), following)

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """Return the interval after the last one; without a last one, the newest that has ended.

        `restriction.catchup` is True for a backfill, which lists the intervals from `restriction.earliest` on.
        """
        if not restriction.catchup:
            if last_automated_data_interval is not None:
                restriction = restriction._replace(catchup=True)
            elif self._start is not None:
                restriction = restriction._replace(earliest=coerce_datetime(self._start))
        return super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=restriction
        )

    def _next_start(self, session: "Session", dag_run: Any) -> Any:
        """Return the start of the newest slice without a run, or of the next one that ends."""
        newest = self._skip_to_latest(None)
        first = first_slice(session, dag_run.dag_id, self._start) or newest
        taken = slices_with_runs(session, dag_run.dag_id, first) | {dag_run.logical_date}
        length = timedelta(hours=self._hours)
        start = newest
        while start >= first and start in taken:
            start -= length
        if start < first:
            start = max(newest + length, coerce_datetime(first))
            while start in taken:
                start += length
        return start


def first_slice(session: "Session", dag_id: str, start: datetime | None) -> datetime | None:
    """Return the start of the first slice that the schedule computes; None if it has not created a run yet."""
    from airflow.models.dagrun import DagRun
    from sqlalchemy import func, select

    if start is not None:
        return start
    scheduled = DagRun.dag_id == dag_id, DagRun.run_id.startswith(SCHEDULED, autoescape=True)
    first: datetime | None = session.scalar(select(func.min(DagRun.logical_date)).where(*scheduled))
    return first


def slices_with_runs(session: "Session", dag_id: str, first: datetime) -> set[datetime]:
    """Return the logical dates of a DAG's runs from `first` on. Airflow allows one run of each logical date."""
    from airflow.models.dagrun import DagRun
    from sqlalchemy import select

    return set(
        session.scalars(select(DagRun.logical_date).where(DagRun.dag_id == dag_id, DagRun.logical_date >= first))
    )


class NewestFirst(PriorityWeightStrategy):
    """Priority of a task: the schedule first, the newest slice before older ones; then runs that a person starts.

    Airflow's backfills come last. Airflow itself would give the slot of a pool to the oldest slice.
    """

    def get_weight(self, ti: Any) -> int:
        """Return the weight of a task. Its run is known by its id alone, which has the type and the time."""
        run = str(ti.run_id)
        if run.startswith(SCHEDULED):
            return 1_000_000 + int(datetime.fromisoformat(run.removeprefix(SCHEDULED)).timestamp()) // 3600
        return 1 if run.startswith(BACKFILL) else 2


class SchedulePlugin(AirflowPlugin):
    """Registers the timetable and the priority with Airflow."""

    name = "recapture_schedule"
    timetables = [SliceTimetable]  # noqa: RUF012
    priority_weight_strategies = [NewestFirst]  # noqa: RUF012


def most_active_runs(pipeline: "Pipeline") -> int:
    """Return how many runs may be active: WORKING_RUNS, and those that wait for Capture or for a person."""
    from recapture.definition.digest import run_definition

    waits = [run_definition(pipeline).longest_wait]
    if pipeline.approval is not None:
        waits.append(timedelta(hours=pipeline.approval.wait_hours))
    return WORKING_RUNS + sum(-(-wait // timedelta(hours=pipeline.slice_hours)) for wait in waits)
