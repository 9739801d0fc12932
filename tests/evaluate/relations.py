"""The relations of compiled queries, and rows for them."""

from collections.abc import Iterable
from functools import cache
from typing import Any

import pyarrow as pa

from recapture.evaluate.bounds import SliceBounds
from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture.query.plan.joins import JoinedTable
from recapture.query.plan.relations import SelectedTable, Selection
from recapture.time_model.ticks import TICKS_PER_SECOND
from tests.oracle_windows import Event

START = 63_000_000_000 * TICKS_PER_SECOND
BOUNDS = SliceBounds(START, START + 60 * TICKS_PER_SECOND)
"""A slice of one minute."""

FIELDS = {"id": pa.int64(), "k": pa.string(), "n": pa.int64(), "x": pa.float64(), "b": pa.bool_()}
"""Fields of the events of these tests."""
DECLARED = "CREATE TABLE telemetry (t datetime, id bigint, k nvarchar(max), n bigint, x float, b bit);\n"


@cache
def relations(
    text: str, streams: tuple[str, ...] = ("telemetry",), references: tuple[str, ...] = ()
) -> tuple[list[Selection], list[JoinedTable]]:
    """Return the SELECTs of a query, those of steps first, and the rows of its JOINs."""
    inputs = {alias: CaptureInput.metadata for alias in streams} | dict.fromkeys(references)
    [output] = compile_query(text, inputs=inputs, output_aliases=["out"], in_tasks=False).outputs
    tables = [*output.plan.steps, output.plan.output]
    joins = [table for table in tables if isinstance(table, JoinedTable)]
    return [part for table in tables if isinstance(table, SelectedTable) for part in table.selections], joins


def at(seconds: float, **fields: Any) -> Event:
    """Return an event so many seconds after the start of the slice."""
    return Event(START + round(seconds * TICKS_PER_SECOND), fields, fields.pop("partition", "0"))


def table(events: Iterable[Event], arrivals: Iterable[int] | None = None) -> pa.Table:
    """Return events as rows, in arrival order; each arrives when it is sent, unless `arrivals` say when."""
    events = list(events)
    system = {
        "_partition": pa.array([event.partition for event in events], pa.string()),
        "_system_timestamp": pa.array([event.time for event in events], pa.int64()),
        "_arrival": pa.array([event.time for event in events] if arrivals is None else arrivals, pa.int64()),
    }
    fields = {name: pa.array([event.payload.get(name) for event in events], of) for name, of in FIELDS.items()}
    return pa.table(system | fields)
