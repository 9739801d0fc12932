"""A query on a small world: an archive of events in the bodies that it can read, and rows of reference data."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from recapture.definition.pipeline import Pipeline
from recapture.model import AsaType, InputColumn, InputMetadata, time_fields
from recapture.query.compile import compile_query
from recapture.time_model.ticks import TICKS_PER_MICROSECOND, UNIX_EPOCH, from_datetime
from tests.worlds import TELEMETRY, World, at

Inputs = Mapping[str, InputMetadata | None]

EVENTS = 8
"""Number of events of each input, in two partitions, and of rows of reference data.

Two events have the same time. The next two follow a second later, and the next four a minute later.
"""


def define(world: World, text: str, inputs: Inputs, outputs: Iterable[str]) -> Pipeline:
    """Write what a query reads, and the pipeline file. The world lasts from ten to twelve."""
    query = compile_query(text, inputs=inputs, output_aliases=list(outputs))
    sections: list[dict[str, Any]] = []
    for read in query.inputs:
        sections.append(TELEMETRY | {"alias": read.alias, "event_hub": read.alias})
        times = time_fields(read.timestamp_by)
        columns = [*read.body_columns, *read.columns_to_check, *times]
        bodies = [json.dumps(_body(columns, number)).encode() for number in range(EVENTS)]
        for partition in (0, 1):
            world.put(str(partition), at(6) + timedelta(seconds=partition), bodies[partition::2], hub=read.alias)
            world.put(str(partition), at(150), hub=read.alias)
    folder = world.home / "reference"
    folder.mkdir(parents=True)
    for reference in query.references:
        rows = [json.dumps(_body(reference.body_columns, number)) for number in range(EVENTS)]
        (folder / f"{reference.alias}.json").write_text("\n".join(rows))
        section = {"type": "Reference", "format": "Json", "container": "reference", "path": f"{reference.alias}.json"}
        sections.append(section | {"alias": reference.alias})
    tables = [{"alias": output, "table": f"tables/{output}"} for output in outputs]
    return world.define(text, inputs=sections, outputs=tables)


def _body(columns: Iterable[InputColumn], number: int) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for column in sorted(_decisive(columns), key=lambda column: column.path):
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
_EPOCHS = ("ms", "epoch")
_TEXTS = {"place": "POINT(1 1)", "area": "POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))", "type": "A", "color": "Red"}
_TEXTS |= {"plate": "A9", "low": "0", "high": "9"}


def _decisive(columns: Iterable[InputColumn]) -> Iterator[InputColumn]:
    """Yield the columns that decide the values of fields. Numbers are compared with fields whose type is open."""
    for column in columns:
        if column.is_token and column.name.lower() in ("x", "y", "low", "high"):
            yield replace(column, type=AsaType.FLOAT)
        elif not column.is_kind:
            yield column


def _value(name: str, kind: AsaType, number: int) -> object:
    """Return a value for a field: of its type, and as a text one that its name promises, such as a time."""
    instant = at(number // 4 + 1) + timedelta(seconds=1 + number % 4 // 2)
    match kind:
        case AsaType.BIGINT:
            since_epoch = (from_datetime(instant) - UNIX_EPOCH) // (1000 * TICKS_PER_MICROSECOND)
            return since_epoch if name.lower() in _EPOCHS else number % 3 + 1
        case AsaType.FLOAT:
            return number + 0.5
        case AsaType.DATETIME:
            return instant.isoformat()
        case AsaType.BIT:
            return number % 2 == 0
        case AsaType.RECORD:
            return {"id": number, "name": "roof"}
        case AsaType.ARRAY:
            return [{"Name": "heat", "Value": 1.5}] if name.lower() == "sensors" else [1, 2.5]
    if name.lower() in _TIMES:
        return instant.isoformat()
    return "1" if name.lower() in _NUMBERS else _TEXTS.get(name.lower(), "roof")
