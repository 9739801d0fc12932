"""Bodies of the usual form (`scan`) as typed columns, without DuckDB.

What is read here of a body is what `decoder` would read of it, and every other body is left to it.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.formats.bodies import Bodies, Projection
from recapture.formats.json_bodies import scan
from recapture.formats.json_bodies.scan import MARKED, MISSING, TOP, VALUE, WRITTEN, Fields, Values
from recapture.formats.json_bodies.values import convert
from recapture.formats.views import Located, located
from recapture.model import AsaType, InputColumn
from recapture.tokens import MARK

_KINDS = {
    AsaType.STRING: scan.STRING,
    AsaType.DATETIME: scan.STRING,
    AsaType.FLOAT: scan.FLOAT,
    AsaType.BIGINT: scan.BIGINT,
    AsaType.BIT: scan.BIT,
}
_SAMPLE = 256
"""Number of bodies that are scanned first: the others are scanned if most of these have the usual form."""
_MARK_SIZE = len(MARK.encode())
_MAX_SIZE = 2**30
"""Largest size of all bodies together, in bytes: an array of strings holds no more than twice as much."""
_BODIES_PER_RUN = 16
"""The bodies are scanned if as many, on average, follow one another in one buffer."""


def usual_bodies(bodies: pa.Array, projection: Projection) -> tuple[Bodies, NDArray[np.bool_]] | None:
    """Return what is read of bodies (binary, or views), and which of them have the usual form: the rest means nothing.

    Return None if the columns cannot be scanned, or few bodies seem to have that form.
    """
    columns, timestamp_fields = projection.valued, projection.timestamp_fields
    read = tuple(dict.fromkeys([*columns, *timestamp_fields]))
    fields = _fields(read) if _are_strings(timestamp_fields) else None
    if fields is None:
        return None
    where = located(bodies)
    if not _are_worth_it(where, fields):
        return None
    values = _scanned(where, fields, len(bodies))
    arrays = {column: _array(where, values, number) for number, column in enumerate(read)}
    usual = values.usual
    converted = {column: arrays[column] for column in columns}
    for number, column in enumerate(columns):
        if column in projection.declared and len(column.path) == 1:
            usual &= values.present[number] != MISSING
        if column.type is AsaType.DATETIME:
            converted[column] = convert(arrays[column], column.type, strict=True)
            if column in projection.declared or column not in timestamp_fields:
                is_time = pc.equal(converted[column].is_valid(), arrays[column].is_valid())
                usual &= is_time.to_numpy(zero_copy_only=False)
    strings = {column: arrays[column] for column in timestamp_fields}
    return Bodies(converted, strings, pa.nulls(len(bodies), pa.string())), usual


def _are_strings(columns: Iterable[InputColumn]) -> bool:
    return all(_KINDS.get(column.type) == scan.STRING for column in columns)


def _fields(columns: tuple[InputColumn, ...]) -> Fields | None:
    """Return what is scanned: the columns, then the records that have them. None if a column cannot be scanned."""
    for column in columns:
        if not column.path or column.is_kind or column.type not in _KINDS or not "".join(column.path).isascii():
            return None
    paths = [tuple(step.lower() for step in column.path) for column in columns]
    records = sorted({path[:depth] for path in paths for depth in range(1, len(path))}, key=len)
    entries = [*paths, *records]
    if len(set(entries)) < len(entries):
        return None
    numbers = {(): TOP} | {entry: number for number, entry in enumerate(entries)}
    names = [path[-1].encode() for path in entries]
    kinds = [scan.TOKEN if column.is_token else _KINDS[column.type] for column in columns]
    return Fields(
        np.frombuffer(b"".join(names), np.uint8),
        np.cumsum([0, *map(len, names)], dtype=np.int64),
        np.array(kinds + [scan.RECORD] * len(records), np.int8),
        np.array([numbers[path[:-1]] for path in entries], np.int64),
    )


def _are_worth_it(where: Located, fields: Fields) -> bool:
    """Return whether most of the first bodies have the usual form, and a scan is not interrupted too often."""
    rows = len(where.places)
    if not rows or len(where.runs) * _BODIES_PER_RUN > rows + _SAMPLE or where.sizes.sum() > _MAX_SIZE:
        return False
    usual = _scanned(where, fields, min(rows, _SAMPLE)).usual
    return bool(2 * np.count_nonzero(usual) > len(usual))


def _scanned(where: Located, fields: Fields, rows: int) -> Values:
    """Return what is noted of the first bodies; of unusual ones, that every field is missing."""
    size = len(fields.kinds), rows
    present, numbers, floats, sizes = (np.zeros(size, type_) for type_ in (np.int8, np.int64, np.float64, np.int32))
    values = Values(fields.kinds, np.zeros(rows, np.bool_), present, numbers, floats, sizes)
    for buffer, begin, end in where.runs:
        if begin < rows:
            scan.scan(where.buffers[buffer], where.places, where.sizes, begin, min(end, rows), fields, values)
    if not values.usual.all():
        present[:, ~values.usual] = MISSING
        sizes[:, ~values.usual] = 0
    return values


def _array(where: Located, values: Values, field: int) -> pa.Array:
    """Return the values of a field; NULL where a body has none. Those of a datetime are strings."""
    present, null = values.present[field], values.present[field] < VALUE
    match values.kinds[field]:
        case scan.FLOAT:
            floats, written = values.floats[field], present == WRITTEN
            if written.any():
                floats[written] = _copied(where, values, field).filter(pa.array(written)).cast(pa.float64()).to_numpy()
            return pa.array(floats, mask=null)
        case scan.BIT:
            return pa.array(values.numbers[field] != 0, mask=null)
        case scan.BIGINT:
            return pa.array(values.numbers[field], mask=null)
    return _copied(where, values, field)


def _copied(where: Located, values: Values, field: int) -> pa.Array:
    """Return what lies in the buffers of a field (string); NULL where a body has none."""
    present, sizes = values.present[field], values.sizes[field]
    bounds = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes + _MARK_SIZE * (present == MARKED), out=bounds[1:])
    copies = np.empty(bounds[-1], np.uint8)
    for buffer, begin, end in where.runs:
        scan.copy_values(where.buffers[buffer], begin, end, present, values.numbers[field], sizes, bounds, copies)
    validity = np.packbits(present >= VALUE, bitorder="little")
    return pa.StringArray.from_buffers(len(sizes), pa.py_buffer(bounds), pa.py_buffer(copies), pa.py_buffer(validity))
