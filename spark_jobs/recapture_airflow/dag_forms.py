"""The ids, the assets and the trigger forms of a pipeline's DAGs."""

from typing import Any

from airflow.sdk import Asset, Param

from recapture.definition.pipeline import Pipeline

WHOLE_HOUR = r"^\d{4}-\d\d-\d\dT\d\d:00(:00(\.0+)?)?(Z|[+-]\d\d:00)$"
"""Regular expression of a whole hour in ISO 8601, with its zone."""
PARAMETERS = "parameters"
"""Name of the field with the parameters of the suites."""
ACCEPT_LOSS = "accept_loss"
"""Name of the field that lets slices lose events that are published."""
AT = "at"
"""Name of the field with the time from which an update computes the range, instead of the run itself."""
STAGE = "stage"
"""Name of the field that lets a run wait for a person before it is published."""
RUN = "run"
"""Name of the field with a run."""
DEFINITION = "recapture_definition"
"""Key of the definition among the default arguments of a DAG, with which Airflow stores it. No task takes it."""


def dag_ids_of(pipeline: Pipeline) -> dict[str, str]:
    """Return the id of each of the pipeline's DAGs, by what it does. No pipeline has a name with a full stop."""
    actions = ["update", *(["approval"] if pipeline.approval else []), "rollback", "check"]
    return {"backfill": pipeline.name, **{action: f"{pipeline.name}.{action}" for action in actions}}


def assets_of(pipeline: Pipeline) -> dict[str, Asset]:
    """Return the asset of each published table, by alias. If there are several, their names end with the alias."""
    several = len(pipeline.outputs) > 1
    return {
        output.alias: Asset(name=f"{pipeline.name}.{output.alias}" if several else pipeline.name, uri=output.table)
        for output in pipeline.outputs
    }


def run_param() -> dict[str, Param]:
    """Return the field of the trigger form with the run that a person is asked about."""
    return {RUN: Param(type="string", title="Run", description="Run that its audit stopped.")}


def range_params(without: str | None = None) -> dict[str, Param]:
    """Return the fields of the trigger form: whole hours. `without` says what a run without a range does.

    If it is None, both fields are required. A section of their own would be collapsed in the form.
    """
    descriptions = {
        "from": "Start of the range, exclusive: a whole hour at which a slice starts, such as 2026-03-01T06:00:00Z.",
        "to": "End of the range, inclusive: a whole hour at which a slice ends, not in the future.",
    }
    schema: dict[str, Any] = {"type": "string"} if without is None else {"type": ["null", "string"], "default": None}
    return {
        name: Param(
            **schema,
            format="date-time",
            pattern=WHOLE_HOUR,
            title=name.capitalize(),
            description=f"{description} {without}" if without else description,
        )
        for name, description in descriptions.items()
    }


def later_param() -> dict[str, Param]:
    """Return the field of the trigger form that makes a request instead of computing the range now."""
    text = (
        "Empty: the run computes the range now. A time: the run only makes a request, and an update computes the range "
        "at this time or later."
    )
    return {AT: Param(None, type=["null", "string"], format="date-time", title="At", description=text)}


def loss_param() -> dict[str, Param]:
    """Return the field of the trigger form that accepts the loss of events."""
    text = "Publish although the archive has holes, or fewer events than are published: the blobs are gone for good."
    return {ACCEPT_LOSS: Param(False, type="boolean", title="Accept loss", description=text)}


def stage_param() -> dict[str, Param]:
    """Return the field of the trigger form that lets a run wait for a person before it is published."""
    text = "Ask a person before anything is published. Until then, look at the run's report."
    return {STAGE: Param(False, type="boolean", title="Stage", description=text)}


def parameters_of(params: dict[str, Any] | None) -> dict[str, Any]:
    """Return the parameters of the suites that the trigger form gives."""
    parameters: dict[str, Any] = (params or {}).get(PARAMETERS) or {}
    return parameters


def suite_params(pipeline: Pipeline) -> dict[str, Param]:
    """Return the field of the trigger form with the parameters of the pipeline's suites; none if it declares none."""
    declared = declared_parameters(pipeline)
    if not declared:
        return {}
    types = {name: {"type": "string" if isinstance(value, str) else "number"} for name, value in declared.items()}
    return {
        PARAMETERS: Param(
            declared,
            type="object",
            properties=types,
            additionalProperties=False,
            title="Parameters of the suites",
            description="Values for this run. The defaults are those of the pipeline file.",
        )
    }


def declared_parameters(pipeline: Pipeline) -> dict[str, Any]:
    """Return the parameters of the pipeline's suites with the values of the pipeline file."""
    qualities = [quality for output in pipeline.outputs if (quality := pipeline.quality_of(output))]
    return {name: value for quality in qualities for name, value in quality.parameters.items()}
