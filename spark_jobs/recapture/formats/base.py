"""The keys and the behaviour that the `input` sections of all formats share."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict

from recapture.archive.definitions import SEARCH_HOURS, ArrivalTime
from recapture.errors import DefinitionError
from recapture.formats.body_formats import BodyFormat, messages_of
from recapture.formats.compressed_messages import Compression
from recapture.formats.csv_rows import Delimiter
from recapture.formats.events import Reader
from recapture.formats.inflate import Limits
from recapture.formats.messages import Messages
from recapture.formats.path_names import DATE_FORMAT, InputPath, TimeFormat
from recapture.model import InputColumn, InputMetadata, Metadata
from recapture.storage import Address, addresses

BLOB_METADATA = (Metadata.PARTITION_ID, Metadata.EVENT_PROCESSED, Metadata.BLOB_NAME, Metadata.BLOB_LAST_MODIFIED)
"""Metadata of the events of every format: a blob's name and its properties give it."""


def _reject(kind: type, advice: str) -> BeforeValidator:
    def check(value: object) -> object:
        if isinstance(value, kind):
            raise ValueError(advice)
        return value

    return BeforeValidator(check)


def reject_bool(advice: str) -> BeforeValidator:
    """Return a validator that refuses true, false, on and off, which pydantic would read as 1 and 0."""
    return _reject(bool, advice)


def reject_none(advice: str) -> BeforeValidator:
    """Return a validator that refuses a key without a value."""
    return _reject(NoneType, advice)


Number = Annotated[int, reject_bool("write a number")]
Alias = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$")]
"""Name of an input or an output in the query."""
Mebibytes = Annotated[Number, Field(ge=1, le=65_536)]


def _index(written: object) -> object:
    if not written:
        raise ValueError("write a key such as deviceId, or remove the key")
    return [written] if isinstance(written, str) else written


def _container(written: object) -> object:
    if isinstance(written, str | tuple):
        return written
    if not isinstance(written, list) or not written:
        raise ValueError("write an address, or a list of addresses")
    if not all(isinstance(address, str) for address in written):
        raise ValueError("write an address in each line of the list")
    return written[0] if len(written) == 1 else tuple(written)


class Section(BaseModel):
    """A mapping of the pipeline file; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class InputSection(Section):
    """A section under `input`, for events or for reference data, in any format.

    Every section has the attribute `names` (BlobNames): the blob names of the input.
    """

    metadata: ClassVar[InputMetadata | None]
    """Metadata that a query can read of the events; None for reference data."""
    location_keys: ClassVar[tuple[str, ...]] = ("type", "alias", "container")
    """Keys that `reading` leaves out: they do not change what the reader makes of a given blob."""

    format: str
    alias: Alias
    """Name after FROM or JOIN."""
    container: Annotated[Address, BeforeValidator(_container)]
    """Address of the container, or of the folder, that holds the blobs; or those of several."""
    max_blob_mib: Mebibytes = Limits.blob
    """Largest inflated size of a compressed blob, MiB."""

    @property
    def only_strings(self) -> bool:
        """Whether bodies have no other values than strings and null."""
        return False

    @property
    def limits(self) -> Limits:
        """Largest sizes of what a compressed blob inflates to."""
        return Limits(blob=self.max_blob_mib)

    @property
    def reading(self) -> dict[str, Any]:
        """The keys that decide what a given blob holds; a run's digest covers them."""
        return self.model_dump(mode="json", exclude=set(self.location_keys))

    def conflicts(self) -> Iterator[tuple[str, str]]:
        """Yield the keys that contradict other keys, each with the reason and what to do."""
        yield from ()

    def reader(self, columns: Iterable[InputColumn]) -> Reader:
        """Return the reader of the blobs, for a query that reads these columns of the bodies."""
        raise NotImplementedError


class BlobInput(InputSection):
    """The section of an input of events, in any format.

    A format's section adds its keys, and these attributes:
    `interval_seconds` (int): length of the interval that begins at the time in a blob's name; 0 if names have no time.
    `source` (str) and `tags` (tuple of str): the DAG's name for the input, and its tags.
    `empty_blobs` (bool): whether a blob is written for an interval without events.
    """

    metadata: ClassVar[InputMetadata]
    interval_name: ClassVar[str]
    """Name of `interval_seconds` in messages."""
    location_keys: ClassVar[tuple[str, ...]] = (
        *InputSection.location_keys,
        "arrival_time",
        "search_hours",
        "partitions",
        "on_damaged_blob",
        "index",
    )

    type: Literal["Stream"] = "Stream"
    arrival_time: ArrivalTime = ArrivalTime.BLOB_LAST_MODIFIED
    """Time at which an event arrives: LastModified of its blob, or its enqueued time."""
    search_hours: Annotated[Number, Field(ge=0, le=87_600)] = SEARCH_HOURS
    """Longest time between the end of a blob's interval, by its name, and its LastModified; hours, up to ten years."""
    partitions: Annotated[Number, Field(ge=1, le=10_000)] | None = None
    """Number of partitions; None to take those that have blobs."""
    on_damaged_blob: Literal["stop", "quarantine"] = "stop"
    """What a damaged blob does: stop the run, or go into the quarantine."""
    index: Annotated[tuple[Annotated[str, Strict()], ...] | None, BeforeValidator(_index), Field(max_length=4)] = None
    """Keys whose values the tasks note for each blob, so that `find` and `explain` read fewer; None for no index."""

    @property
    def read_as(self) -> str | None:
        """Settings that say how bodies are written, such as "body_format Avro"; None if they are JSON."""
        return None


class AvroInput(BlobInput):
    """The `input` section of a format whose blobs may be Avro files: they hold bodies as they were sent."""

    body_format: BodyFormat = BodyFormat.JSON
    """Format in which the senders write bodies."""
    body_compression: Compression = Compression.NONE
    """Compression of each body."""
    body_delimiter: Delimiter = ","
    """What separates the fields of CSV bodies."""
    max_block_mib: Mebibytes = Limits.block
    """Largest inflated size of one block of an Avro file, MiB."""

    @property
    def messages(self) -> Messages:
        """What takes events out of the bodies."""
        return messages_of(self.body_format, self.body_compression, self.body_delimiter)

    @property
    def only_strings(self) -> bool:
        """Whether bodies have no other values than strings and null."""
        return self.messages.only_strings

    @property
    def read_as(self) -> str | None:
        format_ = f"body_format {self.body_format}" if self.body_format is not BodyFormat.JSON else ""
        compressed = self.body_compression is not Compression.NONE
        compression = f"body_compression {self.body_compression}" if compressed else ""
        return " and ".join(filter(None, (format_, compression))) or None

    @property
    def reading(self) -> dict[str, Any]:
        reading = super().reading
        usual = {"body_format": BodyFormat.JSON, "body_compression": Compression.NONE, "body_delimiter": ","}
        # The digests of runs before there was a choice lack these keys.
        return {key: value for key, value in reading.items() if key not in usual or value != usual[key]}

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from super().conflicts()
        if self.body_format is not BodyFormat.CSV and "body_delimiter" in self.model_fields_set:
            yield "body_delimiter", f"only CSV has a delimiter, and body_format is {self.body_format}: leave it out"
        if self.body_format is BodyFormat.AVRO and self.body_compression is not Compression.NONE:
            yield "body_compression", "an Avro body says itself how it is compressed: leave this key out"

    @property
    def limits(self) -> Limits:
        return Limits(self.max_block_mib, self.max_blob_mib)


def valid_date_format(written: str) -> str:
    """Return a form of {date}. Raise ValueError if it is not one."""
    try:
        InputPath(date_format=written)
    except DefinitionError as error:
        raise ValueError(str(error)) from error
    return written


class PathInput(BlobInput):
    """The `input` section of a format whose blobs the user's own writer put under a path of folders."""

    interval_name: ClassVar[str] = "time until its blob is written"
    empty_blobs: ClassVar[bool] = False

    path: str = ""
    """Pattern of the folders, with the tokens {date}, {time} and {partition}; empty for all blobs."""
    date_format: Annotated[str, AfterValidator(valid_date_format)] = DATE_FORMAT
    """Form of {date}: YYYY, MM and DD in any order, with separators or without."""
    time_format: TimeFormat = "HH"

    @cached_property
    def names(self) -> InputPath:
        return InputPath(self.path, self.date_format, self.time_format)

    @property
    def interval_seconds(self) -> int:
        """Length of the period that a name gives; 0 if names have no time."""
        return self.names.period_seconds

    @property
    def source(self) -> str:
        return self.path or " and ".join(addresses(self.container))

    @property
    def tags(self) -> tuple[str, ...]:
        return (self.format,)

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.partitions is not None and not self.names.partitioned:
            yield "partitions", "the path has no {partition}, so there is only one: leave this key out"


class BodiesInput(PathInput):
    """The `input` section of a format whose blobs contain nothing but bodies."""

    def conflicts(self) -> Iterator[tuple[str, str]]:
        yield from super().conflicts()
        if self.arrival_time is ArrivalTime.EVENT_ENQUEUED:
            reason = "blobs of this format do not contain the time when an event was enqueued: use BlobLastModified"
            yield "arrival_time", f"{self.format}: {reason}"
