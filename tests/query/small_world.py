"""A query on a small world: events in the bodies that it can read, and rows of reference data."""

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from recapture.formats import bodies
from recapture.model import TYPES, AsaType, InputColumn, Metadata
from recapture.query.generate.joins import VALIDITY
from recapture.query.model import CompiledInput, CompiledQuery, CompiledReference
from recapture.run.functions import register
from tests.query import views
from tests.query.small_stream import HOUR, START

EVENTS = 8
MINUTE = HOUR // 60


def run(spark: SparkSession, query: CompiledQuery) -> dict[str, pa.Table]:
    """Return what each output of a query publishes for an hour, by its alias."""
    create_views(spark, query)
    return {output.alias: spark.sql(output.sql).toArrow() for output in query.outputs}


def create_views(spark: SparkSession, query: CompiledQuery) -> None:
    """Create what the SQL of a query reads: the views of its inputs and of reference data, and its functions."""
    register(spark, query)
    for of_input in query.inputs:
        views.create(spark, of_input, _events(of_input))
    for reference in query.references:
        spark.createDataFrame(_rows(reference)).coalesce(1).createOrReplaceTempView(f"`{reference.view}`")


def _events(of_input: CompiledInput) -> list[dict[str, Any]]:
    """Return events as rows of the view of an input: two partitions, and two events at a time."""
    columns = tuple(dict.fromkeys([*of_input.body_columns, *of_input.columns_to_check]))
    parsed = _parsed(columns, EVENTS)
    events = []
    for number in range(EVENTS):
        time = START + (number // 2 + 1) * MINUTE
        system = {"_partition": str(number % 2), "_slice_start": START, "_slice_end": START + HOUR}
        system |= {"_system_timestamp": time, "_arrival": time + number}
        metadata = {column.name: _metadata(column.metadata, number, time) for column in of_input.metadata}
        events.append(system | metadata | {column.name: parsed[column][number] for column in of_input.columns})
    return events


def _metadata(metadata: Metadata, number: int, time: int) -> object:
    match metadata:
        case Metadata.PARTITION_ID:
            return number % 2
        case Metadata.SEQUENCE_NUMBER:
            return number
        case Metadata.EVENT_ENQUEUED | Metadata.EVENT_PROCESSED | Metadata.BLOB_LAST_MODIFIED:
            return time
    return "roof"


def _rows(reference: CompiledReference) -> pa.Table:
    """Return rows of reference data that are always in force."""
    parsed = _parsed(reference.body_columns, EVENTS)
    fields = [(column.name, TYPES[column.type].view) for column in reference.columns]
    schema = pa.schema([*((name, pa.int64()) for name in VALIDITY), *fields])
    rows = [
        dict(zip(VALIDITY, (0, 2**63 - 1), strict=True))
        | {column.name: parsed[column][number] for column in reference.columns}
        for number in range(EVENTS)
    ]
    return pa.Table.from_pylist(rows, schema)


def _parsed(columns: Iterable[InputColumn], count: int) -> dict[InputColumn, list[Any]]:
    """Return the columns of some bodies, none of which is malformed."""
    columns = tuple(columns)
    texts = pa.array([json.dumps(_body(columns, number)).encode() for number in range(count)], pa.binary())
    parsed = bodies.parse(texts, columns)
    assert parsed.malformed.null_count == count, parsed.malformed
    return {column: parsed.columns[column].to_pylist() for column in columns}


def _body(columns: Iterable[InputColumn], number: int) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for column in sorted(columns, key=lambda column: column.path):
        record = body
        for step in column.path[:-1]:
            if not isinstance(record.get(step), dict):
                record[step] = {}
            record = record[step]
        if column.path and not isinstance(record.get(column.path[-1]), dict):
            record[column.path[-1]] = _value(column.path[-1], column.type, number)
    return body


_TIMES = ("t", "at", "seen", "raised", "time", "entrytime")
_NUMBERS = ("a", "b", "c", "d", "e", "x", "y")
_SHAPES = {"place": "POINT(1 1)", "area": "POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))"}


def _value(name: str, kind: AsaType, number: int) -> object:
    """Return a value for a field: of its type, and as a text one that its name promises, such as a time."""
    time = f"2026-03-01T10:{number // 2 + 1:02}:00Z"
    match kind:
        case AsaType.BIGINT:
            return number % 3 + 1
        case AsaType.FLOAT:
            return number + 0.5
        case AsaType.DATETIME:
            return time
        case AsaType.BIT:
            return number % 2 == 0
        case AsaType.RECORD:
            return {"id": number, "name": "roof"}
        case AsaType.ARRAY:
            return [1, 2.5]
    if name.lower() in _TIMES:
        return time
    return "1" if name.lower() in _NUMBERS else _SHAPES.get(name.lower(), "roof")
