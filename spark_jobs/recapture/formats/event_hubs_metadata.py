"""The metadata of Event Hubs Capture: the columns of a query that come from a record's other fields."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.archive.pinning import PinnedBlob
from recapture.errors import DamagedBlobError
from recapture.formats.duckdb_sql import one_array, utf8
from recapture.formats.enqueued_times import UNREAD, read_times
from recapture.formats.events import ENQUEUED, metadata_of
from recapture.formats.property_records import property_records
from recapture.model import ROUTED_TIME, Metadata, MetadataColumn
from recapture.time_model import ticks

_FIELDS = {
    Metadata.EVENT_ENQUEUED: ("EnqueuedTimeUtc", "SystemProperties"),
    Metadata.OFFSET: ("Offset",),
    Metadata.PARTITION_KEY: ("SystemProperties",),
    Metadata.PUBLISHER: ("SystemProperties",),
    Metadata.USER: ("Properties",),
    Metadata.ROUTED: ("SystemProperties",),
}
_ENQUEUED = "%m/%d/%Y %I:%M:%S %p"
_LATEST_MILLISECOND = (ticks.LARGEST - ticks.UNIX_EPOCH) // ticks.TICKS_PER_MILLISECOND


def fields_of(columns: Iterable[MetadataColumn]) -> tuple[str, ...]:
    """Return the fields of a record that the columns come from."""
    return tuple(dict.fromkeys(field for column in columns for field in _FIELDS.get(column.metadata, ())))


def read(columns: Iterable[MetadataColumn], pinned: PinnedBlob, events: pa.Table) -> dict[MetadataColumn, pa.Array]:
    """Return the columns of the events of one blob, which were decoded with `fields_of` them; a datetime is in ticks.

    If EventProcessedUtcTime is the enqueued time, its fields must be decoded too. Raise DamagedBlobError if an
    enqueued time cannot be read.
    """
    own: dict[MetadataColumn, pa.Array] = {}
    for column in (*columns, *([ENQUEUED] if pinned.enqueued else [])):
        match column.metadata:
            case Metadata.EVENT_ENQUEUED:
                own[column] = _enqueued(pinned.blob.name, events)
            case Metadata.SEQUENCE_NUMBER:
                own[column] = one_array(events["SequenceNumber"])
            case Metadata.OFFSET:
                own[column] = one_array(events["Offset"])
            case Metadata.PARTITION_KEY:
                own[column] = string_of(one_array(events["SystemProperties"]), "x-opt-partition-key")
            case Metadata.PUBLISHER:
                own[column] = string_of(one_array(events["SystemProperties"]), "x-opt-publisher")
            case Metadata.USER if not column.key:
                own[column] = record_of(one_array(events["Properties"]))
            case Metadata.USER:
                own[column] = string_of(one_array(events["Properties"]), column.key)
            case Metadata.ROUTED if column.key == ROUTED_TIME:
                own[column] = _times(pinned.blob.name, events, column.key)
            case Metadata.ROUTED:
                own[column] = string_of(one_array(events["SystemProperties"]), column.key)
    return metadata_of(columns, pinned, events.num_rows, own)


def string_of(properties: pa.MapArray, key: str) -> pa.Array:
    """Return a property of every event as a string: numbers in decimals, bytes if they are UTF-8; otherwise NULL."""
    return _strings(len(properties), _values(properties, key))


def record_of(properties: pa.MapArray) -> pa.Array:
    """Return the properties of every event as a JSON object of strings, each as `string_of` returns it."""
    strings = _strings(len(properties.items), _by_type(properties.items, np.arange(len(properties.items))))
    return property_records(properties.offsets, properties.keys, strings)


def _strings(count: int, by_type: Iterable[tuple[NDArray[np.intp], pa.Array]]) -> pa.Array:
    """Return `count` strings: the values at their places, and NULL at all others."""
    strings = pa.nulls(1, pa.string())
    index = np.zeros(count, np.int64)
    for places, values in by_type:
        index[places] = np.arange(len(places)) + len(strings)
        texts = utf8(values) if pa.types.is_binary(values.type) else values.cast(pa.string())
        strings = pa.concat_arrays([strings, texts])
    return strings.take(pa.array(index))


def _values(properties: pa.MapArray, key: str) -> Iterator[tuple[NDArray[np.intp], pa.Array]]:
    """Yield, by type, the events that have a property and its values; nulls are left out."""
    bounds = properties.offsets.to_numpy()
    entries = np.flatnonzero(pc.equal(properties.keys, key).to_numpy(zero_copy_only=False))
    entries = entries[(entries >= bounds[0]) & (entries < bounds[-1])]
    rows = np.searchsorted(bounds, entries, side="right") - 1
    yield from ((rows[places], values) for places, values in _by_type(properties.items, entries))


def _by_type(union: pa.UnionArray, entries: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], pa.Array]]:
    """Yield, by type, places in `entries` and the values of these entries; nulls are left out."""
    kinds = union.type_codes.to_numpy()[entries]
    indices = union.offsets.to_numpy()[entries]
    for kind in np.unique(kinds).tolist():
        if pa.types.is_null(union.type.field(kind).type):
            continue
        places = np.flatnonzero(kinds == kind)
        yield places, union.field(kind).take(pa.array(indices[places]))


def _enqueued(name: str, events: pa.Table) -> pa.Array:
    """Return the enqueued time of every event, in ticks: to the millisecond if the file has it, else to the second."""
    instants = _instants(name, events, "x-opt-enqueued-time")
    rest = np.flatnonzero(instants < 0)
    if len(rest):
        instants[rest] = seconds(one_array(events["EnqueuedTimeUtc"]).take(pa.array(rest)))
        wrong = np.flatnonzero(instants < 0)
        if len(wrong):
            row = int(wrong[0])
            raise _untimed(name, events, row, f"EnqueuedTimeUtc {events['EnqueuedTimeUtc'][row].as_py()!r}")
    return pa.array(instants)


def _times(name: str, events: pa.Table, key: str) -> pa.Array:
    """Return a system property of every event as a time in ticks; NULL if it is missing."""
    instants = _instants(name, events, key)
    return pa.array(instants, mask=instants < 0)


def _instants(name: str, events: pa.Table, key: str) -> NDArray[np.int64]:
    """Return a system property in milliseconds of every event in ticks; -1 if it is missing."""
    instants = np.full(events.num_rows, -1, np.int64)
    for rows, milliseconds in _values(one_array(events["SystemProperties"]), key):
        if not pa.types.is_int64(milliseconds.type):
            raise _untimed(name, events, int(rows[0]), f"{key} {milliseconds[0].as_py()!r}")
        values = milliseconds.to_numpy()
        wrong = np.flatnonzero((values < 0) | (values > _LATEST_MILLISECOND))
        if len(wrong):
            raise _untimed(name, events, int(rows[wrong[0]]), f"{key} {values[wrong[0]]}")
        instants[rows] = values * ticks.TICKS_PER_MILLISECOND + ticks.UNIX_EPOCH
    return instants


def seconds(enqueued: pa.DictionaryArray) -> NDArray[np.int64]:
    """Return every EnqueuedTimeUtc in ticks; -1 if it is not a time. Equal strings of the dictionary are read once."""
    strings = enqueued.dictionary
    known = read_times(strings)
    odd = np.flatnonzero(known == UNREAD)
    known[odd] = [_second(string) for string in strings.take(pa.array(odd)).to_pylist()]
    return np.append(known, -1)[enqueued.indices.fill_null(-1).to_numpy()]


def _second(string: str) -> int:
    """Return `M/d/yyyy h:mm:ss AM|PM`, UTC, in ticks; -1 if it is not such a time. Strict, and 60 times as slow."""
    try:
        return ticks.from_datetime(datetime.strptime(string, _ENQUEUED).replace(tzinfo=UTC))
    except ValueError:
        return -1


def _untimed(name: str, events: pa.Table, row: int, written: str) -> DamagedBlobError:
    number = events["SequenceNumber"][row].as_py()
    return DamagedBlobError(name, f"event {number} has {written}, so its enqueued time is unknown")
