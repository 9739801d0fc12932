"""The input of a pipeline file: a section for each format of blobs (capture format)."""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag

from recapture.archive.blob_names import BlobNames
from recapture.archive.manifest import SEARCH_HOURS, ArrivalTime
from recapture.errors import DefinitionError
from recapture.formats.event_hubs_names import DEFAULT_PATH as CAPTURE_PATH
from recapture.formats.event_hubs_names import CaptureNames
from recapture.formats.inflate import Limits
from recapture.formats.iot_hub_names import DEFAULT_PATH as IOT_HUB_PATH
from recapture.formats.iot_hub_names import IotHubNames
from recapture.formats.path_names import DATE_FORMAT, InputPath
from recapture.model import INPUT_METADATA, InputMetadata, fields
from recapture.query.model import CompiledQuery

if TYPE_CHECKING:
    from recapture.formats.events import Reader


def no_switch(instead: str) -> BeforeValidator:
    """YAML's on and off are no numbers."""

    def check(value: object) -> object:
        if isinstance(value, bool):
            raise ValueError(instead)
        return value

    return BeforeValidator(check)


Number = Annotated[int, no_switch("write a number")]
Mebibytes = Annotated[Number, Field(ge=1, le=65_536)]


class Section(BaseModel):
    """A mapping of the pipeline file; a key that it does not know is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


_NOT_READING = (
    *("alias", "container", "arrival_time", "search_hours", "partitions", "on_damaged_blob", "empty_blobs"),
    *("capture_interval_seconds", "batch_interval_seconds", "namespace", "event_hub"),
)
"""Keys of an input that say where blobs are and which are looked for, not what their events are."""


class _Input(Section):
    """What every format has."""

    interval_name: ClassVar[str]
    """What an event waits for before its blob is written."""

    format: str
    alias: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")]
    container: str
    arrival_time: ArrivalTime = ArrivalTime.BLOB_LAST_MODIFIED
    search_hours: Annotated[Number, Field(ge=0, le=87_600)] = SEARCH_HOURS
    """How long after the time in its name a blob is still found, beyond the interval; up to ten years."""
    partitions: Annotated[Number, Field(ge=1, le=10_000)] | None = None
    """How many there are; None where only blobs tell."""
    on_damaged_blob: Literal["stop", "quarantine"] = "stop"
    max_blob_mib: Mebibytes = Limits.blob
    """What a compressed blob may inflate to."""

    @property
    def limits(self) -> Limits:
        return Limits(blob=self.max_blob_mib)

    @property
    def metadata(self) -> InputMetadata:
        """What a query can read of an event, beside its body."""
        return INPUT_METADATA[self.format]

    @property
    def reading(self) -> dict[str, Any]:
        """The keys that decide what the events of given blobs are; for a run's digest."""
        return self.model_dump(mode="json", exclude=set(_NOT_READING))

    def at_odds(self) -> Iterator[tuple[str, str]]:
        """What is wrong between its keys: the key, and the reason."""
        yield from ()

    def reader(self, query: CompiledQuery) -> "Reader":
        """How its blobs are read for a query. Loads what decodes them: no DAG file should ask."""
        raise NotImplementedError


class _AvroInput(_Input):
    """Blobs that may be Avro files."""

    max_block_mib: Mebibytes = Limits.block
    """What a compressed block of a blob may inflate to."""

    @property
    def limits(self) -> Limits:
        return Limits(self.max_block_mib, self.max_blob_mib)


class CaptureInput(_AvroInput):
    """The Capture container of an event hub."""

    interval_name: ClassVar[str] = "capture interval"

    format: Literal["EventHubsCapture"] = "EventHubsCapture"
    path: str = CAPTURE_PATH
    namespace: Annotated[str, Field(min_length=1)]
    event_hub: Annotated[str, Field(min_length=1)]
    capture_interval_seconds: Annotated[Number, Field(ge=60, le=900)] = 300
    empty_blobs: bool = True
    """Whether Capture writes a blob for an interval without events, which proves that there were none."""

    @property
    def reading(self) -> dict[str, Any]:
        """As in every input, but for the path: the names of the blobs say what it says."""
        return {name: value for name, value in super().reading.items() if name != "path"}

    @cached_property
    def names(self) -> BlobNames:
        return CaptureNames(self.namespace, self.event_hub, self.path)

    @property
    def interval_seconds(self) -> int:
        return self.capture_interval_seconds

    @property
    def source(self) -> str:
        """What the DAG calls it."""
        return f"{self.namespace}/{self.event_hub}"

    @property
    def tags(self) -> tuple[str, ...]:
        return self.namespace, self.event_hub

    def reader(self, query: CompiledQuery) -> "Reader":
        from recapture.formats.event_hubs_reader import CaptureReader

        return CaptureReader(self.limits)


def _iot_hub(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9-]{1,48}[A-Za-z0-9])", name):
        raise ValueError("write the hub's own name: 3 to 50 letters, digits and hyphens, without .azure-devices.net")
    return name


class IotHubInput(_AvroInput):
    """The container of a storage endpoint to which an IoT hub routes messages."""

    interval_name: ClassVar[str] = "batch interval"
    empty_blobs: ClassVar[bool] = False

    format: Literal["IotHub"]
    path: str = IOT_HUB_PATH
    iot_hub: Annotated[str, AfterValidator(_iot_hub)]
    batch_interval_seconds: Annotated[Number, Field(ge=60, le=720)] = 300
    """The endpoint's batchFrequencyInSeconds."""

    @cached_property
    def names(self) -> BlobNames:
        return IotHubNames(self.iot_hub, self.path)

    @property
    def interval_seconds(self) -> int:
        return self.batch_interval_seconds

    @property
    def source(self) -> str:
        """What the DAG calls it."""
        return self.iot_hub

    @property
    def tags(self) -> tuple[str, ...]:
        return (self.iot_hub,)

    def reader(self, query: CompiledQuery) -> "Reader":
        from recapture.formats.iot_hub_reader import IotHubReader

        return IotHubReader(self.limits)


def _date_format(written: str) -> str:
    try:
        InputPath(date_format=written)
    except DefinitionError as error:
        raise ValueError(str(error)) from error
    return written


class _PathInput(_Input):
    """Blobs that somebody's own writer put below a path."""

    interval_name: ClassVar[str] = "time until its blob is written"
    empty_blobs: ClassVar[bool] = False

    path: str = ""
    date_format: Annotated[str, AfterValidator(_date_format)] = DATE_FORMAT
    time_format: Literal["HH", "HH/mm", "HH-mm"] = "HH"

    @cached_property
    def names(self) -> BlobNames:
        return self._path

    @cached_property
    def _path(self) -> InputPath:
        return InputPath(self.path, self.date_format, self.time_format)

    @property
    def interval_seconds(self) -> int:
        """How long the time in a name lasts; 0 where there is none."""
        return self._path.period_seconds

    @property
    def source(self) -> str:
        """What the DAG calls it."""
        return self.path or self.container

    @property
    def tags(self) -> tuple[str, ...]:
        return (self.format,)

    def at_odds(self) -> Iterator[tuple[str, str]]:
        if self.partitions is not None and not self.names.partitioned:
            yield "partitions", "the path has no {partition}, so there is only one: leave this key out"


class _PlainInput(_PathInput):
    """Blobs that hold nothing but bodies."""

    def at_odds(self) -> Iterator[tuple[str, str]]:
        yield from super().at_odds()
        if self.arrival_time is ArrivalTime.EVENT_ENQUEUED:
            reason = "their blobs do not tell when an event was enqueued: only BlobLastModified is known"
            yield "arrival_time", f"{self.format}: {reason}"


class JsonInput(_PlainInput):
    """JSON lines."""

    format: Literal["Json"]

    def reader(self, query: CompiledQuery) -> "Reader":
        from recapture.formats.lines import JsonReader

        return JsonReader(self.limits)


class CsvInput(_PlainInput):
    """Delimited lines, the first of which names the columns."""

    format: Literal["Csv"]
    delimiter: Literal[",", ";", "\t", "|", " "] = ","

    def reader(self, query: CompiledQuery) -> "Reader":
        from recapture.formats.csv import CsvReader

        columns = (*query.body_columns, *fields(query.timestamp_by))
        fields_read = tuple(sorted({column.path[0].lower() for column in columns if column.path}))
        return CsvReader(self.delimiter, fields_read, self.limits)


FieldPath = Annotated[str, Field(pattern=r"^[^.]+(\.[^.]+)*$")]
"""A field's name; dots step into records."""


class ServiceBusFields(Section):
    """In which fields of a line the parts of a message are."""

    sequence_number: FieldPath = "SequenceNumber"
    enqueued_time: FieldPath = "EnqueuedTimeUtc"
    body: FieldPath = "Body"


class ServiceBusInput(_PathInput):
    """JSON lines into which somebody wrote the messages of a queue or a subscription."""

    format: Literal["ServiceBus"]
    fields: ServiceBusFields = ServiceBusFields()

    def reader(self, query: CompiledQuery) -> "Reader":
        from recapture.formats.service_bus import ServiceBusReader

        return ServiceBusReader(self.fields.sequence_number, self.fields.enqueued_time, self.fields.body, self.limits)

    def at_odds(self) -> Iterator[tuple[str, str]]:
        yield from super().at_odds()
        if self.arrival_time is ArrivalTime.EVENT_ENQUEUED and not self.names.timed:
            reason = "without {date} in the path no name tells which blobs hold what was enqueued in an hour"
            yield "arrival_time", f"{reason}: write {{date}}, or take BlobLastModified"


_FORMATS: dict[str, type[_Input]] = {
    get_args(section.model_fields["format"].annotation)[0]: section
    for section in (CaptureInput, IotHubInput, ServiceBusInput, JsonInput, CsvInput)
}


def format_of(section: Any) -> str:
    """What a section says, of whatever form; that of Capture where it says nothing."""
    if isinstance(section, _Input):
        return section.format
    return str(section.get("format", "EventHubsCapture")) if isinstance(section, dict) else "EventHubsCapture"


def formats_with(key: str) -> list[str]:
    """The formats of an input that have a key."""
    return [name for name, section in _FORMATS.items() if key in section.model_fields]


Input = Annotated[
    Annotated[CaptureInput, Tag("EventHubsCapture")]
    | Annotated[IotHubInput, Tag("IotHub")]
    | Annotated[ServiceBusInput, Tag("ServiceBus")]
    | Annotated[JsonInput, Tag("Json")]
    | Annotated[CsvInput, Tag("Csv")],
    Discriminator(format_of),
]
