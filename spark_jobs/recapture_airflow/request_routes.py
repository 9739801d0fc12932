"""Make and cancel requests from the calendar.

Airflow authenticates and authorises each call: who may start runs of a pipeline's DAG may request its slices. A call of
another site's page is refused: see `require_own_page`. An error is a JSON object with a sentence under `detail`, as
those of Airflow's API are.
"""

from datetime import datetime
from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.concurrency import run_in_threadpool

from recapture.errors import DefinitionError
from recapture.keep.messages import parse_fields
from recapture.keep.requests import NewRequest, cancel_request, make_request
from recapture.time_model import ticks
from recapture_airflow.coverage_pipelines import Environment, reader_of

REQUIRED, OPTIONAL = ("from", "to"), ("at", "reason", "only")
MOST_BYTES = 10_000
"""Largest size of a request's body."""


def require_own_page(request: Request) -> None:
    """Refuse a call that a page of another site may have sent with the user's cookie.

    Browsers let such a page send a form, but no JSON unless Airflow allows its origin, and they say whose page sends.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" or request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise HTTPException(403, "Only Recapture's own pages may do this: send JSON, with Airflow's token.")


routes = APIRouter(
    dependencies=[Depends(require_own_page), Depends(requires_access_dag("POST", DagAccessEntity.RUN))],
)


@routes.post("/{dag_id}/requests", status_code=201)
async def make(
    request: Request, dag_id: str, user: GetUserDep, session: SessionDep, environment: Environment
) -> dict[str, Any]:
    """Request the slices of a range in the name of the user; return the request."""
    body = await request.body()
    if len(body) > MOST_BYTES:
        raise HTTPException(413, f"The request is longer than {MOST_BYTES:,} bytes: shorten the reason.")
    pipeline = (await run_in_threadpool(reader_of, session, dag_id)).pipeline
    fields, times = parse_fields(body.decode(errors="replace"), REQUIRED, OPTIONAL)

    only = _starts(fields.get("only"))
    new = NewRequest(times["from"], times["to"], user.get_name(), times.get("at"), fields.get("reason"), only)
    return await run_in_threadpool(make_request, pipeline, new, environment)


def _starts(text: str | None) -> list[datetime]:
    """Return the starts of slices in a string, separated by commas. Raise DefinitionError if one is not a time."""
    try:
        return [ticks.parse_utc(start) for start in (text or "").split(",") if start]
    except ValueError:
        raise DefinitionError(
            "`only` has a start that is not a time: write ISO 8601 times, such as 2026-03-01T10:00:00Z, and separate "
            "them with commas"
        ) from None


@routes.post("/{dag_id}/requests/{id}/cancel")
def cancel(dag_id: str, id: str, user: GetUserDep, session: SessionDep, environment: Environment) -> dict[str, Any]:
    """Cancel a request that has not started; return it."""
    return cancel_request(reader_of(session, dag_id).pipeline, id, user.get_name(), environment)
