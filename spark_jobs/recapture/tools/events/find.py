"""Find the events of a range in the archive, whatever became of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.process.wording import counted, did_you_mean, of_input
from recapture.query.model import CompiledInput
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from recapture.tools.events.conditions import Selection, condition
from recapture.tools.events.event import json_types
from recapture.tools.events.index import index_for, shown_slices
from recapture.tools.events.reading import SCHEMA, EventsRead, InputToSearch, read_events

MAX_RANGE = timedelta(days=3660)
"""Longest range of arrivals that can be searched: about ten years."""


@dataclass(frozen=True)
class SearchResult:
    """The events of a range that fulfil conditions."""

    pipeline: Pipeline
    range: Slice
    where: tuple[str, ...]
    inputs: dict[str, EventsRead]
    """What was read, by alias of the input."""

    @property
    def events(self) -> pa.Table:
        """Events of all inputs, with `reading.SCHEMA`."""
        return pa.concat_tables([SCHEMA.empty_table(), *(read.events for read in self.inputs.values())])

    @property
    def warnings(self) -> list[str]:
        """What may be missing, one sentence each."""
        warnings = []
        for alias, read in self.inputs.items():
            of = of_input(alias if len(self.inputs) > 1 else None)
            if read.damaged:
                are = "is" if len(read.damaged) == 1 else "are"
                blobs = f"{counted(len(read.damaged), 'blob')}{of} {are} damaged, such as {min(read.damaged)}"
                warnings.append(f"{blobs}: events in damaged blobs are not found")
            if read.unreadable:
                warnings.append(
                    f"{counted(read.unreadable, 'event')}{of} may also be what you look for: their bodies hold these "
                    "values, but cannot be read; see the quarantine"
                )
            if read.incomplete:
                partitions = ", ".join(read.incomplete)
                warnings.append(f"more events may still arrive in this range{of}, from partitions {partitions}")
        return warnings

    def summary(self, *, with_events: bool) -> dict[str, Any]:
        """Return what was found in JSON types."""
        events = self.events
        summary = {
            "pipeline": self.pipeline.name,
            "from": ticks.to_text(self.range.start),
            "to": ticks.to_text(self.range.end),
            "where": list(self.where),
            "inputs": [
                {"alias": alias, **read.summary, "unreadable": read.unreadable} for alias, read in self.inputs.items()
            ],
            "count": len(events),
            "verdicts": dict(sorted(Counter(events["verdict"].to_pylist()).items())),
            "warnings": [*self.pipeline.warnings, *self.warnings],
        }
        return summary | {"events": json_types(events)} if with_events else summary


def find(
    pipeline: Pipeline, where: Sequence[str], alias: str | None, start: datetime, end: datetime, now: datetime
) -> SearchResult:
    """Return the events that arrived after `start` and until `end` and fulfil all conditions `where`.

    `alias` is the input to search; None for all. Raise DefinitionError for a condition or an alias that is wrong, or an
    empty range; other errors are those of `read_events`.
    """
    range_ = range_of(start, end)
    if not where:
        raise DefinitionError("give at least one condition, such as --where deviceId=sensor-7")
    sources = {
        compiled: Selection([condition(text, pipeline.section(compiled.alias).metadata) for text in where])
        for compiled in inputs_of(pipeline, alias)
    }
    shown = shown_slices(pipeline)
    read = {
        compiled.alias: read_events(
            InputToSearch.of(pipeline, compiled, selection.metadata),
            *(selection, range_, now),
            index_for(pipeline, compiled, selection.values, shown),
        )
        for compiled, selection in sources.items()
    }
    return SearchResult(pipeline, range_, tuple(where), read)


def range_of(start: datetime, end: datetime) -> Slice:
    """Return the range after `start` and until `end`. Raise DefinitionError if it is empty or too long."""
    range_ = Slice(ticks.from_datetime(start), ticks.from_datetime(end))
    if range_.start >= range_.end:
        bounds = f"from {ticks.to_text(range_.start)} is not before to {ticks.to_text(range_.end)}"
        raise DefinitionError(f"the range is empty: {bounds}")
    if end - start > MAX_RANGE:
        raise DefinitionError(f"the range has more than {MAX_RANGE.days:,} days: choose a shorter one")
    return range_


def inputs_of(pipeline: Pipeline, alias: str | None) -> list[CompiledInput]:
    """Return the input of this alias; all inputs for None. Raise DefinitionError if there is none."""
    inputs = pipeline.query.inputs
    if alias is None:
        return list(inputs)
    named = [compiled for compiled in inputs if compiled.alias.lower() == alias.lower()]
    if not named:
        known = [compiled.alias for compiled in inputs]
        advice = did_you_mean(alias, known) or f"choose one of {', '.join(known)}"
        raise DefinitionError(f"--input {alias}: the query reads no input of this name; {advice}")
    return named
