"""Groups of windows and the events in them, for queries whose GROUP BY the tasks of a run compute on Arrow.

The conditions, the keys and the rows are evaluated by the functions of a run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.formats.event_keys import EventKey
from recapture.model import AsaType
from recapture.ordering.groups import groups_of_panes, rows_of_groups
from recapture.ordering.order import SYSTEM_COLUMNS, payload_of, schema
from recapture.ordering.panes import SlicePanes
from recapture.ordering.scalars import evaluate
from recapture.query.model import CompiledInput, CompiledOutput
from recapture.query.plan.expressions import Expr
from recapture.query.plan.grouping import WINDOW_END
from recapture.query.plan.operations import Op
from recapture.query.plan.panes import Key, MergedSelect, MergedWindow
from recapture.time_model.slices import Slice
from recapture.time_model.windows import HoppingWindow
from recapture.tokens import text_of
from recapture.tools.events.index import ArchiveIndex, Value
from recapture.tools.events.plans import SlicePlan
from recapture.tools.events.reading import IDENTITY, InputToSearch, JudgedEvents, batch, with_index

Keys = tuple[Any, ...]
"""Values of the keys of a group, in the order of the keys. A datetime is in ticks."""
Identity = tuple[Any, ...]
"""What tells an event from others, and from itself in a slice that gave it another time."""


def identity_of(event: Mapping[str, Any]) -> Identity:
    """Return the identity of an event with the columns of `reading.SCHEMA`."""
    return tuple(event[name] for name in IDENTITY)


@dataclass(frozen=True)
class Grouping:
    """One window of one SELECT that writes to an output."""

    output: CompiledOutput
    select: MergedSelect
    window: MergedWindow

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.window.aggregation.keys

    def keys_of(self, events: pa.RecordBatch) -> list[Keys | None]:
        """Return the keys of each event, with the columns of `order.schema`; None if WHERE drops it."""
        meets = _meets(self.window, events)
        columns = [evaluate(key.value, events).to_pylist() for key in self.keys]
        rows = zip(*columns, strict=True) if columns else (() for _ in meets)
        return [tuple(row) if meet else None for row, meet in zip(rows, meets.tolist(), strict=True)]

    def values_of(self, compiled: CompiledInput, keys: Keys) -> list[Value]:
        """Return the strings that all events of the group with these keys have, each with its column."""
        columns: tuple[EventKey, ...] = (*compiled.columns, *compiled.metadata)
        strings = {column.name: column for column in columns if column.type is AsaType.STRING}
        named = ((key.value.name, value) for key, value in zip(self.keys, keys, strict=True) if key.value.is_column)
        return [(strings[name], text_of(value)) for name, value in named if name in strings and value is not None]


@dataclass(frozen=True)
class Row:
    """A group, and the row that it gives."""

    end: int
    """End of its window, in ticks."""
    columns: Mapping[str, Any]
    """Published columns by name."""
    is_published: bool
    """Whether it meets HAVING; otherwise there is no such row."""


def groupings_of(output: CompiledOutput, view: str) -> Iterator[Grouping]:
    """Yield the windows that an output has over an input, whose view this is; none if its rows need Spark."""
    for select in output.selects:
        for window in select.groups.windows:
            if window.view == view:
                yield Grouping(output, select, window)


def window_ends(window: HoppingWindow, time: int) -> list[int]:
    """Return the ends of the windows that hold an event, by its System.Timestamp; all in ticks."""
    first = time + (window.offset - time) % window.hop
    return list(range(first, time + window.size, window.hop))


def view_of(source: InputToSearch, events: JudgedEvents, rows: NDArray[np.intp], slice_: Slice) -> pa.RecordBatch:
    """Return some processed events of a chunk with the columns of `order.schema`, as the query reads them."""
    count = len(rows)
    system = [
        pa.repeat(events.task.partition, count),
        pa.repeat(pa.scalar(slice_.start, pa.int64()), count),
        pa.repeat(pa.scalar(slice_.end, pa.int64()), count),
        pa.array(events.judged.judged.system_timestamp[rows]),
        pa.array(events.chunk.arrival[rows]),
    ]
    payload = payload_of(source.compiled, events.chunk, events.parsed)
    columns = schema(source.compiled)
    assert len(system) == len(SYSTEM_COLUMNS)
    arrays = [*system, *(column.take(pa.array(rows)) for column in payload)]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def rows_of_keys(
    source: InputToSearch,
    plan: SlicePlan,
    grouping: Grouping,
    keys: Keys,
    index: ArchiveIndex | None,
    asked: Sequence[int],
) -> tuple[list[Row], set[Identity]]:
    """Return the groups with these keys whose windows end in a slice, and which of some events they are made of.

    `asked` are the System.Timestamps of these events, in ticks. Errors are those of `reading.read_tasks`.
    """
    select, window, slice_ = grouping.select, grouping.window, plan.slice
    found = set[Identity]()
    panes: list[pa.RecordBatch] = []

    def collected(judged: Iterator[JudgedEvents]) -> tuple[SlicePanes, set[Identity]]:
        slice_panes, members = SlicePanes(slice_, task.partition, (window.aggregation,)), set[Identity]()
        for events in judged:
            rows = _rows_in_windows(source, events, window.window, slice_)
            view = view_of(source, events, rows, slice_)
            is_member = _meets(window, view) & _have(grouping.keys, keys, view)
            slice_panes.add(view.filter(pa.array(is_member)))
            is_asked = is_member & np.isin(view["_system_timestamp"].to_numpy(), asked)
            asked_events = batch(source, task, events.chunk, rows[is_asked], events)
            members |= set(map(identity_of, asked_events.select(list(IDENTITY)).to_pylist()))
        return slice_panes, members

    for task in plan.tasks:
        (slice_panes, members), _ = with_index(source, task, index, collected, set())
        found |= members
        panes += [pa.RecordBatch.from_struct_array(columns.column(0)) for columns in slice_panes.batches()]
    table = pa.Table.from_batches(panes, window.aggregation.schema)
    made = []
    for groups in groups_of_panes(select.groups, window, slice_, table):
        meets = np.ones(groups.num_rows, bool)
        if select.conditions:
            meets = _true(evaluate(Expr(Op.AND, select.conditions), groups))
        published = rows_of_groups(select, groups).to_pylist()
        ends = groups[WINDOW_END].to_pylist()
        made += [Row(end, row, bool(meet)) for end, row, meet in zip(ends, published, meets, strict=True)]
    return made, found


def _rows_in_windows(
    source: InputToSearch, events: JudgedEvents, window: HoppingWindow, slice_: Slice
) -> NDArray[np.intp]:
    """Return the processed events of a chunk that may be in a window which ends in a slice."""
    judged = events.judged.judged
    times = judged.system_timestamp
    return np.flatnonzero(
        judged.processed & (times > slice_.start - window.size) & source.compiled.needs(times, slice_.start, slice_.end)
    )


def _meets(window: MergedWindow, events: pa.RecordBatch) -> NDArray[np.bool_]:
    """Return which events meet the conditions of WHERE."""
    if not window.aggregation.conditions:
        return np.ones(events.num_rows, bool)
    return _true(evaluate(Expr(Op.AND, window.aggregation.conditions), events))


def _have(keys: Sequence[Key], key_values: Keys, events: pa.RecordBatch) -> NDArray[np.bool_]:
    """Return which events have the keys; a key that is NULL equals NULL."""
    has = np.ones(events.num_rows, bool)
    for key, value in zip(keys, key_values, strict=True):
        values = evaluate(key.value, events)
        same = pc.is_null(values) if value is None else pc.equal(values, pa.scalar(value, key.type))
        has &= _true(same)
    return has


def _true(values: pa.Array) -> NDArray[np.bool_]:
    true: NDArray[np.bool_] = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return true
