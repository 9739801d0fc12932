"""The rows that would be others without an event: a part of the slice is computed with it and without it.

This says for any query in which rows an event is. An event that the query reads without any effect is in no row: of
MIN, for example, one with a larger value.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.definition.pipeline import Pipeline
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.buckets import buckets_of
from recapture.evaluate.faults import naming
from recapture.evaluate.statement import SliceEvaluation
from recapture.execute.shared_keys import shared_keys
from recapture.query.model import UNANCHORED_COLUMN, CompiledInput, CompiledOutput, CompiledQuery
from recapture.query.plan.panes import GroupsView
from recapture.run.slices import slice_length
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from recapture.tools.events.event import json_value
from recapture.tools.events.plans import Plans
from recapture.tools.events.room import MORE_MEMORY, Room, room_for
from recapture.tools.events.slice_events import KeyBuckets, SliceSources, bucket_of

_MOST_HASHES = 1 << 62
MAX_ROWS = 100
"""Largest number of rows of an output in one slice that are shown for an event."""
WITHOUT_EVENT = "what is published for this slice was computed without the event"


@dataclass(frozen=True)
class ProcessedEvent:
    """An event that reached the query."""

    alias: str
    """Alias of its input."""
    time: int
    """Its System.Timestamp, in ticks."""
    view: pa.RecordBatch
    """The event as the query reads it."""


@dataclass
class _Part:
    """A part of a slice, and the rows that an output has in it."""

    sources: SliceSources
    rows: pa.Table


@dataclass
class AffectedRows:
    """The rows that would be others without one of some events. Each slice is read once for each output.

    Held are the events that share their keys with one of these events, if all steps share keys, and that are needed for
    the rows which these events may affect.
    """

    pipeline: Pipeline
    plans: Plans
    events: Sequence[ProcessedEvent]
    """All events that may be asked for."""
    _parts: dict[tuple[Slice, str], _Part] = field(default_factory=dict)

    @cached_property
    def query(self) -> CompiledQuery:
        """Query whose tasks aggregate nothing."""
        return self.pipeline.compile(self.pipeline.job.query, in_tasks=False)

    @cached_property
    def _room(self) -> Room:
        return room_for(self.query, MORE_MEMORY)

    def of(self, event: Mapping[str, Any], alias: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of an output in JSON types, each with its slice; a slice whose run lacks the event says so.

        The event has the columns of `reading.SCHEMA`. Errors are those of `read_events`, and RunError if the query
        fails for a value.
        """
        read = next(read for read in self.query.inputs if read.alias == event["input"])
        output = next(output for output in self.query.outputs if output.alias == alias)
        for slice_ in self._slices(read, event["system_timestamp"]):
            part = self._part(output, slice_)
            events = part.sources.events[read.view]
            shown = {"slice_start": ticks.to_text(slice_.start), "published_by": events.plan.published_by}
            place = events.place_of(event)
            if place is None:
                yield shown | {"row": None, "why": WITHOUT_EVENT}
                continue
            others = pa.array(np.delete(np.arange(len(events.rows)), place))
            without = self._rows(part.sources, output, {read.view: events.rows.take(others)})
            names = [column.name for column in output.columns]
            made = _only_in(part.rows, without)
            for values in made[:MAX_ROWS]:
                row = dict(zip(names, map(json_value, values), strict=True))
                yield shown | {"row": row}
            if len(made) > MAX_ROWS:
                yield shown | {"row": None, "why": f"{len(made) - MAX_ROWS:,} more rows"}

    def _slices(self, read: CompiledInput, time: int) -> Iterator[Slice]:
        """Yield the slices to whose rows an event of this time may matter."""
        length, times = slice_length(self.pipeline), np.array([time])
        start = (time - 1) // length * length
        while start - read.look_back < time and start < ticks.from_datetime(self.plans.now):
            if read.needs(times, start, start + length).any():
                yield Slice(start, start + length)
            start += length

    def _part(self, output: CompiledOutput, slice_: Slice) -> _Part:
        """Return the part of a slice that has the rows which the events may affect."""
        if (slice_, output.alias) not in self._parts:
            reads = {read.alias: read for read in self.query.inputs}
            times = [
                event.time
                for event in self.events
                if reads[event.alias].needs(np.array([event.time]), slice_.start, slice_.end).any()
            ]
            look_back = max(read.look_back for read in self.query.inputs)
            piece = Slice(max(slice_.start, min(times) - 1), min(slice_.end, max(times) + look_back))
            keys = self._keys(output)
            sources = SliceSources(self.pipeline, self.plans, self.query, slice_, piece, keys, self._room, times)
            self._parts[slice_, output.alias] = _Part(sources, self._rows(sources, output, {}))
        return self._parts[slice_, output.alias]

    def _keys(self, output: CompiledOutput) -> dict[str, KeyBuckets]:
        """Return the buckets of the keys that the events have, by view."""
        shared = shared_keys(replace(self.query, outputs=(output,))) or {}
        views = {read.alias: read.view for read in self.query.inputs}
        view_columns = [(event.view, shared.get(views[event.alias], ())) for event in self.events]
        numbers = frozenset(bucket_of(view, columns) for view, columns in view_columns if columns)
        return {view: KeyBuckets(columns, numbers) for view, columns in shared.items() if columns}

    def _rows(self, sources: SliceSources, output: CompiledOutput, others: Mapping[str, pa.Table]) -> pa.Table:
        """Return the published rows of an output, with other events in some views."""
        bounds = SliceBounds(sources.piece.start, sources.piece.end, self.query.python_functions)

        def read(view: str) -> pa.Table:
            return others[view] if view in others else sources.read(view)

        with naming(f"slice {ticks.to_text(sources.slice.start)}"), naming(f"output {output.alias}"):
            rows = SliceEvaluation(bounds, read, _no_groups).rows(output)
        return rows.select([name for name in rows.column_names if name != UNANCHORED_COLUMN])


def _only_in(rows: pa.Table, others: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows of one table that the other lacks, as often as it lacks them.

    Only rows whose hashes are not as frequent in both tables become tuples.
    """
    hashes = [buckets_of(table, table.column_names, _MOST_HASHES) for table in (rows, others)]
    numbers, inverse = np.unique(np.concatenate(hashes), return_inverse=True)
    row_numbers, other_numbers = inverse[: len(rows)], inverse[len(rows) :]
    counts = [np.bincount(table_numbers, minlength=len(numbers)) for table_numbers in (row_numbers, other_numbers)]
    differs = counts[0] != counts[1]
    few = [
        Counter(_tuples(table, differs[positions]))
        for table, positions in ((rows, row_numbers), (others, other_numbers))
    ]
    return list((few[0] - few[1]).elements())


def _tuples(rows: pa.Table, mask: NDArray[np.bool_]) -> Iterator[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in rows.filter(pa.array(mask)).columns]
    return zip(*columns, strict=True)


def _no_groups(view: GroupsView) -> pa.Table:
    raise AssertionError(f"{view.name}: groups are computed from rows")
