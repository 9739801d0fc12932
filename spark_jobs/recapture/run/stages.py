"""The stages of a run, as values in their order.

`recapture backfill` and Airflow carry out the stages of this list, and `recapture plan` explains them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from recapture.definition.digest import run_definition
from recapture.definition.pipeline import Pipeline
from recapture.execute.engine import Engine
from recapture.process.wording import counted


@dataclass(frozen=True)
class WaitForCapture:
    """Wait until Capture has written what the slices need."""

    name: ClassVar = "wait_for_capture"

    longest: timedelta
    """Time after the end of a slice at which it is complete by the clock."""


@dataclass(frozen=True)
class Plan:
    """Pin the blobs that the slices need, and remove what an interrupted run of these slices left."""

    name: ClassVar = "plan"

    inputs: tuple[str, ...]
    """Aliases of the inputs, with those of reference data."""


@dataclass(frozen=True)
class OrderAndAggregate:
    """Order the events, compute the rows of every output, and stage them."""

    name: ClassVar = "order_and_aggregate"

    engine: Engine


@dataclass(frozen=True)
class Audit:
    """Judge the staged rows and the metrics. A failed audit ends the run, unless a person may approve it."""

    name: ClassVar = "audit"

    suites: tuple[str, ...]
    """Files of the pipeline's own suites. The built-in checks always run as well."""


@dataclass(frozen=True)
class Approve:
    """Wait for a person's decision if the audit failed."""

    name: ClassVar = "approval"

    wait: timedelta
    """Time after which a run that nobody approved ends."""


@dataclass(frozen=True)
class Publish:
    """Replace the slices in every table."""

    name: ClassVar = "publish"

    tables: tuple[str, ...]
    """Addresses of the outputs' tables."""


@dataclass(frozen=True)
class Report:
    """Write the report of the run to its run files."""

    name: ClassVar = "report"


Stage = WaitForCapture | Plan | OrderAndAggregate | Audit | Approve | Publish | Report


def stages_of(pipeline: Pipeline, engine: Engine, *, unattended: bool = False) -> list[Stage]:
    """Return the stages of a run, in order. This reads nothing and changes nothing.

    An `unattended` run also waits for Capture and, if the pipeline asks for it, for a person's approval.
    """
    qualities = map(pipeline.quality_of, pipeline.outputs)
    suites = dict.fromkeys(quality.suite for quality in qualities if quality is not None and quality.suite is not None)
    stages: list[Stage] = [
        Plan(tuple(section.alias for section in pipeline.all_inputs)),
        OrderAndAggregate(engine),
        Audit(tuple(suites)),
        Publish(tuple(output.table for output in pipeline.outputs)),
        Report(),
    ]
    if unattended:
        stages.insert(0, WaitForCapture(run_definition(pipeline).longest_wait))
        if pipeline.approval is not None:
            publish = next(place for place, stage in enumerate(stages) if isinstance(stage, Publish))
            stages.insert(publish, Approve(timedelta(hours=pipeline.approval.wait_hours)))
    return stages


def explained(stages: Sequence[Stage]) -> list[dict[str, str]]:
    """Return the name of each stage and what it does, for a person, in JSON types."""
    return [{"name": stage.name, "description": _description(stage)} for stage in stages]


def _description(stage: Stage) -> str:
    match stage:
        case WaitForCapture():
            return "wait until Capture has written what the slices need"
        case Plan(inputs):
            return f"pin the blobs of {', '.join(inputs)}"
        case OrderAndAggregate(engine):
            where = {Engine.PROCESSES: "in processes of this machine", Engine.SPARK: "with Spark"}
            return f"compute the rows {where[engine]}"
        case Audit(suites):
            return f"judge the rows with {', '.join(['the built-in checks', *suites])}"
        case Approve(wait):
            hours = counted(wait // timedelta(hours=1), "hour")
            return f"if the audit fails, wait up to {hours} for a person's approval"
        case Publish(tables):
            return f"replace the slices in {', '.join(tables)}"
        case Report():
            return "write the report to the run files"
