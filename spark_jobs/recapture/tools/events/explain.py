"""Explain what became of events: their verdicts, and the windows and rows that they are in."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from recapture.archive.pinning import PinnedBlob
from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.formats.events import ENQUEUED
from recapture.model import Metadata, MetadataColumn
from recapture.ordering.chunks import Chunk
from recapture.process.wording import counted
from recapture.query.model import CompiledInput, CompiledOutput
from recapture.run.slices import slice_length
from recapture.storage import open_container
from recapture.time_model import ticks
from recapture.time_model.slices import Slice, slices_between
from recapture.tools.events.affected import WITHOUT_EVENT, AffectedRows, ProcessedEvent
from recapture.tools.events.conditions import Condition, Selection
from recapture.tools.events.event import json_types, json_value
from recapture.tools.events.groups import (
    Grouping,
    Identity,
    Keys,
    Row,
    groupings_of,
    identity_of,
    rows_of_keys,
    view_of,
    window_ends,
)
from recapture.tools.events.index import ArchiveIndex, BlobsRead, Value, index_for
from recapture.tools.events.plans import Plans, SlicePlan
from recapture.tools.events.reading import DUPLICATE, SCHEMA, InputToSearch, JudgedEvents, batch, until, with_index

MAX_EXPLAINED = 20
"""Largest number of events that are explained at once."""
MAX_SLICES = 1000
"""Largest number of slices in which events are looked for."""


@dataclass(frozen=True)
class Explanation:
    """What became of events."""

    pipeline: Pipeline
    events: tuple[dict[str, Any], ...]
    """Events in JSON types, in order of arrival: as in `event.json_types`, and what `_Explained` adds."""
    more: int
    """Number of events that were found and are not explained."""
    notes: tuple[str, ...]
    """What the reader has to know about the slices, one sentence each."""
    read: Mapping[str, BlobsRead]
    """Blobs that were read to find the events, by alias of the input."""

    @property
    def warnings(self) -> list[str]:
        """Warnings, one sentence each."""
        if not self.more:
            return list(self.notes)
        more = counted(self.more, "more event fulfils", "more events fulfil")
        more += " the conditions: recapture find lists all of them"
        return [*self.notes, more]

    @property
    def summary(self) -> dict[str, Any]:
        """The explanation in JSON types."""
        warnings = [*self.pipeline.warnings, *self.warnings]
        return {
            "pipeline": self.pipeline.name,
            "events": list(self.events),
            "more": self.more,
            "inputs": [{"alias": alias, **read.summary} for alias, read in self.read.items()],
            "warnings": warnings,
        }


def event_selection(text: str) -> Selection:
    """Return the selection of the event PARTITION/SEQUENCE. Raise DefinitionError if the text does not name one."""
    partition, slash, number = text.rpartition("/")
    if not slash or not partition or not number.isdecimal():
        raise DefinitionError(f"--event {text} is not PARTITION/SEQUENCE: write it as 3/4711")
    columns = (MetadataColumn(Metadata.PARTITION_ID), MetadataColumn(Metadata.SEQUENCE_NUMBER))
    return Selection([Condition(column, value) for column, value in zip(columns, (partition, number), strict=True)])


@dataclass
class _Found:
    """An event that was found, and the groups that it belongs to."""

    source: InputToSearch
    plan: SlicePlan
    event: pa.Table
    """The event, with `reading.SCHEMA`."""
    view: pa.RecordBatch | None
    """The event as the query reads it; None if it is not processed."""
    keys: dict[Grouping, Keys | None]
    """Keys of its group in each window over its input; None if WHERE drops it. Empty if it is not processed."""

    @cached_property
    def fields(self) -> dict[str, Any]:
        """Values of the event by column; times are in ticks."""
        (fields,) = self.event.to_pylist()
        return dict(fields)

    @property
    def order(self) -> tuple[Any, ...]:
        """What found events are sorted by."""
        return self.fields["arrival"], self.fields["partition"], self.fields["sequence_number"]


@dataclass
class Explainer:
    """Explains the events of one pipeline; each slice is planned once."""

    pipeline: Pipeline
    now: datetime
    run: str | None = None
    """Run whose manifest is read; see `Plans.run`."""

    def __post_init__(self) -> None:
        self.plans = Plans(self.pipeline, self.now, self.run)

    def explain(
        self, inputs: Sequence[CompiledInput], select: Callable[[CompiledInput], Selection], range_: Slice
    ) -> Explanation:
        """Return what became of the selected events that arrived in a range. Errors are those of `read_events`."""
        events, count, notes, read = list[_Found](), 0, list[str](), dict[str, BlobsRead]()
        for compiled in inputs:
            selection = select(compiled)
            source = InputToSearch.of(self.pipeline, compiled, selection.metadata)
            read[compiled.alias] = BlobsRead(self.index(compiled, selection.values))
            for plan in self.plans.of(compiled.alias, self._slices(range_)):
                found, slice_count = self._found(source, selection, plan, range_, read[compiled.alias])
                events, count = _first([*events, *found]), count + slice_count
                if found and plan.note is not None:
                    notes.append(
                        f"slice {ticks.to_text(plan.slice.start)}: {plan.note}; this is what a run would give now"
                    )
        explained = _Explained(self, events).events
        return Explanation(self.pipeline, explained, count - len(events), tuple(dict.fromkeys(notes)), read)

    def index(
        self, compiled: CompiledInput, values: Sequence[Value], times: Slice | None = None
    ) -> ArchiveIndex | None:
        return index_for(self.pipeline, compiled, values, lambda: self.plans.shown, times)

    def _slices(self, range_: Slice) -> list[Slice]:
        """Return the slices in which a range of arrivals lies. Raise DefinitionError if there are too many."""
        length = slice_length(self.pipeline)
        start = range_.start // length * length
        end = min(range_.end, ticks.from_datetime(self.now))
        if end - start > MAX_SLICES * length:
            raise DefinitionError(f"the range has more than {MAX_SLICES:,} slices: choose a shorter one")
        return list(slices_between(start, end, length))

    def _found(
        self, source: InputToSearch, selection: Selection, plan: SlicePlan, range_: Slice, read: BlobsRead
    ) -> tuple[list[_Found], int]:
        """Return the first selected events of a slice, at most MAX_EXPLAINED, and the number of all of them."""
        own = Slice(max(range_.start, plan.slice.start), min(range_.end, plan.slice.end))
        partition = selection.partition

        def selected(judged: Iterator[JudgedEvents]) -> tuple[list[_Found], int]:
            first, count = list[_Found](), 0
            for events in judged:
                for found, chunk_count in self._found_in(source, selection, plan, own, events):
                    first, count = _first([*first, *found]), count + chunk_count
            return first, count

        first, count = list[_Found](), 0
        for task in plan.tasks:
            for part in until(task, own.end) if partition in (None, task.partition) else ():
                (found, part_count), skipped = with_index(source, part, read.index, selected, set())
                read.add(part, skipped)
                first, count = _first([*first, *found]), count + part_count
        return first, count

    def _found_in(
        self, source: InputToSearch, selection: Selection, plan: SlicePlan, own: Slice, events: JudgedEvents
    ) -> Iterator[tuple[list[_Found], int]]:
        """Yield the first selected events of a chunk, and the number of all of them; and the same of its duplicates."""
        for chunk, judged in ((events.duplicates, None), (events.chunk, events)):
            if not own.contains(chunk.arrival).any():
                continue
            selected, _ = selection.rows(chunk, events.task.partition)
            selected = selected[own.contains(chunk.arrival)[selected]]
            first = selected[np.argsort(chunk.arrival[selected], kind="stable")[:MAX_EXPLAINED]]
            yield [self._event(source, plan, events, chunk, judged, row) for row in first], len(selected)

    def _event(
        self,
        source: InputToSearch,
        plan: SlicePlan,
        events: JudgedEvents,
        chunk: Chunk,
        judged: JudgedEvents | None,
        row: np.intp,
    ) -> _Found:
        """Return an event of a chunk; `judged` is None for a duplicate."""
        rows = np.array([row])
        event = pa.Table.from_batches([batch(source, events.task, chunk, rows, judged)], SCHEMA)
        if judged is None or not judged.judged.judged.processed[row]:
            return _Found(source, plan, event, None, {})
        view, keys = view_of(source, judged, rows, plan.slice), dict[Grouping, Keys | None]()
        for output in self.pipeline.query.outputs:
            for grouping in groupings_of(output, source.compiled.view):
                (keys[grouping],) = grouping.keys_of(view)
        return _Found(source, plan, event, view, keys)


def _first(events: Sequence[_Found]) -> list[_Found]:
    return sorted(events, key=lambda found: found.order)[:MAX_EXPLAINED]


@dataclass
class _Explained:
    """Events with what became of them. Each group and each part of a slice is read once."""

    explainer: Explainer
    found: Sequence[_Found]
    _rows: dict[tuple[Any, ...], tuple[list[Row], set[Identity]]] = field(default_factory=dict)

    @property
    def events(self) -> tuple[dict[str, Any], ...]:
        """Events in JSON types, with what `_explained` adds."""
        return tuple(map(self._explained, self.found))

    @cached_property
    def _affected(self) -> AffectedRows:
        processed = [
            ProcessedEvent(found.source.compiled.alias, found.fields["system_timestamp"], found.view)
            for found in self.found
            if found.view is not None
        ]
        return AffectedRows(self.explainer.pipeline, self.explainer.plans, processed)

    def _explained(self, found: _Found) -> dict[str, Any]:
        """Return an event in JSON types, with what pushed the watermark and the windows that it is in."""
        (event,) = json_types(found.event)
        event["judged_in"] = {
            "slice_start": ticks.to_text(found.plan.slice.start),
            "published_by": found.plan.published_by,
        }
        if pushed := {
            name: event.pop(f"pushed_by_{name}") for name in ("number", "place", "blob") if f"pushed_by_{name}" in event
        }:
            event["pushed_by"] = self._pusher(found, pushed)
        event["outputs"] = [self._in_output(found, output) for output in self.explainer.pipeline.query.outputs]
        return event

    def _pusher(self, found: _Found, pushed: dict[str, Any]) -> dict[str, Any]:
        names = {"number": "sequence_number", "place": "place", "blob": "blob"}
        pusher = {"partition": found.fields["partition"]} | {names[name]: value for name, value in pushed.items()}
        offset = MetadataColumn(Metadata.OFFSET)
        if offset in found.source.compiled.metadata and "number" in pushed:
            pinned = next(pinned for pinned in found.plan.planned.blobs if pinned.blob.name == pushed["blob"])
            pusher["offset"] = _offset(found.source, pinned, pushed["number"])
        return pusher

    def _in_output(self, found: _Found, output: CompiledOutput) -> dict[str, Any]:
        """Return the windows of an output that hold an event, or why there are none."""
        fields, result = found.fields, {"output": output.alias, "windows": list[dict[str, Any]]()}
        if fields["verdict"] == DUPLICATE:
            return result | {"why": "it is a duplicate of an event that arrived before"}
        if fields["system_timestamp"] is None:
            return result | {"why": "it was dropped before it reached the query"}
        if not output.selects:
            rows = list(self._affected.of(fields, output.alias))
            return result | ({"windows": rows} if rows else {"why": "every row would be the same without it"})
        groupings = [grouping for grouping in found.keys if grouping.output is output]
        if not groupings:
            return result | {"why": f"no SELECT of this output reads {found.source.compiled.alias}"}
        windows = [window for grouping in groupings for window in self._windows(found, grouping)]
        return result | ({"windows": windows} if windows else {"why": "WHERE drops it"})

    def _windows(self, found: _Found, grouping: Grouping) -> Iterator[dict[str, Any]]:
        keys = found.keys[grouping]
        if keys is None:
            return
        length, window = slice_length(self.explainer.pipeline), grouping.window
        for end in window_ends(window.window, found.fields["system_timestamp"]):
            start = (end - 1) // length * length
            (plan,) = self.explainer.plans.of(found.source.compiled.alias, [Slice(start, start + length)])
            rows, members = self._group(found.source, plan, grouping, keys)
            row = next((row for row in rows if row.end == end), None)
            shown = {
                "start": ticks.to_text(end - window.window.size),
                "end": ticks.to_text(end),
                "slice_start": ticks.to_text(start),
                "published_by": plan.published_by,
            }
            if window.id is not None:
                shown["id"] = window.id
            if row is None or identity_of(found.fields) not in members:
                yield shown | {"row": None, "why": WITHOUT_EVENT}
            elif not row.is_published:
                yield shown | {"row": None, "why": "a condition on the group, such as HAVING, drops the row"}
            else:
                yield shown | {"row": {name: json_value(value) for name, value in row.columns.items()}}

    def _group(
        self, source: InputToSearch, plan: SlicePlan, grouping: Grouping, keys: Keys
    ) -> tuple[list[Row], set[Identity]]:
        """Return what `rows_of_keys` returns, which is read once."""
        place = (source.compiled.alias, plan.slice, grouping, keys)
        if place not in self._rows:
            times = Slice(plan.slice.start - grouping.window.window.size, plan.slice.end)
            values = grouping.values_of(source.compiled, keys)
            index = self.explainer.index(source.compiled, values, times if source.slice_length is None else None)
            asked = [found.fields["system_timestamp"] for found in self.found if found.view is not None]
            self._rows[place] = rows_of_keys(source, plan, grouping, keys, index, asked)
        return self._rows[place]


def _offset(source: InputToSearch, pinned: PinnedBlob, number: int) -> str | None:
    """Return the offset of an event, by its sequence number."""
    offset = MetadataColumn(Metadata.OFFSET)
    content = open_container(source.section.container).read(pinned.blob)
    events = source.reader.read(pinned, content, (offset, ENQUEUED))
    (rows,) = np.nonzero(events.number == number)
    return None if not len(rows) else events.metadata[offset][int(rows[0])].as_py()
