"""Livy as a service that computes runs: the batches of a server of your own or of Microsoft Fabric."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import requests
from airflow.providers.apache.livy.hooks.livy import LivyHook
from azure.core.exceptions import AzureError
from requests.auth import AuthBase

from recapture.errors import DefinitionError
from recapture.execute.spark.bundle import PYTHON, archives
from recapture.printable import one_line
from recapture.storage.credentials import identity
from recapture_airflow.remote_run import JobState, LostJobError, ServiceError, service_errors, settings_of

SETTINGS = {
    "file": str,
    "bundle": str,
    "conf": dict,
    **dict.fromkeys(("jars", "py_files", "files", "archives"), list),
    **dict.fromkeys(("driver_memory", "executor_memory", "queue", "proxy_user"), str),
    **dict.fromkeys(("driver_cores", "executor_cores", "num_executors"), int),
    "endpoint_prefix": str,
    "token_scope": str,
}
"""Settings of a job, with their types. Most are those of Livy's batches, as LivyHook names them."""
SUCCESSFUL, FAILED = ("success",), ("error", "dead", "killed")
"""States of batches that have ended."""
OPTIONS = {"check_response": False, "timeout": 60}
"""What a request is made with: this class reads the answer itself, and waits so many seconds for it."""
LINES = 20
"""Number of lines of a log that the message of an error has."""
PAGE = 100
"""Number of batches that are listed in one request."""
_LOG = logging.getLogger(__name__)


class LivyBatches:
    """The batches of a Livy server."""

    def __init__(self, connection: str, job: Mapping[str, Any]) -> None:
        """Raise DefinitionError if the settings of the job are not valid."""
        self.connection = connection
        settings = settings_of(job, SETTINGS, connection, "Livy")
        if "file" not in settings:
            raise DefinitionError(
                f"job for {connection}: give `file`, the address of spark_jobs/backfill.py as the cluster sees it"
            )
        self._prefix, scope = settings.pop("endpoint_prefix", ""), settings.pop("token_scope", None)
        if bundle := settings.pop("bundle", None):
            settings["archives"] = [*settings.get("archives", []), archives(bundle)]
            settings["conf"] = {"spark.pyspark.python": PYTHON, **settings.get("conf", {})}
        self.settings = settings
        signed = None if scope is None else _signed_with(scope)
        self._hook = LivyHook(connection, OPTIONS, auth_type=signed, endpoint_prefix=self._prefix)

    def submit(self, attempt: str, name: str, arguments: list[str]) -> str:
        """Start a batch, or find the one of the same attempt if Livy starts none or its answer is lost.

        Livy takes no token of the attempt, but refuses a second batch with the same name while the first one runs.
        """
        unique = f"{name} {attempt}"
        try:
            with service_errors(self.connection, requests.RequestException, AzureError):
                return str(self._hook.post_batch(**self.settings, name=unique, args=arguments))
        except ServiceError as error:
            with suppress(ServiceError):
                if (job := self._find(unique)) is not None:
                    _LOG.warning("%s", one_line(f"{error}; found batch {job}, which has the name of this one"))
                    return job
            raise

    def state(self, job: str) -> JobState:
        """Return the state of a batch, and the end of its log if it failed."""
        batch = self._answer("GET", job)
        state, page = str(batch.get("state")), str((batch.get("appInfo") or {}).get("sparkUiUrl") or "")
        if state in FAILED:
            return JobState(True, False, "\n".join([state, *(batch.get("log") or [])[-LINES:]]), page)
        return JobState(state in SUCCESSFUL, state in SUCCESSFUL, state, page)

    def cancel(self, job: str) -> None:
        """Delete a batch, which stops it."""
        self._answer("DELETE", job)

    def _find(self, name: str) -> str | None:
        """Return the id of the batch with a name, or None if Livy lists none."""
        start, total = 0, 1
        while start < total:
            page = self._answer("GET", query={"from": start, "size": PAGE})
            batches, total = page.get("sessions") or [], page.get("total", 0)
            for batch in batches:
                if batch.get("name") == name:
                    return str(batch["id"])
            start += max(len(batches), 1)
        return None

    def _answer(self, method: str, job: str = "", query: Mapping[str, int] | None = None) -> dict[str, Any]:
        """Return what Livy answers about a batch, or all. LivyHook takes only numbers as ids, and Fabric has others."""
        with service_errors(self.connection, requests.RequestException, AzureError):
            path = f"/{self._prefix.strip('/')}/batches/{job}".replace("//", "/").rstrip("/")
            response = self._hook.run_method(path, method, query)
            if job and response.status_code == requests.codes.not_found:
                raise LostJobError(f"{self.connection} does not know the batch {job}")
            response.raise_for_status()
            answer: dict[str, Any] = response.json()
            return answer


def _signed_with(scope: str) -> Callable[..., AuthBase]:
    """Return what makes a request carry a token of the process's identity for a scope."""

    class Signed(AuthBase):
        def __init__(self, *unused: object) -> None:
            """Take the login and the password of a connection, which are not sent."""

        def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
            request.headers["Authorization"] = f"Bearer {identity().get_token(scope).token}"
            return request

    return Signed
