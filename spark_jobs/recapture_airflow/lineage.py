"""What operators tell OpenLineage: the datasets that they read and write.

Airflow's provider for OpenLineage calls these methods if it is installed. See "Implementing OpenLineage in Operators"
in its documentation.
"""

from enum import StrEnum
from inspect import signature
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk.bases.decorator import DecoratedOperator, TaskDecorator, task_decorator_factory

from recapture.definition.pipeline import load
from recapture.errors import RecaptureError


class Lineage(StrEnum):
    """What a task does with the datasets of a pipeline."""

    READS_ARCHIVE = "reads archive"
    AUDITS = "audits"
    PUBLISHES = "publishes"
    READS_TABLES = "reads tables"
    CHANGES_TABLES = "changes tables"


class WithLineage:
    """Operator whose OpenLineage events have its datasets, when it has ended with what its run files say of them."""

    lineage: Lineage | None = None

    def get_openlineage_facets_on_start(self) -> Any:
        """Return the datasets of the pipeline file."""
        return self._facets(has_ended=False)

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """Return the datasets with the columns, checks and sizes of the run, also if the task failed."""
        return self._facets(has_ended=True)

    def _facets(self, *, has_ended: bool) -> Any:
        from recapture_airflow.openlineage_facets import facets

        if self.lineage is None:
            return None
        file, run = self._arguments()
        pipeline = load(Path(file))
        if has_ended and run is not None:
            try:
                return facets(self.lineage, pipeline, run)
            except RecaptureError:  # the task failed before it wrote its run file
                pass
        return facets(self.lineage, pipeline, None)

    def _arguments(self) -> tuple[str, str | None]:
        """Return the pipeline file and, if the task is part of a run, the run."""
        return vars(self)["file"], vars(self).get("run")


class StageTask(WithLineage, DecoratedOperator, PythonOperator):
    """Operator of a function that `stage_task` decorates: its arguments are the pipeline file and maybe the run."""

    template_fields = ("op_args", "op_kwargs")
    custom_operator_name = "@task"

    def __init__(
        self, *, python_callable: Any, op_args: Any, op_kwargs: Any, lineage: Lineage | None = None, **kwargs: Any
    ) -> None:
        self.lineage = lineage
        function = {"python_callable": python_callable, "op_args": op_args, "op_kwargs": op_kwargs}
        super().__init__(kwargs_to_upstream=function, **function, **kwargs)

    def _arguments(self) -> tuple[str, str | None]:
        arguments = signature(self.python_callable).bind_partial(*self.op_args, **self.op_kwargs).arguments
        return arguments["file"], arguments.get("run")


def stage_task(lineage: Lineage, **kwargs: Any) -> TaskDecorator:
    """Return `@task` for a function whose OpenLineage events have its datasets. It gives one XCom."""
    return task_decorator_factory(multiple_outputs=False, decorated_operator_class=StageTask, lineage=lineage, **kwargs)
