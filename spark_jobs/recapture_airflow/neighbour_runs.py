"""The DAG runs that compute the slices of several runs of Airflow's backfill."""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Context
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import TriggerDagRun
from airflow.utils.state import DagRunState

from recapture.definition.pipeline import Pipeline
from recapture.time_model import ticks
from recapture_airflow.slice_schedule import TOGETHER

ACTIVE = [DagRunState.QUEUED, DagRunState.RUNNING]
MOST_DATES = 100
"""Number of logical dates in one question to Airflow, because the length of its address is limited."""


def computes_neighbours(run_id: str | None) -> bool:
    """Return whether a DAG run computes the slices of several runs of Airflow's backfill."""
    return run_id is not None and run_id.startswith(f"{TOGETHER}__")


def run_of_neighbours(
    context: Context, pipeline: Pipeline, start: datetime, failed: tuple[int, ...] | None
) -> tuple[str, tuple[int, int]] | None:
    """Return the DAG run that computes a backfill's slice with its neighbours, and their block; start it if needed.

    Return None if the slice is computed alone: if it has no neighbours that are due and have active runs of the same
    backfill, or if a run of the same block, `failed`, has just failed for a reason that is not recorded. Airflow has at
    most one active backfill of a DAG. Bounds are in ticks.
    """
    from recapture.keep.neighbours import together
    from recapture.keep.sources import sources_of

    task_instance: Any = context["ti"]

    def active(starts: Sequence[int]) -> list[int]:
        return _active(task_instance, pipeline.name, starts)

    neighbours = together(sources_of(pipeline), ticks.from_datetime(start), datetime.now(UTC), active)
    if neighbours is None or (block := (neighbours.block.start, neighbours.block.end)) == failed:
        return None
    bounds = {"from": ticks.to_text(neighbours.start), "to": ticks.to_text(neighbours.end)}
    return _started(task_instance, pipeline.name, block, (context["dag_run"].conf or {}) | bounds), block


def _active(task_instance: Any, dag_id: str, starts: Sequence[int]) -> list[int]:
    """Return those of these slices, given in ticks, that have a DAG run which is queued or running."""
    if not starts:
        return []
    if len(starts) <= MOST_DATES:
        dates = list(map(ticks.to_datetime, starts))
        count = task_instance.get_dr_count(dag_id, logical_dates=dates, states=ACTIVE)
        if count in (0, len(starts)):
            return list(starts) if count else []
    middle = len(starts) // 2
    return [start for half in (starts[:middle], starts[middle:]) for start in _active(task_instance, dag_id, half)]


def _started(task_instance: Any, dag_id: str, block: Sequence[int], conf: dict[str, Any]) -> str:
    """Return the id of the active DAG run that computes slices of a block; start one if there is none.

    All runs of the block choose the same id, and Airflow creates a DAG run with it once.
    """
    start, end = map(ticks.to_text, block)
    for number in itertools.count(1):
        run_id = f"{TOGETHER}__{start}__{end}__{number}"
        if task_instance.get_dr_count(dag_id, run_ids=[run_id], states=ACTIVE):
            break
        if not task_instance.get_dr_count(dag_id, run_ids=[run_id]):
            # If another task was faster, the answer is that the run exists.
            task_runner.SUPERVISOR_COMMS.send(TriggerDagRun(dag_id=dag_id, run_id=run_id, conf=conf))
            break
    return run_id
