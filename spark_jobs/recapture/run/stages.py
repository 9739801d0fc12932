"""The stages of a run, in their order.

`recapture backfill` carries out the stages of this list, and `recapture plan` explains them. In Airflow, each stage is
a task, in the same order.
"""

from enum import StrEnum

from recapture.definition.pipeline import Pipeline
from recapture.execute.engine import Engine


class Stage(StrEnum):
    """A stage of a run."""

    PLAN = "plan"
    """Pin the blobs that the slices need, and remove what an interrupted run of these slices left."""
    ORDER_AND_AGGREGATE = "order_and_aggregate"
    """Order the events, compute the rows of every output, and stage them."""
    AUDIT = "audit"
    """Judge the staged rows and the metrics. A failed audit ends the run, unless a person may approve it."""
    APPROVAL = "approval"
    """Wait for a person's decision if the audit failed, or if the run is staged."""
    PUBLISH = "publish"
    """Replace the slices in every table."""
    REPORT = "report"
    """Write the report of the run to its run files."""


def stages_of(*, is_staged: bool = False) -> list[Stage]:
    """Return the stages that a command carries out, in order; if the run `is_staged`, it ends unpublished.

    This reads nothing and changes nothing. Only Airflow waits for a person's decision.
    """
    left_out = {Stage.APPROVAL, Stage.PUBLISH} if is_staged else {Stage.APPROVAL}
    return [stage for stage in Stage if stage not in left_out]


def description(stage: Stage, pipeline: Pipeline, engine: Engine) -> str:
    """Return what a stage of a pipeline's runs does, for a person."""
    match stage:
        case Stage.PLAN:
            return f"pin the blobs of {', '.join(section.alias for section in pipeline.all_inputs)}"
        case Stage.ORDER_AND_AGGREGATE:
            where = {Engine.PROCESSES: "in processes of this machine", Engine.SPARK: "with Spark"}
            return f"compute the rows {where[engine]}"
        case Stage.AUDIT:
            qualities = map(pipeline.quality_of, pipeline.outputs)
            suites = dict.fromkeys(quality.suite for quality in qualities if quality and quality.suite is not None)
            return f"judge the rows with {', '.join(['the built-in checks', *suites])}"
        case Stage.APPROVAL:
            cause = "if the run is staged" if pipeline.approval is None else "if the audit fails or the run is staged"
            return f"{cause}, wait for a person's decision"
        case Stage.PUBLISH:
            return f"replace the slices in {', '.join(output.table for output in pipeline.outputs)}"
        case Stage.REPORT:
            return "write the report to the run files"
