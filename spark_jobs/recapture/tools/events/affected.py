"""The rows that would be others without an event: the slice is computed with it and without it.

This says for any query in which rows an event is. An event that the query reads without any effect is in no row: of
MIN, for example, one with a larger value.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from recapture.definition.pipeline import Pipeline
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.statement import SliceEvaluation
from recapture.query.merges import GroupsView
from recapture.query.model import UNANCHORED_COLUMN, CompiledInput, CompiledOutput, CompiledQuery
from recapture.run.slices import slice_length
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from recapture.tools.events.event import json_value
from recapture.tools.events.plans import Plans
from recapture.tools.events.slice_events import SliceSources

MAX_ROWS = 100
"""Largest number of rows of an output in one slice that are shown for an event."""
WITHOUT_EVENT = "what is published for this slice was computed without the event"


@dataclass
class AffectedRows:
    """The rows that would be others without an event. Each slice is read once."""

    pipeline: Pipeline
    plans: Plans
    query: CompiledQuery
    """Query whose tasks aggregate nothing."""
    _sources: dict[Slice, SliceSources] = field(default_factory=dict)

    def of(self, event: Mapping[str, Any], alias: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of an output in JSON types, each with its slice; a slice whose run lacks the event says so.

        The event has the columns of `reading.SCHEMA`. Errors are those of `read_events`, and RunError if the query
        fails for a value.
        """
        read = next(read for read in self.query.inputs if read.alias == event["input"])
        output = next(output for output in self.query.outputs if output.alias == alias)
        for slice_ in self._slices(read, event["system_timestamp"]):
            sources = self._sources.setdefault(slice_, SliceSources(self.pipeline, self.plans, self.query, slice_))
            events = sources.events[read.view]
            shown = {"slice_start": ticks.to_text(slice_.start), "published_by": events.plan.published_by}
            rows = self._rows(sources, output, {})
            place = events.place_of(event)
            if place is None:
                yield shown | {"row": None, "why": WITHOUT_EVENT}
                continue
            others = pa.array(np.delete(np.arange(len(events.rows)), place))
            without = Counter(self._rows(sources, output, {read.view: events.rows.take(others)}))
            names = [column.name for column in output.columns]
            made = list((Counter(rows) - without).elements())
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

    def _rows(
        self, sources: SliceSources, output: CompiledOutput, others: Mapping[str, pa.Table]
    ) -> list[tuple[Any, ...]]:
        """Return the published rows of an output, with other events in some views."""
        bounds = SliceBounds(sources.slice.start, sources.slice.end, self.query.python_functions)

        def read(view: str) -> pa.Table:
            return others[view] if view in others else sources.read(view)

        rows = SliceEvaluation(bounds, read, _no_groups).rows(output)
        columns = [rows[name].to_pylist() for name in rows.column_names if name != UNANCHORED_COLUMN]
        return list(zip(*columns, strict=True))


def _no_groups(view: GroupsView) -> pa.Table:
    raise AssertionError(f"{view.name}: groups are computed from rows")
