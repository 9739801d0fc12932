"""A planned run that a service computes as a job. The run files hand it over, so that a retry finds the job again."""

import logging
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol
from uuid import uuid4

from airflow.providers.common.compat.sdk import AirflowException

from recapture.definition.packed import pack
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, PermanentError, RunError
from recapture.printable import one_line
from recapture.run_files.computed import METRICS
from recapture.run_files.files import RunFiles
from recapture.run_files.handed_over import FAILURE, HANDED_OVER, HandedOver

POLL_SECONDS = 15.0
"""Seconds between two questions about the state of a job."""
MOST_UNANSWERED = 20
"""Number of questions in a row without an answer after which the task fails. The job goes on."""
_SECRET = r"client.?secret|password|account.?key(?!provider)|storage.?key|sas.?(?:key|token|fixed)|connection.?string"
SECRET_NAME = re.compile(_SECRET, re.IGNORECASE)
"""What the names of settings and variables contain whose values are secrets."""
SECRET_TEXT = re.compile(rf"(?:{_SECRET})[^\s=]*=|[?&]sig=", re.IGNORECASE)
"""What texts contain that give a secret, such as connection strings, Java options and signed addresses."""
REFERENCE = re.compile(r"\{\{secrets/[^/{}]+/[^/{}]+\}\}")
"""Value that stands for a secret of Databricks."""
REFERENCE_NAME = re.compile(r"\.spark\.kubernetes\.(?:driver|executor)\.secretKeyRef\.")
"""What the names of settings contain whose values stand for a secret of Kubernetes."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobState:
    """What a service says of a job."""

    has_ended: bool
    is_successful: bool
    text: str
    """State in the words of the service, and why."""
    page: str
    """Address where the job and its log are shown; empty if the service does not say it."""


class Service(Protocol):
    """A service that runs jobs, such as Databricks. Its methods raise ServiceError."""

    def submit(self, attempt: str, name: str, arguments: list[str]) -> str:
        """Start the application with arguments, and return the id of the job: the same one for the same attempt."""

    def state(self, job: str) -> JobState:
        """Return the state of a job. Raise LostJobError if the service does not know it."""

    def cancel(self, job: str) -> None:
        """Stop a job."""


class ServiceError(AirflowException):
    """A request that was not answered as expected."""


class LostJobError(ServiceError):
    """A job that the service does not know any more."""


@contextmanager
def service_errors(connection: str, *kinds: type[Exception]) -> Iterator[None]:
    """Raise AirflowException, and exceptions of these kinds, that this context raises as ServiceError."""
    try:
        yield
    except ServiceError:
        raise
    except (AirflowException, *kinds) as error:
        raise ServiceError(f"{connection}: {error}") from error


class RemoteRun:
    """A planned run that a service computes, as often as the task is tried."""

    def __init__(self, service: Service, connection: str, pipeline: Pipeline, run: str, files: RunFiles) -> None:
        self.service = service
        self.connection = connection
        self.pipeline = pipeline
        self.run = run
        self.files = files
        self.job: str | None = None

    def compute(self) -> None:
        """Submit the run, or find its job, and wait until it has ended.

        Raise PermanentError if a retry would fail in the same way, and RunError if the job failed for another reason.
        """
        earlier = self.files.find(HANDED_OVER)
        if earlier is not None and earlier.connection != self.connection:
            earlier = None
        handed_over = self._found(earlier) or self._submitted(earlier)
        job = self.job = str(handed_over.job)
        _LOG.info("%s computes run %s as job %s", self.connection, self.run, job)
        for state in self._states(job):
            if state.has_ended:
                if not state.is_successful:
                    raise_failure(self.files, handed_over, f"the job {job} of {self.connection}: {state.text}")
                return

    def cancel(self) -> NoReturn:
        """Stop the job, if there is one. Raise AirflowException, which ends the task."""
        if self.job is not None:
            self.service.cancel(self.job)
            _LOG.info("asked %s to stop job %s", self.connection, self.job)
        end_task()

    def _found(self, earlier: HandedOver | None) -> HandedOver | None:
        """Return what an earlier try handed over, if its job goes on or has left all files; else None."""
        if earlier is None or earlier.job is None:
            return None
        try:
            state = self.service.state(earlier.job)
        except LostJobError:
            return None
        if state.has_ended and not (state.is_successful and self.files.exists(METRICS.name)):
            return None
        _LOG.info("an earlier try submitted the run")
        return earlier

    def _submitted(self, earlier: HandedOver | None) -> HandedOver:
        """Hand the run over, and return it with its job.

        An attempt whose job is not known, because the process ended, is made again: there may be a job of it.
        """
        is_known = earlier is None or earlier.job is not None or earlier.definition != pack(self.pipeline)
        handed_over = hand_over(self.pipeline, self.files, self.connection) if is_known else earlier
        assert handed_over is not None
        arguments = [self.pipeline.outputs[0].table, self.run]
        self.job = self.service.submit(handed_over.attempt, f"recapture {self.pipeline.name} {self.run}", arguments)
        return self.files.write(HANDED_OVER, replace(handed_over, job=self.job))

    def _states(self, job: str) -> Iterator[JobState]:
        """Yield the state of a job now and then. Raise ServiceError if the service does not answer for minutes."""
        unanswered, shown = 0, ""
        while True:
            try:
                state = self.service.state(job)
            except LostJobError:
                raise
            except ServiceError as error:
                unanswered += 1
                if unanswered == MOST_UNANSWERED:
                    raise
                _LOG.warning("%s", one_line(str(error)))
            else:
                unanswered = 0
                if state.text != shown:
                    shown = state.text
                    _LOG.info("%s", one_line(f"{shown} {state.page}"))
                yield state
            time.sleep(POLL_SECONDS)


def end_task() -> NoReturn:
    """Raise AirflowException, which ends a task that is told to stop."""
    raise AirflowException("the task was told to stop")


def hand_over(pipeline: Pipeline, files: RunFiles, connection: str) -> HandedOver:
    """Write what a cluster needs to compute a run without the pipeline file, as a new attempt."""
    return files.write(HANDED_OVER, HandedOver(uuid4().hex, pack(pipeline), connection))


def raise_failure(files: RunFiles, handed_over: HandedOver, text: str) -> NoReturn:
    """Raise what the application wrote to the run files when it failed; RunError with this text if it did not."""
    failure = files.find(FAILURE)
    if failure is None or failure.attempt != handed_over.attempt:
        raise RunError(text)
    _LOG.error("%s", one_line(text))
    raise PermanentError(failure.message) if failure.is_final else RunError(failure.message)


def settings_of(job: Mapping[str, Any], known: Mapping[str, type], connection: str, what: str) -> dict[str, Any]:
    """Return the settings of a job. Raise DefinitionError if one is unknown or of another type, or shows a secret.

    Only references to secrets may be submitted, because services show the settings of jobs.
    """
    for name, value in job.items():
        if name not in known:
            raise DefinitionError(f"job has the key {name!r}, but {connection} is {what}: use {', '.join(known)}")
        if not isinstance(value, known[name]) or (isinstance(value, bool) and known[name] is not bool):
            raise DefinitionError(f"job: {name} has the type {type(value).__name__}: write a {known[name].__name__}")
    for name in _secrets(job):
        raise DefinitionError(
            f"job: {name} seems to have a secret as plain text, which {what} would show: write a reference to it, or "
            "set it where the cluster is defined; see docs/clusters.md"
        )
    return dict(job)


def _secrets(value: Any, path: str = "") -> Iterator[str]:
    """Yield the names of settings that seem to have a secret as plain text, below `job`."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _secrets(inner, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _secrets(inner, path)
    elif REFERENCE.fullmatch(str(value)) or REFERENCE_NAME.search(path):
        return
    elif SECRET_NAME.search(path) or SECRET_TEXT.search(str(value)):
        yield path.removeprefix(".")
