"""The plugin of Airflow: the calendar's pages, the timetable and the priority of tasks."""

from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin

from recapture_airflow.slice_schedule import NewestFirst, SliceTimetable

if TYPE_CHECKING:
    from fastapi import FastAPI

ROOT = "/recapture"
"""Path of the pages, under that of Airflow."""
PATH = urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/") + ROOT


@cache
def _pages() -> "FastAPI":
    from recapture_airflow.coverage_routes import pages

    return pages


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Serve the pages. They are loaded at the first request, because every process of Airflow loads this module."""
    await _pages()(scope, receive, send)


class RecapturePlugin(AirflowPlugin):
    """Registers a page in the navigation, a tab on each DAG run, the timetable and the priority of tasks.

    The pages authenticate and authorise every request themselves.
    """

    name = "recapture"
    fastapi_apps = [{"app": app, "url_prefix": ROOT, "name": "Recapture"}]  # noqa: RUF012
    external_views = [  # noqa: RUF012
        {
            "name": "Coverage",
            "href": f"{PATH}/",
            "destination": "nav",
            "url_route": "recapture",
            "nav_top_level": True,
        },
        {
            "name": "Recapture",
            "href": f"{PATH}/{{DAG_ID}}/dag-runs/{{RUN_ID}}",
            "destination": "dag_run",
            "url_route": "recapture-run",
        },
    ]
    timetables = [SliceTimetable]  # noqa: RUF012
    priority_weight_strategies = [NewestFirst]  # noqa: RUF012
