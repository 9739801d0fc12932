"""Candidate keys: what TIMESTAMP BY … OVER could name, and what tells devices apart."""

import itertools
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recapture.formats.bodies import Projection
from recapture.formats.fields import count_values, fields_of
from recapture.model import AsaType, InputColumn, Metadata, MetadataColumn, dateadd_fields, time_fields
from recapture.ordering.chunks import Chunk
from recapture.query.model import CompiledInput
from recapture.time_model.key_codes import KeyCodes, has_key

MAX_CANDIDATES = 3
"""Largest number of candidate keys, in addition to the query's own key and to no key."""
MIN_SHARE = 0.99
"""Smallest share of the events that have a value of a candidate key: an event without one would be lost."""
MIN_EVENTS_PER_VALUE = 2
"""Smallest number of events that have the same value of a candidate key, on average."""
MIN_INTEGERS = 3
"""Smallest number of distinct integers of a candidate key: 0 and 1 are a state."""
SAMPLED_EVENTS = 20_000
"""Number of events in which candidate keys are looked for."""
MAX_FIELDS = 100
"""Number of fields of the bodies that may be candidate keys, the first ones: a sender can send any number."""
_KINDS = (AsaType.STRING, AsaType.BIGINT)
_KINDS_READ = {*_KINDS, None}
_OF_SENDERS = (Metadata.PARTITION_KEY, Metadata.PUBLISHER, Metadata.USER, Metadata.IOT_HUB, Metadata.ROUTED)


@dataclass(frozen=True)
class Key:
    """A key after OVER; without columns, none."""

    columns: tuple[InputColumn | MetadataColumn, ...]

    @property
    def names(self) -> list[str]:
        """Names of the columns, without the sign that distinguishes metadata from fields."""
        return [column.name.removeprefix("@") for column in self.columns]

    def __str__(self) -> str:
        return ", ".join(self.names) or "none"

    @property
    def clause(self) -> str:
        """The use of the key in a sentence."""
        return f"with OVER {self}" if self.columns else "without OVER"


@dataclass(frozen=True)
class Keys:
    """The keys that are compared."""

    own: Key
    """Key of the query."""
    candidates: tuple[Key, ...]
    """Other keys; none first, unless it is the query's."""
    devices: Key
    """Key that tells devices apart: the query's, or the candidate that most likely does, or none."""

    @property
    def all(self) -> tuple[Key, ...]:
        return (self.own, *self.candidates)


def choose_keys(compiled: CompiledInput, sample: Chunk) -> Keys:
    """Return the query's key, and candidates: no key, and up to MAX_CANDIDATES columns of the sample.

    A column is a candidate if it holds strings or integers and no times, if nearly every event has it, and if its
    values repeat: it has two or more (three or more integers), each in MIN_EVENTS_PER_VALUE events or more on average.
    And it must plausibly identify a device: it is the column that most likely names devices, or nested with it. Columns
    that the query reads come first, then those with the most values.
    """
    own = Key(compiled.over)
    rows = np.linspace(0, len(sample) - 1, min(len(sample), SAMPLED_EVENTS)).astype(np.int64)
    events = sample.taken(rows)
    read: list[InputColumn | MetadataColumn] = [*compiled.columns, *compiled.metadata]
    kinds = _kinds(compiled, events)
    found: list[InputColumn | MetadataColumn] = [column for column in kinds if column not in read]
    integers = {column for column, types in kinds.items() if AsaType.STRING not in types}
    times = (*time_fields(compiled.timestamp_by), *dateadd_fields(compiled.timestamp_by))
    values: dict[InputColumn | MetadataColumn, pa.Array] = {}
    distinct: dict[InputColumn | MetadataColumn, int] = {}
    for column in filter(_may_identify, [*read, *found]):
        present = column_values(column, events)
        count, distinct[column] = len(present) - present.null_count, len(present.drop_null().unique())
        frequent = count >= MIN_SHARE * len(events) and count >= MIN_EVENTS_PER_VALUE * distinct[column]
        least = MIN_INTEGERS if column in integers else 2
        if frequent and distinct[column] >= least and column not in times:
            values[column] = present

    def likeliness(column: InputColumn | MetadataColumn) -> tuple[bool, bool, int]:
        """Return how likely a column names devices: more so what senders say of themselves, and less so integers."""
        return isinstance(column, MetadataColumn), column not in integers, distinct[column]

    device = max(values, key=likeliness, default=None)
    ranked = [
        (column not in read, -distinct[column], Key((column,)))
        for column in values
        if device is not None and _are_nested(values[column], values[device])
    ]
    ranked = sorted((entry for entry in ranked if entry[2] != own), key=lambda entry: entry[:2])[:MAX_CANDIDATES]
    keys = [key for _, _, key in ranked]
    most_values = min(ranked, key=lambda entry: entry[1])[2] if ranked else Key(())
    devices = Key((device,)) if device is not None and Key((device,)) in keys else most_values
    none = [Key(())] if own.columns else []
    return Keys(own, (*none, *keys), own if own.columns else devices)


def _are_nested(left: pa.Array, right: pa.Array) -> bool:
    """Return whether a value of one column nearly always has one value of the other, as a sensor has one device."""
    return _determines(left, right) or _determines(right, left)


def _determines(key: pa.Array, value: pa.Array) -> bool:
    """Return whether nearly all events with the same key have the same value."""
    pairs = pa.table({"key": key, "value": value}).group_by(["key", "value"]).aggregate([([], "count_all")])
    most = pairs.group_by("key").aggregate([("count_all", "max")])
    return bool(pc.sum(most["count_all_max"]).as_py() >= MIN_SHARE * len(key))


def _kinds(compiled: CompiledInput, sample: Chunk) -> dict[InputColumn | MetadataColumn, Collection[AsaType | None]]:
    """Return the fields of bodies that hold strings or integers, as the query declares or spells them."""
    known = {column.path: column for column in (*compiled.columns_to_check, *compiled.columns)}
    by_name = {tuple(step.lower() for step in path): column for path, column in known.items()}
    fields: dict[InputColumn | MetadataColumn, Collection[AsaType | None]] = {}
    documents = sample.decoder.as_json(sample.body)
    found = fields_of([count_values(documents, sample.decoder.only_strings)])
    frequent = (field for field in found if field.events >= MIN_SHARE * len(sample) and set(field.kinds) <= _KINDS_READ)
    for field in itertools.islice(frequent, MAX_FIELDS):
        unread = InputColumn(field.path, AsaType.STRING, declared=False)
        fields[by_name.get(tuple(step.lower() for step in field.path), unread)] = field.kinds
    return fields


def _may_identify(column: InputColumn | MetadataColumn) -> bool:
    if isinstance(column, MetadataColumn):
        return column.metadata in _OF_SENDERS
    return column.type in _KINDS and not column.is_kind and bool(column.path)


def column_values(column: InputColumn | MetadataColumn, chunk: Chunk) -> pa.Array:
    """Return the values of a column, which must have been read if it is metadata."""
    if isinstance(column, MetadataColumn):
        return chunk.metadata(column)
    return chunk.decoded(Projection([column])).columns[column]


def numbered(codes: KeyCodes, scope: pa.Array) -> pa.Array:
    """Return the number of each scope (int64); NULL where a column of its key is NULL."""
    present = has_key(scope)
    numbers = np.zeros(len(scope), np.int64)
    if present.any():
        numbers[present] = codes.encode(scope.filter(pa.array(present)))
    return pa.array(numbers, mask=~present)


def names_of(columns: Collection[pa.Array]) -> pa.Array:
    """Return the values of the columns of a key as one text; NULL if one is NULL."""
    texts = [values.cast(pa.string()) for values in columns]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, ", ")
