"""A run by hand for later: it makes a request, which an update carries out."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture_airflow.airflow_versions import note_of
from recapture_airflow.dag_forms import ACCEPT_LOSS, AT, PARAMETERS, STAGE, declared_parameters
from recapture_airflow.run_range import instant


def request_later(
    pipeline: Pipeline, start: datetime, end: datetime, params: Mapping[str, Any], dag_run: Any
) -> dict[str, Any]:
    """Request the range of a DAG run from the time in its trigger form on, and return the request in JSON types.

    However often a task of the DAG run calls this, it makes one request. Raise DefinitionError if the form asks for
    something that a request does not have.
    """
    from recapture.keep.requests import NewRequest, make_request

    for name, why in (
        (ACCEPT_LOSS, "a request cannot accept losses"),
        (STAGE, "an update publishes what was requested without asking"),
    ):
        if params.get(name):
            raise DefinitionError(f"`{AT}` and `{name}` contradict: {why}; clear one of them")
    declared = declared_parameters(pipeline)
    if (params.get(PARAMETERS) or declared) != declared:
        raise DefinitionError(
            f"`{AT}` and `{PARAMETERS}` contradict: an update uses the parameters of the pipeline file; clear `{AT}`, "
            "or leave the parameters as they are"
        )
    id = hashlib.sha256(f"{dag_run.dag_id}/{dag_run.run_id}".encode()).hexdigest()[:8]
    by, at = dag_run.triggering_user_name or "airflow", instant(AT, str(params[AT]))
    return make_request(pipeline, NewRequest(start, end, by, at, note_of(dag_run) or None, id=id))
