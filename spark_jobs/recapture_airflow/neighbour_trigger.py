"""How a run of Airflow's backfill waits for the DAG run that computes its slice together with its neighbours."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.triggers.base import BaseTrigger, TriggerEvent
from airflow.utils.state import DagRunState
from asgiref.sync import sync_to_async

ENDED = (DagRunState.SUCCESS, DagRunState.FAILED)
DELETED = "deleted"
"""State of a DAG run that does not exist any more."""


class DagRunEnded(BaseTrigger):
    """Trigger that waits until a DAG run has ended or was deleted. Its event has the `run_id` and the `state`.

    DagStateTrigger, which Airflow has, waits for ever if the DAG run is deleted.
    """

    def __init__(self, dag_id: str, run_id: str, poll_seconds: float) -> None:
        super().__init__()
        self.dag_id, self.run_id, self.poll_seconds = dag_id, run_id, poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and the arguments, from which a triggerer makes the trigger again."""
        arguments = {"dag_id": self.dag_id, "run_id": self.run_id, "poll_seconds": self.poll_seconds}
        return f"{__name__}.{type(self).__name__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event."""
        while (state := await sync_to_async(self._ended)()) is None:
            await asyncio.sleep(self.poll_seconds)
        yield TriggerEvent({"run_id": self.run_id, "state": state})

    def _ended(self) -> str | None:
        """Return the last state of the DAG run; None if it is queued or running."""
        for state in ENDED:
            if self._exists([state]):
                return state.value
        return None if self._exists(None) else DELETED

    def _exists(self, states: list[str] | None) -> bool:
        return bool(RuntimeTaskInstance.get_dr_count(self.dag_id, run_ids=[self.run_id], states=states))
