"""Conditions on events: which events of a chunk have these values.

A body is parsed only if its bytes may hold the value, so that a rare key costs little more than reading the archive.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.definition.key_names import event_key
from recapture.errors import DefinitionError
from recapture.formats.bodies import Projection
from recapture.formats.event_keys import EventKey
from recapture.formats.views import copied
from recapture.model import InputColumn, InputMetadata, Metadata, MetadataColumn
from recapture.ordering.chunks import Chunk
from recapture.ordering.key_values import number_of, numbers_in

_EXPONENT = r"[0-9][eE][+-]?[0-9]"


@dataclass(frozen=True)
class Condition:
    """A value that a field or the metadata of an event must have."""

    column: EventKey
    value: str

    @property
    def number(self) -> float | None:
        """The value as a number; None if it is not one, or an integer that no float holds exactly."""
        return number_of(self.value)

    def holds(self, strings: pa.Array) -> pa.Array:
        """Return which values have the value of the condition (bool); a number equals it in any spelling."""
        same = pc.fill_null(pc.equal(strings, self.value), False)
        if self.number is None:
            return same
        return pc.or_(same, pc.fill_null(pc.equal(numbers_in(strings), self.number), False))

    def may_hold(self, bodies: pa.Array) -> pa.Array:
        """Return which bodies (binary) may have the value (bool): a body that is false or NULL here does not."""
        has_exponent = self.number is not None and "e" in self.value.lower()
        if has_exponent or not self.value or self.value.startswith(("{", "[")):
            return pc.is_valid(bodies)
        digits, _, decimals = self.value.partition(".")
        text = self.value if self.number is None else f"{digits}.{decimals}".rstrip("0").rstrip(".")
        may_hold = pc.or_(pc.match_substring(bodies, text), pc.match_substring(bodies, "\\"))
        if self.number is None:
            return may_hold
        return pc.or_(may_hold, pc.match_substring_regex(bodies, _EXPONENT))


def condition(text: str, known: InputMetadata) -> Condition:
    """Return the condition KEY=VALUE on the events of an input, which has this metadata.

    KEY is a field of the body, with dots for a field in a record, or the name of metadata, as in a query. Raise
    DefinitionError if the text is not such a condition.
    """
    name, equals, value = text.partition("=")
    if not equals or not all(name.strip().split(".")):
        raise DefinitionError(f"--where {text} is not a condition: write it as deviceId=sensor-7 or site.id=4")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise DefinitionError(f"--where {text!a} is not UTF-8: write it in UTF-8")
    try:
        return Condition(event_key(name, known), value)
    except DefinitionError as error:
        raise DefinitionError(f"--where {error}") from None


@dataclass(frozen=True)
class Selection:
    """Conditions that an event must all fulfil."""

    conditions: Sequence[Condition]

    @property
    def metadata(self) -> tuple[MetadataColumn, ...]:
        """Metadata to read; the partition and the sequence number are read in any case."""
        columns = (condition.column for condition in self.conditions if isinstance(condition.column, MetadataColumn))
        return tuple(column for column in columns if not _is_known(column))

    @property
    def values(self) -> list[tuple[EventKey, str]]:
        """Keys of the conditions, each with its value."""
        return [(condition.column, condition.value) for condition in self.conditions]

    @property
    def partition(self) -> str | None:
        """Partition that the events must be of; None if no condition names it."""
        partition_column = MetadataColumn(Metadata.PARTITION_ID)
        return next((condition.value for condition in self.conditions if condition.column == partition_column), None)

    def rows(self, chunk: Chunk, partition: str) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the events of a chunk of this partition that fulfil all conditions, and those that may.

        The latter hold the bytes of the values, in bodies that cannot be read.
        """
        rows = np.arange(len(chunk))
        for condition in self.conditions:
            if isinstance(condition.column, MetadataColumn) and len(rows):
                values = _metadata(chunk, partition, condition.column).take(pa.array(rows))
                rows = rows[_true(condition.holds(values))]
        fields = [condition for condition in self.conditions if isinstance(condition.column, InputColumn)]
        for condition in fields:
            if len(rows):
                rows = rows[_true(condition.may_hold(copied(chunk.taken(rows).body)))]
        if not fields or not len(rows):
            return rows, rows[:0]
        candidates = chunk.taken(rows)
        columns = [condition.column for condition in fields if isinstance(condition.column, InputColumn)]
        bodies = candidates.decoded(Projection(timestamp_fields=columns))
        holds = [
            _true(condition.holds(bodies.strings[column])) for condition, column in zip(fields, columns, strict=True)
        ]
        return rows[np.logical_and.reduce(holds)], rows[_true(pc.is_valid(bodies.malformed))]


def _is_known(column: MetadataColumn) -> bool:
    return column.metadata in (Metadata.PARTITION_ID, Metadata.SEQUENCE_NUMBER)


def _metadata(chunk: Chunk, partition: str, column: MetadataColumn) -> pa.Array:
    match column.metadata:
        case Metadata.PARTITION_ID:
            return pa.repeat(partition, len(chunk))
        case Metadata.SEQUENCE_NUMBER:
            numbers, _ = chunk.numbers_and_places(np.arange(len(chunk)))
            return numbers.cast(pa.string())
    return chunk.metadata(column).cast(pa.string())


def _true(values: pa.Array) -> NDArray[np.bool_]:
    true: NDArray[np.bool_] = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return true
