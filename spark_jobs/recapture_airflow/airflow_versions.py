"""What the supported versions of Airflow do not have in common. `docs/airflow.md` has a table of it."""

from collections.abc import Sequence
from typing import Any

from airflow.utils.state import TaskInstanceState

ASKING = getattr(TaskInstanceState, "AWAITING_INPUT", TaskInstanceState.DEFERRED)
"""State of a task that asks a person. Airflow 3.3 has a state for it; before, the triggerer waits for the answer."""


def add_partitions(event: Any, slices: Sequence[str]) -> None:
    """Give an asset event a partition for each slice. Before Airflow 3.3, only the event's `extra` names the slices."""
    if hasattr(event, "add_partitions"):
        event.add_partitions(slices)


def note_of(dag_run: Any) -> str | None:
    """Return the note of a DAG run, or None without one. Before Airflow 3.2, a task cannot read it: it is None."""
    return getattr(dag_run, "note", None)


def metrics_client() -> Any:
    """Return what sends Airflow's metrics: to StatsD, Datadog or OpenTelemetry, as its configuration says."""
    try:
        from airflow.sdk.observability.stats import Stats
    except ImportError:  # before Airflow 3.2
        from airflow.stats import Stats
    return Stats
