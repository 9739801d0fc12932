"""The sections of a pipeline file next to `input`: the job's settings, the outputs and their suites."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Strict

from recapture.formats.base import Alias, Number, Section, reject_bool
from recapture.model import AsaType
from recapture.time_model.policies import EARLY_SECONDS, LARGEST_LATE, LARGEST_OUT_OF_ORDER

_TYPES = ", ".join(AsaType)

Seconds = Annotated[int, Field(ge=0, le=LARGEST_LATE)]
"""Number of seconds, up to three weeks: the longest tolerance of ASA."""


class Job(Section):
    """The settings of ASA's own job definition, with its names, ranges and defaults; then those that ASA lacks."""

    policy: Annotated[Literal["Adjust", "Drop"], Field(alias="eventsOutOfOrderPolicy")] = "Adjust"
    """What happens to late and out-of-order events: Adjust their times, or Drop them."""
    out_of_order_seconds: Annotated[
        Number, Field(alias="eventsOutOfOrderMaxDelayInSeconds", ge=0, le=LARGEST_OUT_OF_ORDER)
    ] = 0
    """Out-of-order tolerance in seconds."""
    late_seconds: Annotated[Number, Field(alias="eventsLateArrivalMaxDelayInSeconds", ge=-1, le=LARGEST_LATE)] = 5
    """Late tolerance in seconds; -1 for no limit."""
    output_error_policy: Annotated[Literal["Drop", "Stop"], Field(alias="outputErrorPolicy")] = "Drop"
    """Policy for output errors in ASA. An arithmetic error of the query stops the run under either."""
    early_arrival_seconds: Annotated[
        Seconds | None, reject_bool("write a number of seconds, or null for no early window")
    ] = EARLY_SECONDS
    """Early window in seconds; None for no limit."""
    early_policy: Literal["Drop", "Adjust"] = "Drop"
    """What happens to early events: Drop them, as in ASA, or Adjust their times."""
    query: str


def _output_type(written: object) -> object:
    if written == "any":
        raise ValueError(f"a published column has one type: write {_TYPES}")
    return _type(written)


def _type(written: object) -> object:
    if written not in list(AsaType):
        raise ValueError(f"should be one of {_TYPES}")
    return written


def _argument_type(written: object) -> object:
    return written if written == "any" else _type(written)


def _parameter_value(written: object) -> object:
    if isinstance(written, bool) or not isinstance(written, int | float | str):
        raise ValueError("should be a number or a string")
    return written


class Function(Section):
    """A JavaScript function of the job."""

    kind: Literal["scalar", "aggregate"] = "scalar"
    """Whether the query calls it for each row, as udf.NAME(…), or for each window, as uda.NAME(…)."""
    script: str
    """Path of the script, relative to the pipeline file."""
    output_type: Annotated[AsaType, BeforeValidator(_output_type)]
    argument_types: tuple[Annotated[AsaType | Literal["any"], BeforeValidator(_argument_type)], ...] | None = None
    """Types of its arguments; None if they are not declared."""


ParameterName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
ParameterValue = Annotated[
    Annotated[int, Strict()] | Annotated[float, Strict(), Field(allow_inf_nan=False)] | Annotated[str, Strict()],
    BeforeValidator(_parameter_value),
]


class Quality(Section):
    """What an output must pass."""

    suite: str | None = None
    """Name of a file in expectations/, or a path next to the pipeline file; None for the built-in checks only."""
    parameters: dict[ParameterName, ParameterValue] = Field(default_factory=dict)
    """Values of the suite's `$PARAMETER`s, by name, unless a run gives others."""
    expect_rows: Annotated[bool, Strict()] = True
    """Whether every slice in which the query reads events should have rows; not so for alerts."""


class Approval(Section):
    """A person may approve a run that its audit stopped. Only Airflow asks."""

    wait_hours: Annotated[Number, Field(ge=1, le=720)] = 24
    """How long a run waits for an answer, in hours, up to 30 days."""


Price = Annotated[Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)], reject_bool("write a number")]


class Prices(Section):
    """What the storage and the machine cost, for the estimates of `recapture plan`."""

    currency: Annotated[str, Field(min_length=1, max_length=8)] = "EUR"
    machine_hour: Price = 0.0
    """Price of the machine, or of all machines of the cluster, for an hour."""
    read_10000: Price = 0.0
    """Price of 10,000 requests that read a blob."""
    write_10000: Price = 0.0
    list_10000: Price = 0.0
    read_gb: Price = 0.0
    """Price of 10⁹ bytes that are read."""


def _instant(written: object) -> datetime:
    advice = "write a time with its zone, such as 2026-03-01T06:00:00Z"
    try:
        instant = written if isinstance(written, datetime) else datetime.fromisoformat(str(written))
    except ValueError:
        raise ValueError(advice) from None
    if instant.tzinfo is None:
        raise ValueError(advice)
    return instant.astimezone(UTC)


Instant = Annotated[datetime, BeforeValidator(_instant)]


class Schedule(Section):
    """What keeps the table up to date: the rules of `recapture update`, and its schedule in Airflow."""

    since: Instant | None = None
    """Start of the first slice that an update keeps; None for the first published slice."""
    until: Instant | None = None
    """End of the last slice that an update keeps; None if the archive goes on."""
    every_minutes: Literal[1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60] = 10
    """Time from one update to the next in Airflow, in minutes."""
    at_most_slices: Annotated[Number, Field(ge=1, le=8784)] = 24
    """Largest number of slices that one update computes."""
    at_most_bytes: Annotated[Number, Field(ge=1)] | None = None
    """Largest size of the blobs of these slices; None for no limit. An update computes one slice at least."""
    provisional: Annotated[bool, Strict()] = False
    """Whether slices that have ended are published before Capture has written everything, and computed again later."""
    quiet_minutes: Annotated[Number, Field(ge=0, le=10_080)] = 30
    """Time without changes after which a stale slice is computed again, in minutes."""
    late_data: Literal["republish", "mark"] = "republish"
    """What happens to published slices whose blobs changed: compute them again, or only show them as stale."""
    outdated: Literal["keep", "recompute"] = "keep"
    """What happens to published slices of another definition: nothing, or compute them again."""


Event = Literal["blocked", "approved", "recovered"]
"""What a notification tells: a run was stopped by its audit, a person approved it, or blocked slices are published."""


class Notification(Section):
    """A notifier of Airflow, and the events that it tells."""

    notifier: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$")]
    """Import path of the notifier's class."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Arguments of the notifier. Its template fields may use `recapture`."""
    events: tuple[Event, ...] = ("blocked", "approved", "recovered")


class Output(Section):
    """A published Delta table."""

    alias: Alias
    """Name after INTO."""
    table: str
    quality: Quality | None = None
    """What the rows must pass; None for the top-level section, or for the built-in checks."""
    change_feed: Annotated[bool, Strict()] = False
    """Whether commits to the table write Delta's change data feed."""

    @property
    def metrics_table(self) -> str:
        """Address of the table with the metrics of its slices."""
        return f"{self.table.rstrip('/')}_metrics"

    @property
    def publications_table(self) -> str:
        """Address of the table that names the run each slice holds; used for the first output."""
        return f"{self.table.rstrip('/')}_publications"

    @property
    def quarantine_table(self) -> str:
        """Address of the table with the quarantined events and blobs; used for the first output."""
        return f"{self.table.rstrip('/')}_quarantine"

    @property
    def verdicts_table(self) -> str:
        """Address of the table with the events that are not on time; used for the first output, if asked for."""
        return f"{self.table.rstrip('/')}_verdicts"

    @property
    def tables(self) -> tuple[str, ...]:
        """Addresses of all tables of this output, but for that of the verdicts."""
        return self.table, self.metrics_table, self.quarantine_table, self.publications_table
