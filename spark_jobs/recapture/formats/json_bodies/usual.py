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
from recapture.formats.json_bodies.rewriting import copy_json
from recapture.formats.json_bodies.scan import MARKED, MISSING, TOP, VALUE, WRITTEN, Fields, Values
from recapture.formats.json_bodies.values import convert
from recapture.formats.views import Located, copied, located
from recapture.model import AsaType, InputColumn
from recapture.tokens import MARK

_KINDS = {
    AsaType.STRING: scan.STRING,
    AsaType.DATETIME: scan.STRING,
    AsaType.FLOAT: scan.FLOAT,
    AsaType.BIGINT: scan.BIGINT,
    AsaType.BIT: scan.BIT,
    AsaType.ARRAY: scan.ARRAY,
    AsaType.RECORD: scan.RECORD,
}
_JSON = frozenset([AsaType.ARRAY, AsaType.RECORD])
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
    columns = tuple(dict.fromkeys([*projection.valued, *projection.timestamp_fields]))
    read = tuple(column for column in columns if column.path)
    fields = _fields(read) if _are_strings(projection.timestamp_fields) else None
    if fields is None:
        return None
    where = located(bodies)
    needed = {*projection.columns, *projection.timestamp_fields}
    copied_json = [number for number, column in enumerate(read) if column in needed and column.type in _JSON]
    if not _are_worth_it(where, fields, copied_json):
        return None
    values = _scanned(where, fields)
    usual = values.usual
    arrays: dict[InputColumn, pa.Array] = {}
    converted: dict[InputColumn, pa.Array] = {}
    for number, column in enumerate(read):
        is_declared = column in projection.declared
        if is_declared and len(column.path) == 1:
            usual &= values.present[number] != MISSING
        if column in needed or column.type is AsaType.DATETIME:
            arrays[column] = converted[column] = _array(where, values, number)
        if column.type is AsaType.DATETIME and column in projection.valued:
            converted[column] = convert(arrays[column], column.type, strict=True)
            if is_declared or column not in projection.timestamp_fields:
                is_time = pc.equal(converted[column].is_valid(), arrays[column].is_valid())
                usual &= is_time.to_numpy(zero_copy_only=False)
    if len(read) < len(columns):
        whole = pc.if_else(pa.array(usual), copied(bodies), None).cast(pa.string())
        converted |= dict.fromkeys((column for column in columns if not column.path), whole)
    return Bodies(
        {column: converted[column] for column in projection.columns},
        {column: arrays[column] for column in projection.timestamp_fields},
        pa.nulls(len(bodies), pa.string()),
    ), usual


def _are_strings(columns: Iterable[InputColumn]) -> bool:
    return all(_KINDS.get(column.type) == scan.STRING for column in columns)


def _fields(columns: tuple[InputColumn, ...]) -> Fields | None:
    """Return what is scanned: the columns, then the records that have them. None if a column cannot be scanned."""
    for column in columns:
        if column.is_kind or not "".join(column.path).isascii():
            return None
    paths = [tuple(step.lower() for step in column.path) for column in columns]
    kinds = [scan.TOKEN if column.is_token else _KINDS[column.type] for column in columns]
    known = {path for path, kind in zip(paths, kinds, strict=True) if kind == scan.RECORD}
    records = sorted({path[:depth] for path in paths for depth in range(1, len(path))} - known, key=len)
    entries = [*paths, *records]
    if len(set(entries)) < len(entries):
        return None
    numbers = {(): TOP} | {entry: number for number, entry in enumerate(entries)}
    names = [path[-1].encode() for path in entries]
    return Fields(
        np.frombuffer(b"".join(names), np.uint8),
        np.cumsum([0, *map(len, names)], dtype=np.int64),
        np.array(kinds + [scan.RECORD] * len(records), np.int8),
        np.array([numbers[path[:-1]] for path in entries], np.int64),
    )


def _are_worth_it(where: Located, fields: Fields, copied_json: Iterable[int]) -> bool:
    """Return whether most of the first bodies have the usual form, and a scan is not interrupted too often.

    `copied_json` are the fields whose JSON is read.
    """
    rows = len(where.places)
    if not rows or len(where.runs) * _BODIES_PER_RUN > rows + _SAMPLE or where.sizes.sum() > _MAX_SIZE:
        return False
    first = where.first(_SAMPLE)
    values = _scanned(first, fields)
    for field in copied_json:
        _json(first, values, field)
    return bool(2 * np.count_nonzero(values.usual) > len(values.usual))


def _scanned(where: Located, fields: Fields) -> Values:
    """Return what is noted of bodies; of unusual ones, that every field is missing."""
    rows = len(where.places)
    size = len(fields.kinds), rows
    present, numbers, floats, sizes = (np.zeros(size, type_) for type_ in (np.int8, np.int64, np.float64, np.int32))
    values = Values(fields.kinds, np.zeros(rows, np.bool_), present, numbers, floats, sizes)
    for buffer, begin, end in where.runs:
        scan.scan(where.buffers[buffer], where.places, where.sizes, begin, end, fields, values)
    if not values.usual.all():
        present[:, ~values.usual] = MISSING
        sizes[:, ~values.usual] = 0
    return values


def _array(where: Located, values: Values, field: int) -> pa.Array:
    """Return the values of a field; NULL where a body has none. Those of a datetime are strings, and records JSON."""
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
        case scan.ARRAY | scan.RECORD:
            return _json(where, values, field)
    return _copied(where, values, field)


def _copied(where: Located, values: Values, field: int) -> pa.Array:
    """Return what lies in the buffers of a field (string); NULL where a body has none."""
    present, sizes = values.present[field], values.sizes[field]
    bounds = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes + _MARK_SIZE * (present == MARKED), out=bounds[1:])
    copies = np.empty(bounds[-1], np.uint8)
    for buffer, begin, end in where.runs:
        scan.copy_values(where.buffers[buffer], begin, end, present, values.numbers[field], sizes, bounds, copies)
    return _strings(present, bounds, copies)


def _json(where: Located, values: Values, field: int) -> pa.Array:
    """Return the JSON of a field as DuckDB writes it (string); a body that it may write in another way is not usual."""
    sizes, bounds = values.sizes[field], np.zeros(len(where.places) + 1, np.int32)
    copies, row = np.empty(sizes.sum(), np.uint8), 0
    for buffer, begin, end in where.runs:
        bounds[row : begin + 1] = bounds[row]
        copy_json(where.buffers[buffer], begin, end, values.numbers[field], sizes, bounds, copies, values.usual)
        row = end
    bounds[row:] = bounds[row]
    return _strings(values.present[field], bounds, copies)


def _strings(present: NDArray[np.int8], bounds: NDArray[np.int32], content: NDArray[np.uint8]) -> pa.Array:
    """Return strings, given where each begins and the last one ends; NULL where a body has none."""
    validity = np.packbits(present >= VALUE, bitorder="little")
    return pa.StringArray.from_buffers(
        len(present), pa.py_buffer(bounds), pa.py_buffer(content), pa.py_buffer(validity)
    )
