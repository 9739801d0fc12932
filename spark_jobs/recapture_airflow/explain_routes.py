"""The page that says which events made a row. The row is computed in a process of its own.

The process reads the slice's blobs, with the credentials of the connection, and may need much memory: the server keeps
none of it.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from threading import BoundedSemaphore

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import requires_access_dag
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError, RunError
from recapture.tools.events.page import Form, explain_page
from recapture_airflow.coverage_pipelines import Environment, reader_of

LONGEST_ROW = 2000
"""Largest number of characters of what is asked."""
SECONDS = 120
"""Time after which an explanation is given up."""
_COMPUTED = BoundedSemaphore(2)
"""Explanations that are computed at the same time."""

routes = APIRouter(dependencies=[Depends(requires_access_dag("GET", DagAccessEntity.RUN))])


@routes.get("/{dag_id}/explain")
def explain(
    request: Request,
    dag_id: str,
    session: SessionDep,
    environment: Environment,
    row: str = "",
    output: str | None = None,
) -> HTMLResponse:
    """Return the page with a field to ask for a row and, if it was asked, the events that made it."""
    pipeline = reader_of(session, dag_id).pipeline
    if not row.isprintable() or len(row) > LONGEST_ROW:
        raise DefinitionError(f"the row must be a string of at most {LONGEST_ROW:,} characters: copy its values again")
    aliases = [known.alias for known in pipeline.outputs]
    chosen = next((alias for alias in aliases if alias == output), aliases[0])
    calendar = f"{request.scope.get('root_path', '')}/{pipeline.name}/"
    form = Form(pipeline.name, aliases, row, chosen, calendar)
    if not row:
        return HTMLResponse(explain_page(None, form=form))
    try:
        summary = _explained(pipeline, row, chosen, environment)
    except (DefinitionError, RunError) as error:
        status = 400 if isinstance(error, DefinitionError) else 502
        return HTMLResponse(explain_page(None, form=form, problem=str(error)), status)
    return HTMLResponse(explain_page(summary, form=form))


def _explained(pipeline: Pipeline, row: str, output: str, environment: Mapping[str, str]) -> Mapping[str, object]:
    """Return what `recapture explain` says. Raise DefinitionError or RunError with its message if it fails."""
    if not _COMPUTED.acquire(blocking=False):
        raise RunError("other rows are being explained: try again in a minute")
    try:
        command = [sys.executable, "-m", "recapture.cli", "explain", str(pipeline.file), f"--row={row}"]
        command += [f"--output={output}", "--json"]
        done = subprocess.run(
            command, env=dict(environment), capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        advice = "run `recapture explain` on a machine near the archive"
        raise RunError(f"the slice could not be computed in {SECONDS} seconds: {advice}") from error
    finally:
        _COMPUTED.release()
    if done.returncode:
        problem = done.stderr.strip().removeprefix("recapture: ").removeprefix("--row: ")
        message = problem or f"the command ended with {done.returncode}"
        raise (DefinitionError if done.returncode == 2 else RunError)(message)
    summary: Mapping[str, object] = json.loads(done.stdout)
    return summary
