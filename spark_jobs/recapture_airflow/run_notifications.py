"""Send notifications of what happened to a run, through the notifiers of the pipeline file."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.configuration import conf
from airflow.sdk import get_current_context
from airflow.sdk.bases.notifier import BaseNotifier
from airflow.sdk.module_loading import import_string

from recapture.errors import DefinitionError

if TYPE_CHECKING:
    from recapture.definition.pipeline import Pipeline
    from recapture.definition.sections import Event

_LOG = logging.getLogger(__name__)


def notifiers_of(pipeline: "Pipeline", event: "Event | None" = None) -> list[BaseNotifier]:
    """Return the notifiers of an event, or all of them for None.

    Raise DefinitionError if one cannot be imported, is not a notifier, or does not take its arguments.
    """
    return [
        _notifier(f"{pipeline.file}: notifications.{number}", notification.notifier, notification.arguments)
        for number, notification in enumerate(pipeline.notifications)
        if event is None or event in notification.events
    ]


def _notifier(place: str, path: str, arguments: Mapping[str, Any]) -> BaseNotifier:
    try:
        kind = import_string(path)
    except ImportError as error:
        raise DefinitionError(
            f"{place}: {path} cannot be imported ({error}): install its provider, or correct it"
        ) from None
    if not (isinstance(kind, type) and issubclass(kind, BaseNotifier)):
        raise DefinitionError(f"{place}: {path} is not a notifier of Airflow: name a subclass of BaseNotifier")
    try:
        return kind(**arguments)
    except TypeError as error:
        raise DefinitionError(f"{place}: {path} does not take these arguments ({error}): correct them") from None


def notify(pipeline: "Pipeline", event: "Event", run: str, message: str) -> None:
    """Send an event through its notifiers. If one fails, the task's log has the error, and the run continues.

    Templates have `recapture`, with `event`, `pipeline`, `run`, `message`, and the `url` of the DAG run.
    """
    for notifier in notifiers_of(pipeline, event):
        context = get_current_context()
        dag_run = context["dag_run"]
        base = conf.get("api", "base_url", fallback="").rstrip("/")
        values = {
            "event": event,
            "pipeline": pipeline.name,
            "run": run,
            "message": message,
            "url": f"{base}/dags/{dag_run.dag_id}/runs/{dag_run.run_id}",
        }
        name = type(notifier).__name__
        try:
            notifier({**context, "recapture": values})
        except Exception as error:
            _LOG.error("%s did not send the notification that the run is %s: %s", name, event, error)
        else:
            _LOG.info("%s sent the notification that the run is %s", name, event)
