"""The events and the reference data that a slice reads, as the query reads them, and those of them that matter."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture import tokens
from recapture.archive.references import ALWAYS, PlannedReference
from recapture.definition.pipeline import Pipeline
from recapture.evaluate.buckets import buckets_of
from recapture.execute import references
from recapture.formats.event_keys import EventKey
from recapture.ordering.order import schema
from recapture.ordering.task import Task
from recapture.query.model import CompiledInput, CompiledQuery, CompiledReference
from recapture.query.plan.joins import VALIDITY
from recapture.storage import open_container
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from recapture.tools.events.event import json_value
from recapture.tools.events.groups import view_of
from recapture.tools.events.index import ArchiveIndex, BlobsRead, index_for
from recapture.tools.events.plans import Plans, SlicePlan
from recapture.tools.events.reading import IDENTITY, SCHEMA, InputToSearch, JudgedEvents, batch, with_index
from recapture.tools.events.roles import Role, first_of_each
from recapture.tools.events.room import Room

_BUCKETS = 1 << 32
"""Number of buckets: more than there are keys, so that few keys share one."""
ROLE = pa.field("role", pa.string())
"""Column with the role of an event in a row."""
_PLACED = pa.schema([*map(SCHEMA.field, IDENTITY), ("place_in_rows", pa.int64())])
"""Schema of events with their places in `SliceEvents.rows`."""


Needed = Iterator[tuple[JudgedEvents, NDArray[np.intp]]]
"""Events of a task, chunk by chunk, and which of them are needed."""
T = TypeVar("T")
Value = int | float | str | bool | None


@dataclass(frozen=True)
class KeyValue:
    """A value of a column of an input's view: the events that have it are needed, and no others."""

    column: str
    value: Value
    is_token: bool
    """Whether the column holds tokens, and the value is the string of one."""

    def held_by(self, view: pa.RecordBatch) -> NDArray[np.bool_]:
        """Return which events have the value; NULL is NULL."""
        values = tokens.texts(view[self.column]) if self.is_token else view[self.column]
        same = pc.is_null(values) if self.value is None else pc.equal(values, pa.scalar(self.value, values.type))
        return np.asarray(pc.fill_null(same, False).to_numpy(zero_copy_only=False))


@dataclass(frozen=True)
class KeyBuckets:
    """Buckets of the keys that all steps share: the events in them are needed, and no others."""

    columns: tuple[str, ...]
    """Columns of the keys."""
    numbers: frozenset[int]
    """Numbers of the buckets, as `bucket_of` gives them."""

    def held_by(self, view: pa.RecordBatch) -> NDArray[np.bool_]:
        """Return which events are in the buckets."""
        return np.isin(buckets_of(view, self.columns, _BUCKETS), list(self.numbers))


def bucket_of(event: pa.RecordBatch, columns: tuple[str, ...]) -> int:
    """Return the number of the bucket of an event: events with its keys are in the same one, and few others."""
    (number,) = buckets_of(event, columns, _BUCKETS)
    return int(number)


@dataclass
class SliceEvents:
    """The events of an input that a part of a slice needs. They are read once, and those that matter once more."""

    source: InputToSearch
    plan: SlicePlan
    piece: Slice
    """Part of the slice, for whose rows the events are needed."""
    key: KeyValue | KeyBuckets | None
    """What the events must have; None for all that the part needs."""
    room: Room
    read: BlobsRead
    """Blobs that were read, and those that the index left out."""
    asked_times: Sequence[int] = ()
    """System.Timestamps of the events for `place_of`, in ticks."""
    _counts: list[int] = field(default_factory=list)
    """Number of events of each task."""

    @cached_property
    def rows(self) -> pa.Table:
        """Events as rows of the input's view, one partition after another.

        Errors are those of `read_events`, and RunError if they do not fit into memory.
        """
        return pa.Table.from_batches(self._read[0], schema(self.source.compiled))

    @cached_property
    def _read(self) -> tuple[list[pa.RecordBatch], pa.Table]:
        """The events as rows of the view, and the events with one of `asked_times`, with _PLACED."""
        batches, placed = list[pa.RecordBatch](), [_PLACED.empty_table()]
        for task in self.plan.tasks:
            task_batches, task_placed = self._collected(task, partial(self._views, task, sum(self._counts)))
            self._counts.append(sum(part.num_rows for part in task_batches))
            batches += task_batches
            placed += task_placed
        return batches, pa.concat_tables(placed)

    def _views(self, task: Task, first: int, needed: Needed) -> tuple[list[pa.RecordBatch], list[pa.Table]]:
        """Return the same as `_read`, for one task; `first` is the place of its first event."""
        batches, placed = list[pa.RecordBatch](), list[pa.Table]()
        for events, rows in needed:
            if not len(rows):
                continue
            self.room.hold(len(rows))
            batches.append(view_of(self.source, events, rows, self.plan.slice))
            asked = np.flatnonzero(np.isin(events.judged.judged.system_timestamp[rows], self.asked_times))
            if len(asked):
                judged = batch(self.source, task, events.chunk, rows[asked], events)
                columns = [*map(judged.column, IDENTITY), pa.array(first + asked)]
                placed.append(pa.Table.from_arrays(columns, schema=_PLACED))
            first += len(rows)
        return batches, placed

    def with_roles(self, roles: NDArray[np.int8]) -> pa.Table:
        """Return events that have a role, with `reading.SCHEMA` and ROLE, the first MAX_EVENTS of each role.

        `roles` are those of `rows`.
        """
        roles = first_of_each(roles)
        batches = [pa.RecordBatch.from_pylist([], pa.schema([*SCHEMA, ROLE]))]
        task_roles = np.split(roles, np.cumsum(self._counts)[:-1]) if self._counts else []
        for task, own_roles in zip(self.plan.tasks, task_roles, strict=True):
            if own_roles.any():
                batches += self._collected(task, partial(self._having_roles, task, own_roles))
        return pa.Table.from_batches(batches)

    def _having_roles(self, task: Task, roles: NDArray[np.int8], needed: Needed) -> list[pa.RecordBatch]:
        names = pa.array([role.name.lower() for role in Role])
        batches, before = list[pa.RecordBatch](), 0
        for events, rows in needed:
            own = roles[before : before + len(rows)]
            before += len(rows)
            if own.any():
                judged = batch(self.source, task, events.chunk, rows[own > 0], events)
                batches.append(judged.append_column(ROLE, names.take(pa.array(own[own > 0]))))
        return batches

    def place_of(self, event: Mapping[str, Any]) -> int | None:
        """Return the place in `rows` of an event with one of `asked_times`; None if the slice lacks it.

        The event has the columns of `reading.SCHEMA`.
        """
        assert event["system_timestamp"] in self.asked_times, "the slice would seem to lack the event"
        _, placed = self._read
        is_same = [pc.equal(placed[name], event[name]) for name in IDENTITY if event[name] is not None]
        places = placed["place_in_rows"].filter(reduce(pc.and_, is_same))
        return places[0].as_py() if len(places) else None

    def _collected(self, task: Task, collect: Callable[[Needed], T]) -> T:
        """Return what `collect` makes of the events of a task, without the blobs that the index leaves out."""
        events, skipped = with_index(
            self.source, task, self.read.index, lambda judged: collect(self._needed(judged)), set()
        )
        self.read.add(task, skipped)
        return events

    def _needed(self, judged: Iterator[JudgedEvents]) -> Needed:
        """Yield judged events, and which of them the part of the slice needs."""
        piece = self.piece
        for events in judged:
            times, processed = events.judged.judged.system_timestamp, events.judged.judged.processed
            rows = np.flatnonzero(processed & self.source.compiled.needs(times, piece.start, piece.end))
            if self.key is not None and len(rows):
                rows = rows[self.key.held_by(view_of(self.source, events, rows, self.plan.slice))]
            yield events, rows


@dataclass
class SliceReference:
    """The reference data that a slice reads."""

    pipeline: Pipeline
    compiled: CompiledReference
    planned: PlannedReference

    @cached_property
    def rows(self) -> pa.Table:
        """Rows of all versions; errors are those of `references.rows`."""
        section = self.pipeline.reference(self.compiled.alias)
        reader = section.reader(self.compiled.body_columns)
        return references.rows(self.planned, self.compiled, reader, open_container(section.container))

    def with_roles(self, roles: NDArray[np.int8]) -> list[dict[str, Any]]:
        """Return the rows that have a role in JSON types, each with its version."""
        places = np.flatnonzero(roles)
        starts = self.rows[VALIDITY[0]].to_numpy()
        versions = {version.valid_from: version for version in self.planned.versions}
        firsts = dict(zip(*np.unique(starts, return_index=True), strict=True))
        shown = []
        for place, row in zip(places.tolist(), self.rows.take(pa.array(places)).to_pylist(), strict=True):
            start, end = (row.pop(name) for name in VALIDITY)
            times = {"valid_from": start, "valid_until": end}
            known = {name: time for name, time in times.items() if time not in (ALWAYS, references.FOREVER)}
            shown.append(
                {"reference": self.compiled.alias, "blob": versions[start].blob.name}
                | {"row": place - int(firsts[start]) + 1}
                | {name: ticks.to_text(time) for name, time in known.items()}
                | {"columns": {name: json_value(value) for name, value in row.items()}}
            )
        return shown


@dataclass
class SliceSources:
    """What a query reads for a part of a slice."""

    pipeline: Pipeline
    plans: Plans
    query: CompiledQuery
    slice: Slice
    piece: Slice
    """Part of the slice."""
    keys: Mapping[str, KeyValue | KeyBuckets]
    """What the events must have, by view; all events are read of other views."""
    room: Room
    asked_times: Sequence[int] = ()
    """System.Timestamps of the events for `place_of`, in ticks."""

    @cached_property
    def events(self) -> dict[str, SliceEvents]:
        """Events of the inputs, by view."""
        return {read.view: self._events(read) for read in self.query.inputs}

    def _events(self, read: CompiledInput) -> SliceEvents:
        (plan,) = self.plans.of(read.alias, [self.slice])
        key = self.keys.get(read.view)
        blobs = BlobsRead(self._index(read, key))
        source = InputToSearch.of(self.pipeline, read)
        return SliceEvents(source, plan, self.piece, key, self.room, blobs, self.asked_times)

    def _index(self, read: CompiledInput, key: KeyValue | KeyBuckets | None) -> ArchiveIndex | None:
        """Return the index of an input for events with a string; None if they may have any values."""
        columns: tuple[EventKey, ...] = (*read.columns, *read.metadata)
        if not isinstance(key, KeyValue) or not isinstance(key.value, str):
            return None
        column = next(column for column in columns if column.name == key.column)
        return index_for(self.pipeline, read, [(column, key.value)], lambda: self.plans.shown)

    @cached_property
    def references(self) -> dict[str, SliceReference]:
        """Reference data, by view."""
        return {
            read.view: SliceReference(self.pipeline, read, self.plans.reference(read.alias, self.slice))
            for read in self.query.references
        }

    def read(self, view: str) -> pa.Table:
        """Return the rows of a view. Errors are those of `read_events` and `references.rows`."""
        return self.events[view].rows if view in self.events else self.references[view].rows
