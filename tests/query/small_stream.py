"""Queries on a handful of events: what each output publishes for one hour, as dictionaries."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from hypothesis import settings

from recapture.formats.event_hubs import CaptureInput
from recapture.model import TYPES, AsaType, InputColumn, JavaScriptFunction, MetadataColumn, kind_name
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from recapture.time_model.ticks import TICKS_PER_SECOND, from_datetime
from tests.query.fast_path import kind, token
from tests.query.outputs import rows_of_outputs

START = from_datetime(datetime(2026, 3, 1, 10, tzinfo=UTC))
HOUR = 3600 * TICKS_PER_SECOND

Row = dict[str, Any]

OF_KINDS = kind_name("")
"""Beginning of the names of columns with the types of values."""


def at(seconds: float, partition: str = "0", **fields: Any) -> Row:
    """Return an event so many seconds after ten o'clock."""
    return {"at": seconds, "_partition": partition, **fields}


def compiled(
    text: str, *outputs: str, functions: Sequence[JavaScriptFunction] = (), in_tasks: bool = True
) -> CompiledQuery:
    return compile_query(
        text,
        inputs={"telemetry": CaptureInput.metadata},
        output_aliases=outputs or ["out"],
        functions=functions,
        in_tasks=in_tasks,
    )


def rows(text: str, events: Iterable[Row], functions: Sequence[JavaScriptFunction] = ()) -> list[list[Row]]:
    """Return the rows of the output for the hour from ten.

    Datetimes are seconds after ten; JSON is parsed.

    In the profile `deep`, check that they are the same, to the last bit, if tasks aggregate nothing.
    """
    query, events = compiled(text, functions=functions), list(events)
    results = published(query, events)
    if query.inputs[0].aggregations and settings.get_current_profile_name() == "deep":
        unaggregated = compiled(text, functions=functions, in_tasks=False)
        assert repr(published(unaggregated, events)) == repr(results)
    return results


def published(
    query: CompiledQuery,
    events: Iterable[Row],
    references: Mapping[str, pa.Table] | None = None,
) -> list[list[Row]]:
    """Return the rows of every output of a compiled query; see `rows`, and `rows_of_outputs` for `references`."""
    read: tuple[InputColumn | MetadataColumn, ...] = (*query.inputs[0].columns, *query.inputs[0].metadata)
    columns = [(column.name, TYPES[column.type].view) for column in read]
    tokens = {column.name for column in read if isinstance(column, InputColumn) and column.is_token}
    placed = [
        {name: _inside(event, name, type_, name in tokens) for name, type_ in columns}
        | {"_partition": event["_partition"], "_slice_start": START, "_slice_end": START + HOUR}
        | {"_system_timestamp": START + round(event["at"] * TICKS_PER_SECOND)}
        | {"_arrival": START + event.get("_arrival", arrival)}
        for arrival, event in enumerate(events)
    ]
    tables = rows_of_outputs(query, {query.inputs[0].alias: placed}, references)
    results = []
    for output, table in zip(query.outputs, tables, strict=True):
        types = {column.name: column.type for column in output.columns}
        records = [
            {name: _read(value, types[name]) for name, value in row.items() if name in types}
            for row in table.to_pylist()
        ]
        results.append(sorted(records, key=str))
    return results


def _inside(event: Row, name: str, type_: pa.DataType, is_token: bool) -> Any:
    if name.startswith(OF_KINDS):
        return kind(event.get(name.removeprefix(OF_KINDS)))
    if name == "@body":
        body = {field: value for field, value in event.items() if field not in ("at", "_partition") and field[0] != "@"}
        return json.dumps(body)
    value: Any = event
    for step in name.split(".") if name not in event else [name]:
        value = value.get(step) if isinstance(value, dict) else None
    if is_token:
        return token(value)
    is_text = type_ == pa.string() and not isinstance(value, str | None)
    return json.dumps(value) if is_text else value


def _read(value: Any, kind: AsaType) -> Any:
    if value is None:
        return None
    if kind is AsaType.DATETIME:
        return (from_datetime(value.astimezone(UTC)) - START) / TICKS_PER_SECOND
    return json.loads(value) if kind in (AsaType.RECORD, AsaType.ARRAY) else value
