"""The queries of the job, as Python objects that know their text in the query language."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from tests.live_job.world import Event

OPERATORS: dict[str, Callable[[float, float], bool]] = {">": operator.gt, ">=": operator.ge, "<": operator.lt}


@dataclass(frozen=True)
class Hopping:
    """Windows (end - size, end] whose ends are multiples of the hop; tumbling if hop and size are equal."""

    size: timedelta
    hop: timedelta

    @property
    def text(self) -> str:
        if self.hop == self.size:
            return f"deviceId, TumblingWindow(second, {self.size.seconds})"
        return f"deviceId, HoppingWindow(second, {self.size.seconds}, {self.hop.seconds})"

    @property
    def reach(self) -> timedelta:
        """How far before its end a window begins at most."""
        return self.size


@dataclass(frozen=True)
class Session:
    """Sessions of each device, cut at multiples of the maximum duration."""

    timeout: timedelta
    max_duration: timedelta
    shift: timedelta = timedelta()
    """How far after those multiples a job cuts that began at another time; it is not part of the query's text."""

    @property
    def text(self) -> str:
        lengths = f"{self.timeout.seconds}, {self.max_duration.seconds}"
        return f"deviceId, SessionWindow(second, {lengths}) OVER (PARTITION BY deviceId)"

    @property
    def reach(self) -> timedelta:
        """How far before its end a session begins at most."""
        return 2 * self.max_duration + self.timeout


@dataclass(frozen=True)
class Filter:
    """A condition on the temperature. It is false for NULL."""

    operator: str
    threshold: float

    @property
    def text(self) -> str:
        return f"WHERE temperature {self.operator} {self.threshold} "

    def passes(self, event: Event) -> bool:
        return event.temperature is not None and OPERATORS[self.operator](event.temperature, self.threshold)


@dataclass(frozen=True)
class Query:
    """Count, mean, least and largest temperature of each device in a window."""

    window: Hopping | Session
    over: bool = False
    """Whether each device has a watermark of its own."""
    where: Filter | None = None

    @property
    def text(self) -> str:
        return (
            "SELECT System.Timestamp() AS windowEnd, deviceId, COUNT(*) AS events, AVG(temperature) AS avgTemperature, "
            "MIN(temperature) AS minTemperature, MAX(temperature) AS maxTemperature\n"
            f"INTO aggregates FROM telemetry TIMESTAMP BY eventTime{' OVER deviceId' if self.over else ''}\n"
            f"{self.where.text if self.where else ''}GROUP BY {self.window.text}"
        )

    def passes(self, event: Event) -> bool:
        return self.where is None or self.where.passes(event)
