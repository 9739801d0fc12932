"""The events that made a row of a published table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.definition.pipeline import Pipeline
from recapture.errors import DefinitionError
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.faults import naming
from recapture.evaluate.statement import published_rows
from recapture.execute.shared_keys import keys_of_column
from recapture.model import AsaType
from recapture.process.wording import counted, did_you_mean
from recapture.query.model import CompiledOutput, CompiledQuery
from recapture.query.plan.relations import SLICE_START, OutputPlan
from recapture.run.slices import slice_length
from recapture.time_model import ticks
from recapture.time_model.slices import Slice
from recapture.time_model.windows import HoppingWindow, SlidingWindow
from recapture.tools.events.absences import in_json_types
from recapture.tools.events.event import json_types, json_value
from recapture.tools.events.explain import Explainer
from recapture.tools.events.index import BlobsRead
from recapture.tools.events.lineage import sources_of
from recapture.tools.events.plans import SlicePlan
from recapture.tools.events.roles import counts_of
from recapture.tools.events.room import MORE_MEMORY, room_for
from recapture.tools.events.row_text import Values, has_value, having, values_of
from recapture.tools.events.row_time import is_time
from recapture.tools.events.slice_events import KeyValue, SliceSources
from recapture.tools.events.traced_tables import END, PART, TracedTables, divided

EARLIEST = ticks.UNIX_EPOCH
"""Earliest time of a row that is looked for: no archive has older events."""
_TRUNCATED = ticks.TICKS_PER_MICROSECOND - 1
"""Largest number of ticks that a published time lacks: it is truncated to microseconds."""
_TIME = "_system_timestamp"
_KEY_TYPES = (AsaType.STRING, AsaType.BIGINT, AsaType.BIT)
"""Types whose published values are those of the events: a published time has fewer digits."""
_DROPPED = "a condition on the group, such as HAVING, drops the row"


@dataclass(frozen=True)
class Lineage:
    """A row, and the events and the reference data that made it."""

    pipeline: Pipeline
    output: CompiledOutput
    plan: SlicePlan
    row: Mapping[str, Any] | None
    """Published columns in JSON types; None if there is no such row."""
    copies: int
    """Number of rows that are equal to it, itself included."""
    why: str | None
    """Why there is no such row; None if there is one."""
    system_timestamp: int | None
    """System.Timestamp of the row, in ticks."""
    window: Mapping[str, str] | None
    """Window of the row, in JSON types; None if no GROUP BY made it."""
    events: tuple[dict[str, Any], ...]
    """Events in JSON types, as in `event.json_types`, with their roles: of each input, the first ones of each role."""
    counts: Mapping[str, int]
    """Number of all events by role."""
    references: tuple[dict[str, Any], ...]
    """Rows of reference data in JSON types."""
    absences: tuple[Mapping[str, Any], ...]
    """What the query looked for and did not find, in JSON types."""
    notes: tuple[str, ...]
    """What the reader has to know about the slice, one sentence each."""
    read: Mapping[str, BlobsRead]
    """Blobs that were read, by alias of the input."""

    @property
    def warnings(self) -> list[str]:
        """Warnings, one sentence each."""
        if self.copies > 1:
            return [*self.notes, f"{self.copies:,} rows are equal: the events shown are those of the first one"]
        return list(self.notes)

    @property
    def summary(self) -> dict[str, Any]:
        """The lineage in JSON types."""
        return {
            "pipeline": self.pipeline.name,
            "output": self.output.alias,
            "slice": {
                "start": ticks.to_text(self.plan.slice.start),
                "published_by": self.plan.published_by,
                "run": self.plan.run,
            },
            "system_timestamp": None if self.system_timestamp is None else ticks.to_text(self.system_timestamp),
            "window": self.window,
            "row": self.row,
            "why": self.why,
            "events": list(self.events),
            "counts": dict(self.counts),
            "references": list(self.references),
            "absences": list(self.absences),
            "inputs": [{"alias": alias, **read.summary} for alias, read in self.read.items()],
            "warnings": [*self.pipeline.warnings, *self.warnings],
        }


def lineage(explainer: Explainer, row: str, alias: str | None) -> Lineage:
    """Return the events that made a row, NAME=VALUE,…; the values must tell it from the other rows of its slice.

    `alias` is the output; None for the only one. Raise DefinitionError if the text does not name a row; other errors
    are those of `reading.read_events`, and RunError if the query fails for a value.
    """
    query = explainer.pipeline.compile(explainer.pipeline.job.query, in_tasks=False)
    output = _output(query, alias)
    values = values_of(row, output.alias, output.columns)
    named = {name: value for name, value in values.items() if name != SLICE_START}
    absent: list[Lineage] = []
    for piece in _pieces(output, values, explainer):
        found = _SliceRows(explainer, query, output, *piece, named).lineage()
        if found.row is not None:
            return found
        absent.append(found)
    return next((dropped for dropped in absent if dropped.events), absent[0])


def _output(query: CompiledQuery, alias: str | None) -> CompiledOutput:
    outputs = {output.alias.lower(): output for output in query.outputs}
    known = [output.alias for output in outputs.values()]
    if alias is None and len(outputs) > 1:
        raise DefinitionError(f"the query writes to several outputs: choose one with --output: {', '.join(known)}")
    if alias is not None and alias.lower() not in outputs:
        advice = did_you_mean(alias, known) or f"choose one of {', '.join(known)}"
        raise DefinitionError(f"--output {alias}: the query has no output of this name; {advice}")
    return outputs[alias.lower()] if alias is not None else next(iter(outputs.values()))


def _pieces(output: CompiledOutput, values: Values, explainer: Explainer) -> list[tuple[Slice, Slice]]:
    """Return the slices that may have a row with these values, each with the part of it where the row may be.

    There are two if the published time of the row is a bound of both.
    """
    length = slice_length(explainer.pipeline)
    times = [item.name for item in output.columns if is_time(output.plan, item.name)]
    named = next((name for name in times if name in values), None)
    time = None if named is None else values[named]
    if SLICE_START in values:
        start = values[SLICE_START]
        if not isinstance(start, int) or start % length:
            raise DefinitionError(f"--row: no slice starts at {SLICE_START}: slices start every {length // 10**7:,} s")
        slices = [Slice(start, start + length)]
    elif not times:
        raise DefinitionError(
            f"--row: no column of {output.alias} is the time of its rows, System.Timestamp(): add {SLICE_START}=, "
            "the start of the row's slice, as in the published table"
        )
    elif not isinstance(time, int):
        problem = f"add {times[0]}," if named is None else f"{named} is never NULL: write"
        raise DefinitionError(f"--row: {problem} the time of the row")
    else:
        ends = {-(-instant // length) * length for instant in (time, time + _TRUNCATED)}
        slices = [Slice(end - length, end) for end in sorted(ends)]
    pieces = [(slice_, _piece(slice_, time)) for slice_ in slices]
    start = pieces[0][0].start
    if start < EARLIEST or start >= ticks.from_datetime(explainer.now):
        raise DefinitionError("--row: the time of the row must be after 1970 and not in the future")
    return pieces


def _piece(slice_: Slice, time: object) -> Slice:
    """Return the part of a slice that has the rows of a published time, in ticks: all of it if it has none of them."""
    if isinstance(time, int) and slice_.start < time + _TRUNCATED and time <= slice_.end:
        return Slice(max(slice_.start, time - 1), min(slice_.end, time + _TRUNCATED))
    return slice_


@dataclass
class _SliceRows:
    """The rows of an output in a part of a slice that may have some values, computed again.

    Held are the events that these rows depend on. If one of the values is a key that all steps share, only those with
    this key are held.
    """

    explainer: Explainer
    query: CompiledQuery
    output: CompiledOutput
    slice: Slice
    piece: Slice
    """Part of the slice."""
    values: Values

    @cached_property
    def sources(self) -> SliceSources:
        room = room_for(self.query, self._advice)
        return SliceSources(
            self.explainer.pipeline, self.explainer.plans, self.query, self.slice, self.piece, self.keys, room
        )

    @property
    def _advice(self) -> str:
        """What to do if the events do not fit into memory."""
        names = [column.name for column in self.output.columns if column.type in _KEY_TYPES]
        key = next((name for name in names if keys_of_column(self.query, self.output, name)), None)
        if self.key is not None or key is None:
            return MORE_MEMORY
        return f"add {key}= to --row, so that only the events with this {key} are read into memory"

    @property
    def keys(self) -> Mapping[str, KeyValue]:
        """Value that all events of such a row have, by view."""
        if self.key is None:
            return {}
        tokens = {(read.view, column.name) for read in self.query.inputs for column in read.columns if column.is_token}
        columns = keys_of_column(self.query, self.output, self.key) or {}
        value = self.values[self.key]
        return {view: KeyValue(name, value, (view, name) in tokens) for view, name in columns.items()}

    @cached_property
    def key(self) -> str | None:
        """First of the columns with a value that is a key of all steps; None if there is none."""
        names = (column.name for column in self.output.columns if column.type in _KEY_TYPES)
        named = (name for name in names if name in self.values)
        return next((name for name in named if keys_of_column(self.query, self.output, name)), None)

    @property
    def plan(self) -> SlicePlan:
        """What the slice reads of the first input; all inputs were planned by the same run."""
        return next(iter(self.sources.events.values())).plan

    @property
    def notes(self) -> tuple[str, ...]:
        notes = dict.fromkeys(
            events.plan.note for events in self.sources.events.values() if events.plan.note is not None
        )
        start = ticks.to_text(self.slice.start)
        return tuple(f"slice {start}: {note}; this is what a run would give now" for note in notes)

    @property
    def read(self) -> dict[str, BlobsRead]:
        return {events.source.compiled.alias: events.read for events in self.sources.events.values()}

    def _traced(self, tables: OutputPlan) -> TracedTables:
        bounds = SliceBounds(self.piece.start, self.piece.end, self.query.python_functions)
        return TracedTables(tables, bounds, self.sources.read)

    def lineage(self) -> Lineage:
        """Return the row that has the values. Raise DefinitionError if several different rows have them."""
        with naming(f"slice {ticks.to_text(self.slice.start)}"), naming(f"output {self.output.alias}"):
            return self._lineage()

    def _lineage(self) -> Lineage:
        traced = self._traced(self.output.plan)
        places, rows = self._rows(traced)
        has = np.flatnonzero(having(rows, self.values))
        if not len(has):
            return self._of_no_row(rows)
        matching = rows.take(pa.array(has)).to_pylist()
        differing = [name for name in rows.column_names if len({repr(row[name]) for row in matching}) > 1]
        if differing:
            raise DefinitionError(f"--row: {len(has):,} rows have these values: add {' or '.join(differing[:3])}")
        row = {name: json_value(value) for name, value in matching[0].items()}
        return self._made(traced, int(places[has[0]]), rows.column_names, row, len(has))

    def _rows(self, traced: TracedTables) -> tuple[NDArray[np.int64], pa.Table]:
        """Return the places of the rows that the part publishes, in the table of the output, and the rows."""
        table = traced.of(traced.tables.output.name).rows
        times = table[_TIME].to_numpy()
        places = np.flatnonzero((times > self.piece.start) & (times <= self.piece.end))
        names = set(table.column_names)
        columns = [column for column in self.output.columns if column.name in names]
        return places, published_rows(table.take(pa.array(places)), columns)

    def _of_no_row(self, rows: pa.Table) -> Lineage:
        """Return why no row has the values, with the events of a group that HAVING drops."""
        values = self.values
        if values and set(values) <= set(self.output.group_columns):
            traced = self._traced(_without_having(self.output.plan, values))
            places, groups = self._rows(traced)
            has = np.flatnonzero(having(groups, values))
            if len(has):
                made = self._made(traced, int(places[has[0]]), list(values), {}, 1)
                return replace(made, row=None, why=_DROPPED)
        start = ticks.to_text(self.slice.start)
        which = "" if self.key is None else f" with this {self.key}"
        if self.piece != self.slice:
            which = f" at {ticks.to_text(self.piece.start + 1)}{which}"
        missing = [name for name, value in values.items() if not has_value(rows[name], value).any()]
        these = f"none has this {' or this '.join(missing)}" if missing else "none has all of these values together"
        rows_there = f"{counted(len(rows), 'row')}{which}; {these}" if len(rows) else f"no row{which}"
        why = f"slice {start} has {rows_there}"
        return Lineage(
            self.explainer.pipeline,
            self.output,
            self.plan,
            None,
            0,
            why,
            None,
            None,
            (),
            {},
            (),
            (),
            self.notes,
            self.read,
        )

    def _made(
        self, traced: TracedTables, place: int, columns: Iterable[str], row: Mapping[str, Any], copies: int
    ) -> Lineage:
        """Return what made a row of the output's table."""
        roles, absences = sources_of(traced, np.array([place]), columns)
        event_roles = [roles[view] for view in self.sources.events if view in roles]
        events = [self.sources.events[view].with_roles(roles[view]) for view in self.sources.events if view in roles]
        references = [
            self.sources.references[view].with_roles(roles[view]) for view in self.sources.references if view in roles
        ]
        time = traced.of(traced.tables.output.name).rows[_TIME][place].as_py()
        return Lineage(
            self.explainer.pipeline,
            self.output,
            self.plan,
            row,
            copies,
            None,
            time,
            _window(traced, place),
            tuple(event for table in events for event in json_types(table)),
            counts_of(event_roles),
            tuple(shown for rows in references for shown in rows),
            in_json_types(absences),
            self.notes,
            self.read,
        )


def _without_having(tables: OutputPlan, columns: Iterable[str]) -> OutputPlan:
    """Return tables whose output has all groups, with some of its columns."""
    selections = tuple(
        replace(
            selection,
            grouping=selection.grouping and replace(selection.grouping, having=None),
            items=tuple(item for item in selection.items if item.name in set(columns)),
        )
        for selection in tables.output.selections
    )
    return replace(tables, output=replace(tables.output, selections=selections))


def _window(traced: TracedTables, place: int) -> dict[str, str] | None:
    """Return the window of a row of the output's table in JSON types; None if no GROUP BY made it."""
    output = traced.tables.output
    origins = traced.of(output.name).origins
    grouping = divided(output)[origins[PART][place].as_py()].grouping
    if grouping is None:
        return None
    (grouped,) = grouping.windows
    end = origins[END][place].as_py()
    shown = {} if grouped.id is None else {"id": grouped.id}
    if isinstance(grouped.window, HoppingWindow | SlidingWindow):
        shown["start"] = ticks.to_text(end - grouped.window.size)
    return shown | {"end": ticks.to_text(end)}
