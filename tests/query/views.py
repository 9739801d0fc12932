"""The views that a compiled query reads, from events at their System.Timestamp."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from recapture.ordering import order, panes
from recapture.ordering.panes import SlicePanes
from recapture.query.model import CompiledInput
from recapture.time_model.slices import Slice

Row = dict[str, Any]

EVENTS_IN_BATCH = 7


def by_slice(read: CompiledInput, events: Iterable[Row]) -> dict[tuple[str, Slice], pa.Table]:
    """Return the events of each partition and slice."""
    schema = order.schema(read)
    events_by_slice: dict[tuple[str, Slice], list[Row]] = {}
    for event in events:
        slice_ = Slice(event["_slice_start"], event["_slice_end"])
        events_by_slice.setdefault((event["_partition"], slice_), []).append(
            {name: event.get(name) for name in schema.names}
        )
    return {place: pa.Table.from_pylist(rows, schema) for place, rows in events_by_slice.items()}


def panes_of(read: CompiledInput, partition: str, slice_: Slice, events: pa.Table) -> pa.Table:
    slice_panes = SlicePanes(slice_, partition, read.aggregations)
    for batch in events.to_batches(max_chunksize=EVENTS_IN_BATCH):
        slice_panes.add(batch)
    return pa.Table.from_batches(slice_panes.batches(), panes.schema(read.aggregations))
