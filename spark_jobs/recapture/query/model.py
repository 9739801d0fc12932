"""A compiled query: what it reads of an event, which times it asks for, and the Spark SQL that computes its rows."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from recapture.time_model.windows import HoppingWindow, Reach, SessionWindow


class AsaType(StrEnum):
    """The types of ASA (time model, section 6)."""

    BIGINT = "bigint"
    FLOAT = "float"
    TEXT = "nvarchar(max)"
    DATETIME = "datetime"
    BIT = "bit"
    RECORD = "record"
    ARRAY = "array"


@dataclass(frozen=True)
class InputColumn:
    """One field of the event's body that the query reads."""

    path: tuple[str, ...]
    """From the body's root: ("site", "id") for `site.id`; () for the whole body."""
    type: AsaType

    @property
    def name(self) -> str:
        """The column's name in the view of ordered events: the path joined by dots."""
        return ".".join(self.path) or "@body"


class Metadata(StrEnum):
    """What an input adds to each event."""

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
    """One of the event's own properties."""
    IOT_HUB = "IoTHub"
    """What IoT Hub knows of a message, such as the device that sent it."""


@dataclass(frozen=True)
class InputMetadata:
    """Which metadata the events of an input have."""

    format: str
    """Of its blobs."""
    known: tuple[Metadata, ...]


_OF_ANY_BLOB = (Metadata.PARTITION_ID, Metadata.EVENT_PROCESSED, Metadata.BLOB_NAME, Metadata.BLOB_LAST_MODIFIED)
INPUT_METADATA = {
    of_input.format: of_input
    for of_input in (
        InputMetadata("EventHubsCapture", tuple(each for each in Metadata if each is not Metadata.IOT_HUB)),
        InputMetadata("IotHub", (*_OF_ANY_BLOB, Metadata.EVENT_ENQUEUED, Metadata.USER, Metadata.IOT_HUB)),
        InputMetadata("ServiceBus", (*_OF_ANY_BLOB, Metadata.EVENT_ENQUEUED, Metadata.SEQUENCE_NUMBER)),
        InputMetadata("Json", _OF_ANY_BLOB),
        InputMetadata("Csv", _OF_ANY_BLOB),
    )
}
"""By format."""
CAPTURE_METADATA = INPUT_METADATA["EventHubsCapture"]


@dataclass(frozen=True)
class MetadataColumn:
    """Metadata that the query reads."""

    metadata: Metadata
    key: str = ""
    """The name of the property; for USER and IOT_HUB only."""

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
        return AsaType.TEXT


@dataclass(frozen=True)
class Instant:
    """A fixed time; ticks."""

    ticks: int


@dataclass(frozen=True)
class Shifted:
    """`base` plus `amount` times `unit`: DATEADD(unit, amount, base). `unit` is in ticks, `amount` a whole number."""

    unit: int
    amount: InputColumn
    base: "Time"


@dataclass(frozen=True)
class FirstOf:
    """The first of several times that is there: COALESCE."""

    candidates: tuple["Time", ...]


Time = InputColumn | MetadataColumn | Instant | Shifted | FirstOf
"""What TIMESTAMP BY says; an InputColumn is the ISO time in a field."""


@dataclass(frozen=True)
class OutputColumn:
    """One column of a published table."""

    name: str
    type: AsaType


@dataclass(frozen=True)
class CompiledOutput:
    """What one SELECT … INTO publishes.

    `sql` reads the view `events`, whose columns are those of the query's `columns` and `metadata` under their names,
    and `_partition` (string), `_slice_start`, `_slice_end`, `_system_timestamp` (bigint, ticks). A datetime there is a
    bigint of ticks; a record or an array is its JSON text.
    It yields the columns of `columns`, in which a datetime is a timestamp, then `slice_start` (timestamp, UTC), and for
    a query with sessions `_unanchored` (boolean): whether the row is one that may have begun before what was read.
    """

    alias: str
    columns: tuple[OutputColumn, ...]
    identity: tuple[str, ...]
    """The columns that make a row's identity, as far as the query selects them: window end, then group keys."""
    sql: str


@dataclass(frozen=True)
class CompiledQuery:
    """An ASAQL query, ready to run."""

    columns: tuple[InputColumn, ...]
    metadata: tuple[MetadataColumn, ...]
    timestamp_by: Time | None
    over: tuple[InputColumn | MetadataColumn, ...]
    reaches: tuple[Reach, ...]
    """Which events the windows need."""
    outputs: tuple[CompiledOutput, ...]
    canonical: str
    """The query in one spelling, whatever its white space and its keywords' letter case."""

    @property
    def look_back(self) -> int:
        """How far before a slice an event may lie and still matter to a row of it; ticks."""
        return max(reach.look_back for reach in self.reaches)

    def needs(self, time: NDArray[np.int64], start: int, end: int) -> NDArray[np.bool_]:
        """Which events, by their System.Timestamp, matter to a row of (start, end]; all in ticks."""
        return np.logical_or.reduce([reach.holds(time, start, end) for reach in self.reaches])

    def ends_windows_every(self, length: int) -> bool:
        """Return whether events that are read in so many ticks always have a window that ends in them."""
        windows = [reach.window for reach in self.reaches]
        return not any(
            isinstance(window, SessionWindow) or (isinstance(window, HoppingWindow) and window.hop > length)
            for window in windows
        )

    @property
    def body_columns(self) -> tuple[InputColumn, ...]:
        """All that is read of a body: for the rows, for OVER and for TIMESTAMP BY."""
        over = [column for column in self.over if isinstance(column, InputColumn)]
        return tuple(dict.fromkeys([*self.columns, *over, *amounts(self.timestamp_by)]))


def fields(time: Time | None) -> tuple[InputColumn, ...]:
    """The fields whose text is an ISO time, for a TIMESTAMP BY."""
    match time:
        case InputColumn():
            return (time,)
        case Shifted():
            return fields(time.base)
        case FirstOf():
            return tuple(field for candidate in time.candidates for field in fields(candidate))
    return ()


def amounts(time: Time | None) -> tuple[InputColumn, ...]:
    """The fields that a TIMESTAMP BY counts with."""
    match time:
        case Shifted():
            return (time.amount, *amounts(time.base))
        case FirstOf():
            return tuple(amount for candidate in time.candidates for amount in amounts(candidate))
    return ()
