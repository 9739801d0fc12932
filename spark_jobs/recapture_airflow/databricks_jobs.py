"""Databricks as a service that computes runs: one-time runs of its Jobs API."""

from collections.abc import Mapping
from typing import Any

import requests
from airflow.providers.common.compat.sdk import AirflowException
from airflow.providers.databricks.exceptions import DatabricksApiError
from airflow.providers.databricks.hooks.databricks import DatabricksHook, RunState

from recapture.errors import DefinitionError
from recapture_airflow.remote_run import JobState, LostJobError, service_errors, settings_of

SETTINGS = {
    "new_cluster": dict,
    "existing_cluster_id": str,
    "libraries": list,
    "python_file": str,
    "timeout_seconds": int,
    "access_control_list": list,
}
"""Settings of a job, with their types. All but `python_file` are those of the Jobs API."""
OF_RUN: tuple[str, ...] = ("timeout_seconds", "access_control_list")
"""Settings of the run; the others are those of its task."""
TASK = PACKAGE = "recapture"
ENTRY_POINT = "recapture_run"
"""Entry point of the wheel; see `setup.cfg`."""


class DatabricksJobs:
    """The one-time runs of a Databricks workspace."""

    def __init__(self, connection: str, job: Mapping[str, Any]) -> None:
        """Raise DefinitionError if the settings of the job are not valid."""
        self.connection = connection
        self.settings = settings_of(job, SETTINGS, connection, "Databricks")
        if ("new_cluster" in job) == ("existing_cluster_id" in job):
            raise DefinitionError(f"job for {connection}: give new_cluster or existing_cluster_id, and not both")
        self._hook = DatabricksHook(connection, caller=type(self).__name__)

    def submit(self, attempt: str, name: str, arguments: list[str]) -> str:
        """Start a one-time run. The attempt is its idempotency token."""
        settings = dict(self.settings)
        run_settings = {key: settings.pop(key) for key in OF_RUN if key in settings}
        file = settings.pop("python_file", None)
        task: dict[str, Any] = {"task_key": TASK, **settings}
        if file is None:
            wheel = {"package_name": PACKAGE, "entry_point": ENTRY_POINT, "parameters": arguments}
            task["python_wheel_task"] = wheel
        else:
            task["spark_python_task"] = {"python_file": file, "parameters": arguments}
        body = {"run_name": name, "idempotency_token": attempt, "tasks": [task], **run_settings}
        with service_errors(self.connection, requests.RequestException):
            try:
                return str(self._hook.submit_run(body))
            except DatabricksApiError as error:
                if error.http_status_code != requests.codes.bad_request:
                    raise
                raise DefinitionError(f"{self.connection} refuses the job: {error}; correct `job`") from error

    def state(self, job: str) -> JobState:
        """Return the state of a one-time run, and the error of its task if it failed."""
        with service_errors(self.connection, requests.RequestException):
            try:
                run = self._hook.get_run(int(job))
            except DatabricksApiError as error:
                if error.http_status_code not in (requests.codes.not_found, requests.codes.bad_request):
                    raise
                raise LostJobError(f"{self.connection}: {error}") from error
            state, page = RunState(**run["state"]), run.get("run_page_url", "")
            text = " ".join(filter(None, [state.life_cycle_state, state.result_state, state.state_message]))
            if not state.is_terminal or state.is_successful:
                return JobState(state.is_terminal, state.is_terminal and state.is_successful, text, page)
            errors = [self._error_of(task["run_id"]) for task in run.get("tasks", [])]
            return JobState(True, False, "; ".join(filter(None, [text, *errors])), page)

    def _error_of(self, task: int) -> str | None:
        """Return the error of a task; None if it has none, for example because its cluster did not start."""
        try:
            error: str | None = self._hook.get_run_output(task).get("error")
        except AirflowException:
            return None
        return error

    def cancel(self, job: str) -> None:
        """Cancel a one-time run."""
        with service_errors(self.connection, requests.RequestException):
            self._hook.cancel_run(int(job))
