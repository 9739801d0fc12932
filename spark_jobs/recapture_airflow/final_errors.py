"""Errors after which a task is not tried again, because a retry would fail in the same way."""

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.providers.common.compat.sdk import AirflowFailException

from recapture.errors import AuditError, DefinitionError, PermanentError


@contextmanager
def fail_at_once() -> Iterator[None]:
    """Raise AirflowFailException, which Airflow does not retry, for an error that stays the same.

    It decorates what a task executes.
    """
    try:
        yield
    except (AuditError, DefinitionError, PermanentError) as error:
        raise AirflowFailException(str(error)) from error
