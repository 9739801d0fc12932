"""What Airflow lacks: a sensor that waits, without holding a slot, until Capture has written a range of slices."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, Context
from airflow.triggers.base import BaseTrigger, TriggerEvent

import storage_connection
from spark_jobs.errors import DefinitionError, RunError

if TYPE_CHECKING:
    from spark_jobs.stages import Completeness

Range = dict[str, str]
"""A range of slices as tasks pass it on: {"from": ISO 8601, "to": ISO 8601}, meaning (from, to]."""

POLL_SECONDS = 60.0


def chosen_range(
    params: Mapping[str, Any], interval_start: datetime | None, interval_end: datetime | None
) -> tuple[datetime, datetime]:
    """The range that a DAG run is for: `from` and `to` of the form, else the run's data interval.

    Raises:
        DefinitionError: only one of the two was given; neither was, and the run has no interval; the range is empty.
    """
    given = {name: params.get(name) for name in ("from", "to")}
    missing = [name for name, value in given.items() if not value]
    if len(missing) == 1:
        raise DefinitionError(f"`{missing[0]}` is missing: give both `from` and `to`, or neither")
    if not missing:
        start, end = (_instant(name, str(value)) for name, value in given.items())
    elif interval_start is not None and interval_end is not None:
        start, end = interval_start, interval_end
    else:
        raise DefinitionError("this run has no data interval: give `from` and `to`, or trigger it with a logical date")
    if start >= end:
        raise DefinitionError(f"the range ({start.isoformat()}, {end.isoformat()}] is empty: `to` must be after `from`")
    return start, end


def _instant(name: str, text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise DefinitionError(f"`{name}` is {text!r}: write an ISO 8601 time, such as 2026-03-01T10:00:00Z") from None
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


def _completeness(
    definition: str, start: datetime, end: datetime, environment: Mapping[str, str] = os.environ
) -> "Completeness":
    from spark_jobs import stages
    from spark_jobs.pipeline import load

    return stages.completeness(load(Path(definition)), start, end, datetime.now(UTC), environment)


class CaptureCompleteTrigger(BaseTrigger):
    """Fires when every partition of (start, end] is complete (time model, section 3).

    The event is {"range": Range}, or {"error": message} when completeness could not be determined. Its arguments are
    kept in Airflow's database: they hold no credentials, it takes them from the connection each time that it looks.
    """

    def __init__(self, definition: str, start: str, end: str, poll_seconds: float = POLL_SECONDS) -> None:
        super().__init__()
        self.definition = definition
        self.start = start
        self.end = end
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class path under which the plugins folder offers this trigger, and its arguments."""
        return (
            "capture_complete.CaptureCompleteTrigger",
            {
                "definition": self.definition,
                "start": self.start,
                "end": self.end,
                "poll_seconds": self.poll_seconds,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, in a thread of its own so that other triggers go on, until nothing is missing."""
        start, end = datetime.fromisoformat(self.start), datetime.fromisoformat(self.end)
        while True:
            try:
                environment = await storage_connection.environment()
                found = await asyncio.to_thread(_completeness, self.definition, start, end, environment)
            except Exception as error:
                yield TriggerEvent({"error": str(error)})
                return
            if not found.waiting:
                for partition in found.partitions:
                    self.log.info("%s", partition)
                yield TriggerEvent({"range": {"from": self.start, "to": self.end}})
                return
            for line in found.waiting:
                self.log.info("waiting for the archive: %s", line)
            await asyncio.sleep(self.poll_seconds)


class CaptureCompleteSensor(BaseSensorOperator):
    """Waits until Capture has written the run's range, and returns that range for the tasks after it.

    Refuses a range that the pipeline cannot run before it waits for anything.
    """

    def __init__(self, *, definition: str, poll_seconds: float = POLL_SECONDS, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.definition = definition
        self.poll_seconds = poll_seconds

    def execute(self, context: Context) -> Range:
        """The range at once when it is complete; otherwise the wait goes on in the triggerer.

        Raises:
            DefinitionError: the range is not one that the pipeline can run.
        """
        from spark_jobs import stages
        from spark_jobs.pipeline import load

        run = context["dag_run"]
        start, end = chosen_range(context["params"], run.data_interval_start, run.data_interval_end)
        stages.check_range(load(Path(self.definition)), start, end)
        found = _completeness(self.definition, start, end)
        if found.waiting:
            for line in found.waiting:
                self.log.info("waiting for the archive: %s", line)
            self.defer(
                trigger=CaptureCompleteTrigger(self.definition, start.isoformat(), end.isoformat(), self.poll_seconds),
                method_name="resume",
                timeout=timedelta(seconds=self.timeout),
            )
        for partition in found.partitions:
            self.log.info("%s", partition)
        return {"from": start.isoformat(), "to": end.isoformat()}

    def resume(self, context: Context, event: dict[str, Any]) -> Range:
        """The range that the trigger found complete.

        Raises:
            RunError: the trigger could not look; its reason.
        """
        if "error" in event:
            raise RunError(event["error"])
        complete: Range = event["range"]
        return complete
