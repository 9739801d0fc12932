"""Recapture in Airflow: the DAGs of pipeline files, their tasks, and the pages in Airflow's interface."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recapture_airflow.dags import RecaptureDags

__all__ = ["RecaptureDags"]


def __getattr__(name: str) -> Any:
    """Return RecaptureDags. It is loaded at its first use, because every process of Airflow imports this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from recapture_airflow.dags import RecaptureDags

    return RecaptureDags
