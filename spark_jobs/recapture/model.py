"""The vocabulary that all packages share: ASA's types, what a query reads of an event, and what it publishes."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa


class AsaType(StrEnum):
    """The types of ASA (docs/time-model.md, section 6)."""

    BIGINT = "bigint"
    FLOAT = "float"
    STRING = "nvarchar(max)"
    DATETIME = "datetime"
    BIT = "bit"
    RECORD = "record"
    ARRAY = "array"


@dataclass(frozen=True)
class Representation:
    """How values of one ASA type are held on their way from a body to a published table."""

    view: pa.DataType
    """Arrow type in the view of ordered events. A datetime is in ticks; a record or an array is its JSON text."""
    published: pa.DataType
    """Arrow type in published tables."""


TYPES = {
    AsaType.BIGINT: Representation(pa.int64(), pa.int64()),
    AsaType.FLOAT: Representation(pa.float64(), pa.float64()),
    AsaType.STRING: Representation(pa.string(), pa.string()),
    AsaType.DATETIME: Representation(pa.int64(), pa.timestamp("us", tz="UTC")),
    AsaType.BIT: Representation(pa.bool_(), pa.bool_()),
    AsaType.RECORD: Representation(pa.string(), pa.string()),
    AsaType.ARRAY: Representation(pa.string(), pa.string()),
}
"""Representation of each ASA type."""


def kind_name(name: str) -> str:
    """Return the name of the column with the types of the values of another column."""
    return f"@type of {name}"


def path_name(path: tuple[str, ...]) -> str:
    """Return the name of the column with a field: site.id; [@timestamp], as other columns begin with @."""
    name = ".".join(path)
    return f"[{name}]" if name.startswith("@") else name


@dataclass(frozen=True)
class InputColumn:
    """One field of the event's body that the query reads."""

    path: tuple[str, ...]
    """Path from the root of the body: ("site", "id") for `site.id`; () for the whole body."""
    type: AsaType
    declared: bool = field(default=True, compare=False)
    """Whether CREATE TABLE declares the type; otherwise the use of the field decides it."""
    is_kind: bool = False
    """Whether it holds the type that the field's value has in the body, as a string; NULL for JSON null."""

    @property
    def is_token(self) -> bool:
        """Whether it holds tokens (see `tokens`), because nothing decides the type of the field."""
        return self.type is AsaType.STRING and not self.declared and not self.is_kind

    @property
    def name(self) -> str:
        """The column's name in the view of ordered events: the path joined by dots."""
        name = path_name(self.path) or "@body"
        return kind_name(name) if self.is_kind else name


@dataclass(frozen=True)
class JavaScriptFunction:
    """A JavaScript function of the job, which a query calls as udf.NAME(…), or as uda.NAME(…) if it is an aggregate."""

    name: str
    script: str
    output: AsaType
    """Type of what it returns."""
    arguments: tuple[AsaType | None, ...] | None = None
    """Types of its arguments, None for any type; None if the job does not declare its arguments."""
    is_aggregate: bool = False
    """Whether it aggregates the values of a window."""

    @property
    def called_as(self) -> str:
        """Name in a query."""
        return f"{'uda' if self.is_aggregate else 'udf'}.{self.name}"

    @property
    def internal_name(self) -> str:
        """Name in expressions."""
        return f"udf_{self.name.lower()}"


class ShapeComparison(StrEnum):
    """The geospatial functions that compare two shapes."""

    DISTANCE = "ST_DISTANCE"
    INTERSECTS = "ST_INTERSECTS"
    OVERLAPS = "ST_OVERLAPS"
    WITHIN = "ST_WITHIN"

    @property
    def output(self) -> AsaType:
        """Type of what it returns."""
        return AsaType.FLOAT if self is ShapeComparison.DISTANCE else AsaType.BIGINT

    @property
    def internal_name(self) -> str:
        """Name in expressions."""
        return f"geography_{self.lower()}"


class Metadata(StrEnum):
    """The kinds of metadata that an input adds to its events."""

    PARTITION_ID = "PartitionId"
    EVENT_ENQUEUED = "EventEnqueuedUtcTime"
    EVENT_PROCESSED = "EventProcessedUtcTime"
    BLOB_NAME = "BlobName"
    BLOB_LAST_MODIFIED = "BlobLastModifiedUtcTime"
    SEQUENCE_NUMBER = "SequenceNumber"
    OFFSET = "Offset"
    PARTITION_KEY = "PartitionKey"
    PUBLISHER = "Publisher"
    USER = "User"
    """Property that the sender gave the event; `MetadataColumn.key` names it. Without a key, all of them."""
    IOT_HUB = "IoTHub"
    """Property that the IoT hub adds to a message, such as the device that sent it; `MetadataColumn.key` names it."""
    ROUTED = "IoT"
    """Property that an IoT hub adds to a message that it routes to an event hub; `MetadataColumn.key` names it."""


ROUTED_TIME = "iothub-enqueuedtime"
"""Key of ROUTED for when the IoT hub received the message."""


@dataclass(frozen=True)
class InputMetadata:
    """The metadata of the events of one input format."""

    format: str
    """Name of the format, as in the pipeline file."""
    known: tuple[Metadata, ...]
    """Metadata that a query can read."""


@dataclass(frozen=True)
class MetadataColumn:
    """Metadata that the query reads."""

    metadata: Metadata
    key: str = ""
    """Name of the property; only for USER, IOT_HUB and ROUTED."""

    @property
    def name(self) -> str:
        """The column's name in the view of ordered events."""
        return f"@{self.metadata}" + (f".{self.key}" if self.key else "")

    @property
    def type(self) -> AsaType:
        match self.metadata:
            case Metadata.PARTITION_ID | Metadata.SEQUENCE_NUMBER:
                return AsaType.BIGINT
            case Metadata.EVENT_ENQUEUED | Metadata.EVENT_PROCESSED | Metadata.BLOB_LAST_MODIFIED:
                return AsaType.DATETIME
            case Metadata.ROUTED if self.key == ROUTED_TIME:
                return AsaType.DATETIME
            case Metadata.USER if not self.key:
                return AsaType.RECORD
        return AsaType.STRING


@dataclass(frozen=True)
class Instant:
    """A fixed time; ticks."""

    ticks: int


@dataclass(frozen=True)
class Shifted:
    """`base` plus `amount` times `unit`: DATEADD(unit, amount, base). `unit` is in ticks, `amount` an integer."""

    unit: int
    amount: InputColumn
    base: "TimeExpression"


@dataclass(frozen=True)
class FirstOf:
    """The first of several times that is not missing or null: COALESCE."""

    candidates: tuple["TimeExpression", ...]


@dataclass(frozen=True)
class Branch:
    """One WHEN of a CASE: `time`, if `field` holds `text`, which is a token if the field has tokens."""

    field: InputColumn
    text: str
    time: "TimeExpression"


@dataclass(frozen=True)
class Chosen:
    """The time of the first branch whose field holds its text, else `other`: CASE. An `other` of None is NULL."""

    branches: tuple[Branch, ...]
    other: "TimeExpression | None"

    @property
    def times(self) -> "tuple[TimeExpression, ...]":
        """Times that it chooses from."""
        return (*(branch.time for branch in self.branches), *([self.other] if self.other else []))


TimeExpression = InputColumn | MetadataColumn | Instant | Shifted | FirstOf | Chosen
"""Expression after TIMESTAMP BY. An InputColumn stands for a field that holds an ISO time."""


@dataclass(frozen=True)
class OutputColumn:
    """One column of a published table."""

    name: str
    type: AsaType
    written: str | None = None
    """Name in the query, if a table cannot have it; None if it is `name`."""


def published_schema(columns: Iterable[OutputColumn]) -> pa.Schema:
    """Return the Arrow schema of the files of a published table. The comment of a column has its name in the query."""
    return pa.schema(
        [
            pa.field(column.name, TYPES[column.type].published, metadata=column.written and {"comment": column.written})
            for column in columns
        ]
    )


def time_fields(time: TimeExpression | None) -> tuple[InputColumn, ...]:
    """Return the fields whose texts a TIMESTAMP BY reads: ISO times, and what a CASE compares."""
    match time:
        case InputColumn():
            return (time,)
        case Shifted():
            return time_fields(time.base)
        case FirstOf():
            return tuple(field for candidate in time.candidates for field in time_fields(candidate))
        case Chosen():
            compared = (branch.field for branch in time.branches)
            return (*compared, *(field for chosen in time.times for field in time_fields(chosen)))
    return ()


def dateadd_fields(time: TimeExpression | None) -> tuple[InputColumn, ...]:
    """Return the fields whose integers a TIMESTAMP BY adds with DATEADD."""
    match time:
        case Shifted():
            return (time.amount, *dateadd_fields(time.base))
        case FirstOf():
            return tuple(field for candidate in time.candidates for field in dateadd_fields(candidate))
        case Chosen():
            return tuple(field for chosen in time.times for field in dateadd_fields(chosen))
    return ()
