"""Column lineage: from which fields of the inputs the value of each published column is computed.

Conditions, keys of JOINs and the order of rows decide which rows there are. They are not part of the lineage, unless
the column has their values.

    SELECT System.Timestamp() AS windowEnd, d.site, AVG(t.x * 2) AS mean
    FROM telemetry t TIMESTAMP BY at JOIN devices d ON t.id = d.id GROUP BY d.site, Tumbling(minute, 1)
    => windowEnd: telemetry at / site: devices site / mean: telemetry x
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from recapture.model import InputColumn, MetadataColumn, dateadd_fields, path_name, time_fields
from recapture.query.model import CompiledInput, CompiledOutput, CompiledQuery
from recapture.query.plan.expressions import Expr, columns_of
from recapture.query.plan.grouping import WINDOW_END
from recapture.query.plan.joins import JoinedTable
from recapture.query.plan.relations import OutputPlan, SelectedTable, Selection, Table

_TIME = "_system_timestamp"
_NUMBERED = re.compile(r"(_k|_r|@f|@@e|@m)(\d+)")
"""Names of the columns of groups, of analytic functions, of APPLYs and of matches."""


@dataclass(frozen=True, order=True)
class SourceField:
    """A field of the events of an input or of the rows of reference data, or metadata of the events."""

    alias: str
    """Name of the input after FROM, or of the reference data after JOIN."""
    name: str
    """Path of the field, joined by dots, or name of the metadata, such as `EventEnqueuedUtcTime`."""


Fields = frozenset[SourceField]


def column_lineage(query: CompiledQuery, output: CompiledOutput) -> dict[str, tuple[SourceField, ...]]:
    """Return the fields from which each published column of an output is computed, sorted; COUNT(*) has none.

    A column that is computed from whole events or rows has none for them either: their fields are not known.
    """
    trace = _Trace(output.plan, _view_columns(query))
    return {column.name: tuple(sorted(trace.fields(output.plan.output.name, column.name))) for column in output.columns}


def _view_columns(query: CompiledQuery) -> dict[tuple[str, str], Fields]:
    """Return the fields of each column of the views that the tables read, by the names of the view and the column."""
    fields: dict[tuple[str, str], Fields] = {}
    for read in query.inputs:
        fields[read.view, _TIME] = _fields(read.alias, _time_columns(read))
        columns: tuple[InputColumn | MetadataColumn, ...] = (*read.columns, *read.metadata)
        fields |= {(read.view, column.name): _fields(read.alias, [column]) for column in columns}
    for reference in query.references:
        fields |= {(reference.view, column.name): _fields(reference.alias, [column]) for column in reference.columns}
    return fields


def _time_columns(read: CompiledInput) -> list[InputColumn | MetadataColumn]:
    """Return what the TIMESTAMP BY of an input reads."""
    if isinstance(read.timestamp_by, MetadataColumn):
        return [read.timestamp_by]
    return [*time_fields(read.timestamp_by), *dateadd_fields(read.timestamp_by)]


def _fields(alias: str, columns: Iterable[InputColumn | MetadataColumn]) -> Fields:
    names = (column.name[1:] if isinstance(column, MetadataColumn) else path_name(column.path) for column in columns)
    return frozenset(SourceField(alias, name) for name in names if name)


@dataclass
class _Trace:
    """Follows the columns of the tables of an output to the views."""

    plan: OutputPlan
    views: Mapping[tuple[str, str], Fields]

    def __post_init__(self) -> None:
        self._known: dict[tuple[str, str], Fields] = dict(self.views)

    @cached_property
    def _tables(self) -> dict[str, Table]:
        return {table.name: table for table in (*self.plan.steps, self.plan.output)}

    def fields(self, table: str, name: str) -> Fields:
        """Return the fields from which a column of a table, or of a view, is computed."""
        if (table, name) not in self._known:
            self._known[table, name] = self._of_table(self._tables[table], name) if table in self._tables else Fields()
        return self._known[table, name]

    def _of_table(self, table: Table, name: str) -> Fields:
        if isinstance(table, SelectedTable):
            return Fields().union(*(self._selected(selection, name) for selection in table.selections))
        if name == _TIME:
            return Fields().union(*(self.fields(source, _TIME) for source in table.sources))
        if isinstance(table, JoinedTable):
            number, _, column = name.partition(".")
            side = table.sides[int(number)]
            if side.analytics is not None and (own := _NUMBERED.fullmatch(column)) and own[1] == "@f":
                return self._read(side.analytics.functions[int(own[2])].inputs, side.table)
            return self.fields(side.table, column)
        aggregates = (
            table.aggregates[int(own[2])].value
            for column in columns_of(dict(table.measures)[name])
            if (own := _NUMBERED.fullmatch(column))
        )
        return self._read(aggregates, table.source)

    def _selected(self, selection: Selection, name: str) -> Fields:
        if name == _TIME:
            return self.fields(selection.table, _TIME)
        items = [item.expression for item in selection.items if item.name == name]
        return Fields().union(*(self._in_select(selection, column) for item in items for column in columns_of(item)))

    def _in_select(self, selection: Selection, name: str) -> Fields:
        """Return the fields of a column of the rows, or of the groups, over which the select list is computed."""
        grouping, analytics = selection.grouping, selection.analytics
        own = _NUMBERED.fullmatch(name)
        if own is None:
            return self.fields(selection.table, _TIME if name == WINDOW_END else name)
        parts: Iterable[Expr] = ()
        match own[1], int(own[2]):
            case "_k", number if grouping is not None:
                parts = [grouping.keys[number]]
            case "_r", number if grouping is not None:
                parts = grouping.aggregates[number].inputs
            case "@f", number if analytics is not None:
                return self._read(analytics.functions[number].inputs, selection.table)
            case "@@e", number:
                parts = [selection.laterals[number].array]
        return Fields().union(*(self._in_row(selection, column) for part in parts for column in columns_of(part)))

    def _in_row(self, selection: Selection, name: str) -> Fields:
        """Return the fields of a column of the rows that are grouped, with the elements of the APPLYs before."""
        if _NUMBERED.fullmatch(name):
            return self._in_select(selection, name)
        return self.fields(selection.table, name)

    def _read(self, parts: Iterable[Expr], table: str) -> Fields:
        """Return the fields of all columns of a table that expressions read."""
        return Fields().union(*(self.fields(table, column) for part in parts for column in columns_of(part)))
