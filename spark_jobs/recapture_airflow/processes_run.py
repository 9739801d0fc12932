"""The task that computes a planned run in processes of its machine."""

from pathlib import Path
from typing import Any, NoReturn

from airflow.sdk import BaseOperator, Context

from recapture.definition.pipeline import load
from recapture.storage import open_container
from recapture_airflow.final_errors import fail_at_once
from recapture_airflow.lineage import Lineage, WithLineage
from recapture_airflow.remote_run import end_task


class ProcessesRun(WithLineage, BaseOperator):
    """Operator that stages the rows of a planned run without Spark. It needs no Java and no connection."""

    lineage = Lineage.READS_ARCHIVE
    template_fields = ("run",)

    def __init__(self, *, file: str, run: Any, **kwargs: Any) -> None:
        self.file = file
        self.run = run
        super().__init__(**kwargs)

    @fail_at_once()
    def execute(self, context: Context) -> None:
        """Stage the rows. Raise AirflowFailException if a retry would fail in the same way."""
        from recapture.keep.holding import renewing
        from recapture.run.in_processes import compute_in_processes

        pipeline = load(Path(self.file))
        with renewing(open_container(pipeline.outputs[0].table), context["run_id"]):
            compute_in_processes(pipeline, self.run)

    def on_kill(self) -> NoReturn:
        """Stop the computation, which ends its processes and removes its temporary files."""
        end_task()
