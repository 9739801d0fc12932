"""The sensor that waits, without holding a slot, until Capture has written a range of slices."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from logging import Logger
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, Context
from airflow.triggers.base import BaseTrigger, TriggerEvent

import storage_connection
from recapture.errors import DefinitionError, RecaptureError, RunError, SetupError
from recapture.printable import one_line
from recapture.time_model import ticks

if TYPE_CHECKING:
    from recapture.run.progress import Completeness

Range = dict[str, str]
"""Range (from, to] of slices in the form that tasks pass on: {"from": ISO 8601, "to": ISO 8601}."""

BACKFILL = "backfill"
"""Type of the runs of Airflow's backfills."""
POLL_SECONDS = 60.0
"""Seconds between two checks, for a range that may be complete within the hour."""
LONGEST_PAUSE = 60
"""Largest number of times POLL_SECONDS between two checks, for a range that cannot be complete for days."""
SETUP_SECONDS = 20 * 60
"""Seconds without interruption that a container or a permission may be missing before the wait fails.

Roles, tokens and firewall rules take effect within minutes, but a wrong url never does. With the task's two retries
this is an hour. Other faults of the storage never end the wait before the task's own timeout.
"""


def range_of_dag_run(
    params: Mapping[str, Any],
    interval_start: datetime | None,
    interval_end: datetime | None,
    *,
    is_backfill: bool = False,
) -> tuple[datetime, datetime]:
    """Return the range of a DAG run: `from` and `to` of the trigger form, or else the run's data interval.

    Raise DefinitionError if only one of the two is given, if neither is and the run has no interval, if the range is
    empty, or if a run of Airflow's backfill has another range than its data interval.
    """
    bounds = {name: params.get(name) for name in ("from", "to")}
    missing = [name for name, value in bounds.items() if not value]
    if len(missing) == 1:
        raise DefinitionError(f"`{missing[0]}` is missing: give both `from` and `to`, or neither")
    if not missing:
        start, end = (_instant(name, str(value)) for name, value in bounds.items())
    elif interval_start is not None and interval_end is not None:
        start, end = interval_start, interval_end
    else:
        raise DefinitionError("this run has no data interval: give `from` and `to`, or trigger it with a logical date")
    if is_backfill and (start, end) != (interval_start, interval_end):
        raise DefinitionError(
            "`from` and `to` contradict Airflow's backfill, in which every run computes its own slice: create the "
            "backfill again without `from` and `to`, or trigger the DAG with them instead"
        )
    if start >= end:
        raise DefinitionError(f"the range ({start.isoformat()}, {end.isoformat()}] is empty: `to` must be after `from`")
    return start, end


def _instant(name: str, text: str) -> datetime:
    try:
        return ticks.parse_utc(text)
    except ValueError:
        raise DefinitionError(f"`{name}` is {text!r}: write an ISO 8601 time, such as 2026-03-01T10:00:00Z") from None


def _completeness(
    file: str, start: datetime, end: datetime, environment: Mapping[str, str] = os.environ
) -> "Completeness":
    from recapture.definition.pipeline import load
    from recapture.run.progress import completeness

    return completeness(load(Path(file)), start, end, datetime.now(UTC), environment)


def _is_complete(completeness: "Completeness", log: Logger) -> bool:
    """Return whether nothing is missing. Log what is missing, or else how far each partition is written."""
    for line in completeness.waiting:
        log.info("waiting for the archive: %s", one_line(line))
    if completeness.waiting:
        return False
    for partition in completeness.partitions:
        log.info("%s", one_line(str(partition)))
    return True


ENDINGS = {error.__name__: error for error in (DefinitionError, SetupError)}
"""Errors that end the wait, by name."""


class CaptureCompleteTrigger(BaseTrigger):
    """Trigger that fires when every partition of (start, end] is complete (docs/time-model.md, section 3).

    The event is {"range": Range}, or {"error": message, "type": name of an error in ENDINGS} if waiting cannot help.
    Faults of the storage do not end the wait. Airflow stores the arguments in its database, so they hold no
    credentials. The trigger takes the credentials from the connection at every check.
    """

    def __init__(self, file: str, start: str, end: str, poll_seconds: float = POLL_SECONDS) -> None:
        super().__init__()
        self.file = file
        self.start = start
        self.end = end
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the import path of this class in the plugins folder, and its arguments."""
        return (
            "capture_complete.CaptureCompleteTrigger",
            {"file": self.file, "start": self.start, "end": self.end, "poll_seconds": self.poll_seconds},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event, when nothing is missing or when waiting cannot help.

        An exception other than a RecaptureError is a bug: Airflow logs it and fails the task.
        """
        refused_seconds = 0.0
        while True:
            try:
                completeness = await self._check()
            except DefinitionError as error:
                yield _failed(error)
                return
            except RunError as error:
                pause = self.poll_seconds
                refused_seconds = refused_seconds + pause if isinstance(error, SetupError) else 0.0
                if refused_seconds > SETUP_SECONDS:
                    yield _failed(error)
                    return
                self.log.warning("still waiting: %s", error)
            else:
                refused_seconds = 0.0
                if _is_complete(completeness, self.log):
                    yield TriggerEvent({"range": {"from": self.start, "to": self.end}})
                    return
                hours = (completeness.not_before - datetime.now(UTC)) / timedelta(hours=1)
                pause = self.poll_seconds * min(max(hours, 1), LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def _check(self) -> "Completeness":
        """Return the completeness of the range. A thread checks it, so that other triggers continue."""
        start, end = datetime.fromisoformat(self.start), datetime.fromisoformat(self.end)
        environment = await storage_connection.environment()
        return await asyncio.to_thread(_completeness, self.file, start, end, environment)


def _failed(error: RecaptureError) -> TriggerEvent:
    return TriggerEvent({"error": str(error), "type": type(error).__name__})


class CaptureCompleteSensor(BaseSensorOperator):
    """Sensor that waits until Capture has written the run's range, and returns the range for the next tasks.

    It rejects a range that the pipeline cannot run before it waits.
    """

    def __init__(self, *, file: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.file = file

    def execute(self, context: Context) -> Range:
        """Return the range if it is complete. Otherwise, or if the storage fails, wait in the triggerer.

        Raise DefinitionError if the pipeline cannot run the range.
        """
        from recapture.definition.pipeline import load
        from recapture.run.slices import require_whole_slices

        run = context["dag_run"]
        start, end = range_of_dag_run(
            context["params"], run.data_interval_start, run.data_interval_end, is_backfill=run.run_type == BACKFILL
        )
        require_whole_slices(load(Path(self.file)), start, end)
        if not self._is_complete(start, end):
            self.defer(
                trigger=CaptureCompleteTrigger(self.file, start.isoformat(), end.isoformat()),
                method_name="resume",
                timeout=timedelta(seconds=self.timeout),
            )
        return {"from": start.isoformat(), "to": end.isoformat()}

    def _is_complete(self, start: datetime, end: datetime) -> bool:
        try:
            completeness = _completeness(self.file, start, end)
        except RunError as error:
            self.log.warning("still waiting: %s", error)
            return False
        return _is_complete(completeness, self.log)

    def resume(self, context: Context, event: dict[str, Any]) -> Range:
        """Return the range, which is now complete.

        Raise DefinitionError if the pipeline or the connection has a mistake, so that a retry would fail in the same
        way. Raise SetupError if a container or a permission was missing for more than SETUP_SECONDS.
        """
        if "error" in event:
            raise ENDINGS[event["type"]](event["error"])
        complete_range: Range = event["range"]
        return complete_range
