"""The tasks that only updates have: they find what is due, go on with what is left, and ask a person."""

import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Context, task
from airflow.sdk.exceptions import AirflowSkipException

from backfill_tasks import ASKS
from dag_forms import RUN
from recapture.definition.pipeline import load
from recapture.errors import RunError
from recapture.printable import one_line
from recapture.run.stages import Stage
from run_range import DUE
from slice_schedule import CONTINUED

TRIED = "tried"
"""Key of the slices that the updates before one tried, in the configuration of its DAG run."""
NEXT = "next"
_LOG = logging.getLogger(__name__)


@task(task_id=DUE)
def due(file: str, *, dag_run: Any = None) -> dict[str, Any]:
    """Finish what was interrupted, and return the newest range that is due, as `from` and `to`.

    `next` is the start of the newest slice that the next update may compute at once; None if there is none. `tried` has
    the slices that it leaves out if they are still due: see `keep.newest`. Raise AirflowSkipException if nothing is
    due. Raise RunError if the state cannot be read, or if nothing is due and something that was interrupted could not
    be finished.
    """
    from recapture.keep.newest import newest_range
    from recapture.keep.state import read_state, sources_of
    from recapture.keep.summary import tick_summary
    from recapture.run.tables import tables_of
    from recapture.table.publish import bring_in_line
    from recapture.time_model import ticks

    pipeline = load(Path(file))
    sources = sources_of(pipeline)
    reading = read_state(pipeline, sources, datetime.now(UTC))
    tried: dict[str, str | None] = (dag_run.conf or {}).get(TRIED, {})
    newest = newest_range(
        reading.state, {ticks.from_datetime(ticks.parse_utc(start)): stopped for start, stopped in tried.items()}
    )
    _log(tick_summary(pipeline.name, reading.state, newest.tick))
    reading.record(sources.run_files)
    unfinished = None
    if newest.tick.unfinished:
        try:
            bring_in_line(tables_of(pipeline), list(map(ticks.to_text, newest.tick.unfinished)))
        except RunError as error:  # the next update tries again, and one that has nothing else to do fails by it
            _LOG.error("a change that was interrupted could not be finished: %s", one_line(str(error)))
            unfinished = error
    if newest.range is None:
        if unfinished is not None:
            raise unfinished
        raise AirflowSkipException("nothing is due")
    return {
        "from": ticks.to_text(newest.range.start),
        "to": ticks.to_text(newest.range.end),
        NEXT: None if newest.next is None else ticks.to_text(newest.next),
        TRIED: {ticks.to_text(start): stopped for start, stopped in sorted(newest.tried.items())},
    }


def _log(summary: dict[str, Any]) -> None:
    """Log what is due and why, what is left and what waits."""
    for slice_ in summary["due"]:
        _LOG.info("due: %s: %s", slice_["slice_start"], one_line("; ".join(slice_["reasons"])))
    for what in ("left", "waiting"):
        for range_ in summary[what]:
            said = [*range_["reasons"], *(f"waits for {reason}" for reason in range_["waits_for"])]
            _LOG.info("%s: %s to %s: %s", what, range_["from"], range_["to"], one_line("; ".join(said)))


class NextUpdate(TriggerDagRunOperator):
    """Operator that lets the next update begin as soon as this one has ended, if it may have something to do.

    It runs before the slices are computed, so that it does not matter how this update ends.
    """

    template_fields = ("due",)

    def __init__(self, *, due: Any, **kwargs: Any) -> None:
        self.due = due
        super().__init__(logical_date=None, openlineage_inject_parent_info=False, **kwargs)

    def execute(self, context: Context) -> None:
        """Create the DAG run. Raise AirflowSkipException if nothing is left, or if a run is queued already."""
        if self.due[NEXT] is None:
            raise AirflowSkipException("nothing is left")
        task_instance = context["ti"]
        if task_instance.get_dr_count(self.trigger_dag_id, states=["queued"]):
            raise AirflowSkipException("an update is queued already")
        self.trigger_run_id = f"{CONTINUED}__{self.due[NEXT]}__{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"
        self.conf = {TRIED: self.due[TRIED]}
        super().execute(context)


class AskPerson(TriggerDagRunOperator):
    """Operator that starts the DAG which asks a person about a run that its audit stopped.

    The question has its own DAG run, so that the next updates do not wait for the answer.
    """

    template_fields = ("run",)

    def __init__(self, *, run: Any, **kwargs: Any) -> None:
        self.run = run
        super().__init__(
            logical_date=None, openlineage_inject_parent_info=False, skip_when_already_exists=True, **kwargs
        )

    def execute(self, context: Context) -> None:
        """Create the DAG run. Raise AirflowSkipException if there is nothing to ask."""
        if not context["ti"].xcom_pull(task_ids=Stage.AUDIT, key=ASKS):
            raise AirflowSkipException("the audit did not stop a run of a single slice")
        self.trigger_run_id = f"asked__{context['run_id']}"
        self.conf = {RUN: self.run}
        super().execute(context)
