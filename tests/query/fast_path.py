"""A compiled query on events at their System.Timestamp, with the interface of the oracle."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from recapture import tokens
from recapture.formats.event_hubs import CaptureInput
from recapture.model import AsaType, InputColumn, JavaScriptFunction, OutputColumn
from recapture.query.compile import compile_query
from recapture.query.model import CompiledInput, CompiledQuery
from recapture.time_model.ticks import TICKS_PER_MICROSECOND, UNIX_EPOCH
from tests.oracle_windows import Event
from tests.query.outputs import rows_of_outputs

Row = dict[str, Any]


@dataclass(frozen=True)
class Slice:
    """A slice (start, end] and the stream around it, with the events of each partition in arrival order."""

    start: int
    end: int
    events: Sequence[Event]


def compiled(
    text: str, functions: Sequence[JavaScriptFunction] = (), inputs: Sequence[str] = ("telemetry",)
) -> CompiledQuery:
    """Compile a query from `telemetry`, or from several inputs, into `out`."""
    metadata = dict.fromkeys(inputs, CaptureInput.metadata)
    return compile_query(text, inputs=metadata, output_aliases=["out"], functions=functions)


def published(
    query: CompiledQuery,
    slices: Sequence[Slice],
    arrivals: Sequence[int] | None = None,
) -> list[list[Row]]:
    """Return the rows of each slice. Each is computed from no more than it may read.

    `arrivals` are the times at which the events of a slice arrived; without them, each arrives after the one before.
    Of several inputs, an event's payload names its own as `input`.

    Datetimes are ticks; arrays and records are read from their JSON. The starts of the slices must differ. If the query
    has sessions, "_unanchored" says whether a row's session is cut by the rule for sparse streams.
    """
    events = {
        read.alias: [row for slice_ in slices for row in _events(read, slice_, arrivals)] for read in query.inputs
    }
    output = query.outputs[0]
    table = rows_of_outputs(query, events)[0]
    columns = [*output.columns, OutputColumn("slice_start", AsaType.DATETIME)]
    if "_unanchored" in table.column_names:
        columns.append(OutputColumn("_unanchored", AsaType.BIT))
    values = [_read(table.column(column.name), column.type) for column in columns]
    rows: dict[int, list[Row]] = {slice_.start: [] for slice_ in slices}
    for row in zip(*values, strict=True):
        named = dict(zip([column.name for column in columns], row, strict=True))
        rows[named.pop("slice_start")].append(named)
    return [rows[slice_.start] for slice_ in slices]


def _events(read: CompiledInput, slice_: Slice, arrivals: Sequence[int] | None) -> Iterator[Row]:
    """Yield the events that a slice needs, as rows of the view."""
    times = np.array([event.time for event in slice_.events], dtype=np.int64)
    needs = read.needs(times, slice_.start, slice_.end)
    order = range(len(slice_.events)) if arrivals is None else arrivals
    for arrival, event, needed in zip(order, slice_.events, needs, strict=True):
        if needed and event.payload.get("input", read.alias) == read.alias:
            yield {
                **{column.name: _value(event, column) for column in read.columns},
                **{"_partition": event.partition, "_slice_start": slice_.start, "_slice_end": slice_.end},
                **{"_system_timestamp": event.time, "_arrival": arrival},
            }


def _value(event: Event, column: InputColumn) -> Any:
    if column.is_kind:
        return kind(event.payload.get(column.path[0]))
    if not column.path:
        return json.dumps(event.payload)
    value = event.payload.get(column.path[0])
    if column.is_token:
        return token(value)
    held_as_text = column.type in (AsaType.STRING, AsaType.RECORD, AsaType.ARRAY)
    return json.dumps(value) if held_as_text and value is not None and not isinstance(value, str) else value


def token(value: Any) -> str | None:
    """Return the token of a value of JSON."""
    match value:
        case None | str():
            return value and tokens.of_string(value)
        case int() | float() if not isinstance(value, bool):
            return tokens.of_number(value)
    return tokens.MARK + json.dumps(value)


def kind(value: Any) -> str | None:
    """Return the type that a value of JSON has in ASA."""
    kinds = {bool: AsaType.BIT, int: AsaType.BIGINT, float: AsaType.FLOAT, str: AsaType.STRING}
    kinds |= {dict: AsaType.RECORD, list: AsaType.ARRAY}
    return None if value is None else kinds[type(value)].value


def _read(column: pa.ChunkedArray, type: AsaType) -> list[Any]:
    match type:
        case AsaType.DATETIME:
            since = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
            return [None if value is None else UNIX_EPOCH + value * TICKS_PER_MICROSECOND for value in since]
        case AsaType.RECORD | AsaType.ARRAY:
            return [None if value is None else json.loads(value) for value in column.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values
