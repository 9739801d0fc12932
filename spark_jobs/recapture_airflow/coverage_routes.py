"""The pages of the coverage calendar, and the files of runs that they link to.

Airflow authenticates and authorises every call: who may see the runs of a DAG may see its pages. The buttons of the
calendar call Airflow's public API, which checks the rights of the caller again, and `request_routes`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.pool import Pool
from airflow.models.xcom import XCOM_RETURN_KEY, XComModel
from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from sqlalchemy import select

from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, PermanentError, RecaptureError
from recapture.run.slices import slice_length
from recapture.run.stages import Stage
from recapture.run_files.contents import AUDIT, PLANNED_BY
from recapture.run_files.files import MANIFEST, REPORT_PAGE, RunFiles, range_of_run
from recapture.storage import in_parallel, open_container
from recapture.tools.coverage.activity import Activity
from recapture.tools.coverage.calendar import Shown, Summary, audited_runs, calendar_page, message_page, pipelines_page
from recapture.tools.coverage.chosen import failures
from recapture.tools.coverage.marks import Access
from recapture.tools.coverage.ranges import chosen_range, shown_month, shown_parameter
from recapture.tools.coverage.reading import CoverageReader
from recapture.tools.coverage.run_page import run_page
from recapture.tools.reports.trend import trend_document
from recapture.tools.reports.trend_page import trend_page
from recapture.tools.reports.trend_source import read_trend
from recapture_airflow.coverage_pipelines import (
    Environment,
    broken_pipelines,
    find_pipeline,
    names,
    pipeline_of,
    reader_of,
)
from recapture_airflow.dag_activity import activity_of
from recapture_airflow.dag_forms import RUN, dag_ids_of
from recapture_airflow.explain_routes import routes as explain_routes
from recapture_airflow.request_routes import routes as request_routes

FILES = {
    REPORT_PAGE: "text/html; charset=utf-8",
    AUDIT.name: "application/json",
    MANIFEST: "application/json",
}
"""Run files that a browser may read, with their media types."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'self'",
}
"""Headers of every response. Airflow shows the pages in frames; other sites may not. A page's own policy adds to it."""
SANDBOX = "sandbox allow-downloads; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Content-Security-Policy of a run file: it runs no script, and does not count as a page of Airflow.

Any page may frame it: that of a run does, and in Airflow's tab it has no origin that `frame-ancestors` could name.
"""

MAY_SEE = [Depends(requires_access_dag("GET", DagAccessEntity.RUN))]

pages = FastAPI(title="Recapture", openapi_url=None)
pages.include_router(request_routes)
pages.include_router(explain_routes)


@pages.middleware("http")
async def guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """Reject paths that a database cannot look up, and add the headers to every response."""
    is_text = all(character >= " " for character in request.url.path)
    response = await call_next(request) if is_text else _message("No such page", "The address is wrong.", status=400)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _run_id(run: str) -> str:
    """Return the id of a run in a path. Raise DefinitionError if it is none."""
    if range_of_run(run) is None:
        raise DefinitionError(f"{shown_parameter(run)} is not the id of a run: open one from the calendar")
    return run


RunId = Annotated[str, Depends(_run_id)]


@pages.exception_handler(RecaptureError)
def show_error(request: Request, error: Exception) -> Response:
    """Return the error as a page, or as JSON if a script called."""
    status = 400 if isinstance(error, DefinitionError) else 502
    if request.method == "POST":
        return JSONResponse({"detail": str(error)}, status)
    return _message(
        "This page cannot be shown", str(error), "bad", [("All pipelines", f"{_root(request)}/")], status=status
    )


@pages.get("/")
def index(request: Request, user: GetUserDep, session: SessionDep, environment: Environment) -> Response:
    """Return the pipelines that the user may see, with their states. Redirect to the calendar of the only one."""
    shown, errors = _visible(user, session), broken_pipelines(session)
    if len(shown) == 1 and not errors:
        return RedirectResponse(f"{_root(request)}/{shown[0]}/")
    visible = [reader_of(session, name) for name in shown]
    activities = [activity_of(session, reader.pipeline) for reader in visible]
    now = datetime.now(UTC)

    def summarised(read: tuple[CoverageReader, Activity]) -> Summary:
        reader, activity = read
        try:
            return Summary(reader.pipeline.name, reader.read(now, environment, activity).slices)
        except RecaptureError as error:
            return Summary(reader.pipeline.name, problem=str(error))

    summaries = in_parallel(summarised, list(zip(visible, activities, strict=True)))
    return HTMLResponse(pipelines_page(summaries, errors, _root(request)))


@pages.get("/{dag_id}/", dependencies=MAY_SEE)
def calendar(
    request: Request,
    dag_id: str,
    user: GetUserDep,
    session: SessionDep,
    environment: Environment,
    month: str | None = None,
    from_: Annotated[str | None, Query(alias="from")] = None,
    to: str | None = None,
    state: Annotated[Sequence[str], Query()] = (),
) -> Response:
    """Return the calendar of a pipeline. The chosen slices are those from `from_` to `to` in one of the states."""
    stored = pipeline_of(session, dag_id)
    reader, pipeline = stored.reader, stored.reader.pipeline
    length = slice_length(pipeline)
    chosen = chosen_range(from_, to, length, state)
    coverage = reader.read(datetime.now(UTC), environment, activity_of(session, pipeline))
    chosen = chosen and chosen.narrowed(coverage.slices)
    only = chosen is not None and chosen.end - chosen.start == length
    metrics, damage = {}, None
    try:
        metrics = reader.metrics(pipeline.outputs[0], chosen.from_, environment) if chosen and only else {}
    except PermanentError as error:
        damage = str(error)
    month_shown = shown_month(month, chosen, coverage.slices)
    runs = audited_runs(coverage.slices, month_shown, chosen)
    failed = in_parallel(lambda run: _failures(_files(pipeline, run, environment)), runs)
    content = calendar_page(
        pipeline.name,
        _visible(user, session),
        coverage,
        Shown(month_shown, chosen, metrics, damage),
        length,
        Access(
            _airflow(request),
            _root(request),
            _why_disabled(pipeline, stored.pool, user, session),
            pipeline.approval is not None,
            _why_waiting(pipeline, session),
        ),
        dict(zip(runs, failed, strict=True)),
    )
    return HTMLResponse(content)


@pages.get("/{dag_id}/trend", dependencies=MAY_SEE)
def trend(request: Request, dag_id: str, session: SessionDep, environment: Environment) -> Response:
    """Return the trend of the newest slices of a pipeline."""
    pipeline = reader_of(session, dag_id).pipeline
    document = trend_document(read_trend(pipeline, None, None, environment))
    return HTMLResponse(trend_page(document, f"{_root(request)}/{pipeline.name}/"))


@pages.get("/{dag_id}/runs/{run}/dag-run", dependencies=MAY_SEE)
def dag_run_of(request: Request, dag_id: str, run: RunId, session: SessionDep, environment: Environment) -> Response:
    """Redirect to the DAG run that planned a run last."""
    files = _files(reader_of(session, dag_id).pipeline, run, environment)
    planned = files.find(PLANNED_BY)
    if planned is None:
        return _message("No DAG run", f"Run {run} was not planned by Airflow, but by the command.", status=404)
    return RedirectResponse(
        f"{_airflow(request)}/dags/{quote(planned.dag_id, safe='')}/runs/{quote(planned.run_id, safe='')}"
    )


@pages.get("/{dag_id}/runs/{run}/", dependencies=MAY_SEE)
def run_with_report(
    request: Request, dag_id: str, run: RunId, session: SessionDep, environment: Environment
) -> Response:
    """Return the page of a run."""
    return _run_page(request, session, reader_of(session, dag_id).pipeline, run, environment)


@pages.get("/{dag_id}/runs/{run}/{file}", dependencies=MAY_SEE)
def run_file(dag_id: str, run: RunId, file: str, session: SessionDep, environment: Environment) -> Response:
    """Return a run file."""
    files = _files(reader_of(session, dag_id).pipeline, run, environment)
    content = files.container.read_current(files.name(file)) if file in FILES else None
    if content is None:
        return _message("No such file", f"Run {run} has no file {shown_parameter(file)}.", status=404)
    return Response(content, media_type=FILES[file], headers={"Content-Security-Policy": SANDBOX})


@pages.get("/{dag_id}/dag-runs/{dag_run_id:path}", dependencies=MAY_SEE)
def tab(request: Request, dag_id: str, dag_run_id: str, session: SessionDep, environment: Environment) -> Response:
    """Return the tab of a DAG run."""
    name = dag_id.partition(".")[0]
    stored = find_pipeline(session, name)
    if stored is None:
        return _message("No pipeline", f"The DAG {shown_parameter(dag_id)} has no pipeline.")
    params = _params(session, dag_id, dag_run_id)
    if run := _run_of(session, dag_id, dag_run_id):
        return _run_page(request, session, stored.reader.pipeline, run, environment)
    chosen = {name: params[name] for name in ("from", "to") if params.get(name)}
    address = f"{_root(request)}/{stored.reader.pipeline.name}/?{urlencode(chosen, errors='replace')}"
    ids = dag_ids_of(stored.reader.pipeline)
    computes = dag_id in (ids["backfill"], ids["update"])
    text = "This DAG run has not planned a run." if computes else "This DAG computes no slices."
    return _message(dag_id, text, links=[("Calendar", address)])


def _run_page(
    request: Request, session: SessionDep, pipeline: Pipeline, run: str, environment: Mapping[str, str]
) -> Response:
    """Return the page of a run, with the question whether to publish it if a person is asked."""
    asking = (
        dag_run
        for dag_run in activity_of(session, pipeline).runs
        if dag_run.awaits_decision and _run_of(session, dag_run.dag_id, dag_run.id) == run
    )
    question = next(map(Access(_airflow(request), _root(request), {}).question, asking), None)
    return HTMLResponse(run_page(_files(pipeline, run, environment), pipeline.name, _root(request), question))


def _failures(files: RunFiles) -> Sequence[str]:
    """Return what failed in the audit of a run, or why it cannot be read; nothing if it is gone."""
    try:
        audited = files.find(AUDIT)
    except PermanentError as error:
        return (str(error),)
    return () if audited is None else failures(audited.audit)


def _run_of(session: SessionDep, dag_id: str, dag_run_id: str) -> str | None:
    """Return the run that a DAG run planned, or asks a person about; None if it does neither."""
    return _planned_run(session, dag_id, dag_run_id) or _asked_run(_params(session, dag_id, dag_run_id))


def _params(session: SessionDep, dag_id: str, dag_run_id: str) -> Mapping[str, Any]:
    """Return the parameters with which a DAG run was started."""
    return session.scalar(select(DagRun.conf).where(DagRun.dag_id == dag_id, DagRun.run_id == dag_run_id)) or {}


def _planned_run(session: SessionDep, dag_id: str, dag_run_id: str) -> str | None:
    """Return the run that a DAG run planned; None if it has not planned one, or does not exist."""
    if not dag_run_id:
        return None
    query = XComModel.get_many(run_id=dag_run_id, key=XCOM_RETURN_KEY, task_ids=Stage.PLAN, dag_ids=dag_id, limit=1)
    row = session.scalar(query)
    value = None if row is None else XComModel.deserialize_value(row)
    return value if isinstance(value, str) and range_of_run(value) else None


def _asked_run(params: Mapping[str, Any]) -> str | None:
    """Return the run that a DAG run asks a person about; None if it asks nothing."""
    run = params.get(RUN)
    return run if isinstance(run, str) and range_of_run(run) else None


def _why_disabled(pipeline: Pipeline, pool: str, user: GetUserDep, session: SessionDep) -> dict[str, str | None]:
    """Return why the user cannot start each action; None for one that the user can start."""
    reasons: dict[str, str | None] = {}
    for action, dag_id in dag_ids_of(pipeline).items():
        dag = session.get(DagModel, dag_id)
        refusal = _refusal(dag_id, user, session)
        if action == "backfill":
            reasons["request"] = refusal
        if refusal is not None:
            reasons[action] = refusal
        elif dag is None or dag.is_stale:
            reasons[action] = f"Airflow has not loaded the DAG {dag_id}."
        elif dag.is_paused:
            reasons[action] = f"the DAG {dag_id} is paused: unpause it first, or its runs do not start."
        elif action == "backfill" and Pool.get_pool(pool, session=session) is None:
            reasons[action] = f"the pool {pool} is missing: create it, or Airflow does not compute the slices."
        else:
            reasons[action] = None
    return reasons


def _refusal(dag_id: str, user: GetUserDep, session: SessionDep) -> str | None:
    """Return why the user may not start runs of a DAG; None if the user may."""
    details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id, session=session))
    may_start = get_auth_manager().is_authorized_dag(
        method="POST", access_entity=DagAccessEntity.RUN, details=details, user=user
    )
    return None if may_start else f"you may not start runs of the DAG {dag_id}."


def _why_waiting(pipeline: Pipeline, session: SessionDep) -> str | None:
    """Return why no update carries out requests now; None if updates do."""
    dag_id = dag_ids_of(pipeline)["update"]
    dag = session.get(DagModel, dag_id)
    if dag is None or dag.is_stale:
        return f"Airflow has not loaded the DAG {dag_id}, so requests wait."
    return f"The DAG {dag_id} is paused: requests wait until it is unpaused." if dag.is_paused else None


def _visible(user: GetUserDep, session: SessionDep) -> list[str]:
    """Return the names of the pipelines whose DAGs the user may see."""
    visible = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    return [name for name in names(session) if name in visible]


def _files(pipeline: Pipeline, run: str, environment: Mapping[str, str]) -> RunFiles:
    return RunFiles(open_container(pipeline.outputs[0].table, environment), run)


def _root(request: Request) -> str:
    """Return the path under which the pages are served."""
    return str(request.scope.get("root_path", ""))


def _airflow(request: Request) -> str:
    """Return the path under which Airflow is served."""
    return _root(request).rpartition("/")[0]


def _message(
    title: str, text: str, kind: str = "", links: Sequence[tuple[str, str]] = (), status: int = 200
) -> Response:
    return HTMLResponse(message_page(title, text, kind, links), status)
