"""Keys that all steps of a query share: rows whose keys differ never meet, so a slice can be computed key by key.

Rows meet in GROUP BY, in analytic functions, in JOINs and in matches. A column is traced to the columns of the inputs:
through steps that only rename it, through the keys of GROUP BY and of matches, and through the equalities of JOINs.

    WITH s AS (SELECT a.k AS d FROM a JOIN b ON a.k = b.id AND …) SELECT d, COUNT(*) FROM s GROUP BY d, …
    => input a: k, input b: id
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from recapture.model import AsaType
from recapture.query.model import CompiledOutput, CompiledQuery
from recapture.query.plan.analytics import Analytics
from recapture.query.plan.expressions import Expr, conjuncts
from recapture.query.plan.grouping import Grouping
from recapture.query.plan.joins import Join, JoinedTable, side_column
from recapture.query.plan.matches import MatchedTable, aggregate_name
from recapture.query.plan.operations import Op
from recapture.query.plan.panes import GroupsView, PaneAggregation
from recapture.query.plan.relations import OutputPlan, SelectedTable, Selection
from recapture.time_model.windows import SessionWindow

SharedKeys = Mapping[str, tuple[str, ...]]
"""Columns of each input by the name of its view, the same number for each; none if the rows of an input never meet."""
_MOST = 16
"""Number of keys that are followed at once; more would hardly divide the rows any further."""

_Origin = frozenset[tuple[str, str]]
"""Columns of views, one of each: all events that a row comes from have the value of the row there."""
_NO_COLUMNS: _Origin = frozenset()
_Origins = Mapping[str, frozenset[_Origin]]
"""Origins of the columns of a table, by name; computed columns are left out."""
_Types = Mapping[tuple[str, str], AsaType]
"""Type of each column of each view."""


def shared_keys(query: CompiledQuery) -> SharedKeys | None:
    """Return the columns by which the rows of the inputs can be divided; None if there are none.

    Rows with different values in these columns never meet, in any output. Values are equal as in GROUP BY: NULL equals
    NULL, and -0.0 equals 0.0. An input without columns can be divided in any way. Reference data is not divided: a
    look-up needs all of it.
    """
    types = _types_of(query)
    keys = frozenset([_NO_COLUMNS])
    for output in query.outputs:
        keys = reduce(_merged, _Trace(output.plan, types).meetings(), keys)
    if not keys:
        return None
    ordered = [dict(key) for key in sorted(map(sorted, keys))]
    return {read.view: tuple(key[read.view] for key in ordered if read.view in key) for read in query.inputs}


def keys_of_column(query: CompiledQuery, output: CompiledOutput, name: str) -> Mapping[str, str] | None:
    """Return the column of each input that has the value of a published column, by the view; None if there is none.

    The rows of the output with a value there come from the events with this value, and meet no others. Where the column
    of an input holds tokens, the published value is the string of the token.
    """
    texts = replace(output.plan.output, selections=tuple(map(_with_tokens_of_strings, output.plan.output.selections)))
    trace = _Trace(replace(output.plan, output=texts), _types_of(query))
    keys = reduce(_merged, trace.meetings(), frozenset([_NO_COLUMNS]))
    column_origins = trace.read(texts.name).get(name, frozenset())
    found = (key | origin for key in keys for origin in column_origins if key <= origin or key & origin)
    one_each = [key for key in found if len({view for view, _ in key}) == len(key)]
    return dict(min(one_each, key=sorted)) if one_each else None


def pane_columns(aggregation: PaneAggregation, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of panes that hold the shared keys of their events."""
    names = {key.value.name: key.name for key in aggregation.keys if key.value.is_column}
    return tuple(names[column] for column in columns)


def _types_of(query: CompiledQuery) -> _Types:
    types: dict[tuple[str, str], AsaType] = {}
    for read in query.inputs:
        types |= {(read.view, column.name): column.type for column in read.columns}
        types |= {(read.view, column.name): column.type for column in read.metadata}
    return types


def _with_tokens_of_strings(selection: Selection) -> Selection:
    """Return a SELECT that gives the tokens whose strings it would give."""
    items = (
        replace(item, expression=item.expression.arguments[0]) if item.expression.op is Op.TOKEN_TEXT else item
        for item in selection.items
    )
    return replace(selection, items=tuple(items))


@dataclass
class _Trace:
    """Where the columns of an output's tables come from."""

    plan: OutputPlan
    types: _Types
    _origins: dict[str, _Origins] = field(default_factory=dict)
    """Origins of the columns of steps and JOINs, by the name of the table."""

    def meetings(self) -> Iterator[frozenset[_Origin]]:
        """Yield for everything that lets rows meet the keys that these rows share: no row meets one with another."""
        for table in (*self.plan.steps, self.plan.output):
            match table:
                case SelectedTable():
                    yield from self._united(table)
                case JoinedTable():
                    yield from self._joined(table)
                case _:
                    yield from self._matched(table)

    def read(self, table: str) -> _Origins:
        """Return the origins of the columns of a table or of a view."""
        if table in self._origins:
            return self._origins[table]
        return {name: frozenset([frozenset([(of, name)])]) for of, name in self.types if of == table}

    def _united(self, table: SelectedTable) -> Iterator[frozenset[_Origin]]:
        parts: list[_Origins] = []
        for selection in table.selections:
            yield from self._selected(selection, parts)
        names = set.intersection(*(set(part) for part in parts))
        self._origins[table.name] = {name: reduce(_merged, [part[name] for part in parts]) for name in names}

    def _selected(self, selection: Selection, parts: list[_Origins]) -> Iterator[frozenset[_Origin]]:
        """Yield the keys of the rows that meet in a SELECT, and add the origins of its columns to `parts`."""
        read = self.read(selection.table)
        if selection.analytics is not None:
            yield from _of_analytics(selection.analytics, read)
        if selection.grouping is not None:
            read = _of_keys(selection.grouping, selection.groups_view, read)
            for grouped in selection.grouping.windows:
                is_session = isinstance(grouped.window, SessionWindow)
                shared = [f"_k{number}" for number in grouped.partition_by] if is_session else [*read]
                yield _any_of(read[name] for name in shared)
        parts.append({item.name: _origins_of(item.expression, read) for item in selection.items})

    def _matched(self, table: MatchedTable) -> Iterator[frozenset[_Origin]]:
        """Yield the keys of the rows that meet in a match; a measure that is a key has its value in all of them."""
        read = self.read(table.source)
        yield _any_of(_origins_of(key, read) for key in table.keys)
        keys = {
            aggregate_name(number): _origins_of(aggregate.value, read)
            for number, aggregate in enumerate(table.aggregates)
            if aggregate.value in table.keys
        }
        self._origins[table.name] = {name: _origins_of(value, keys) for name, value in table.measures}

    def _joined(self, table: JoinedTable) -> Iterator[frozenset[_Origin]]:
        origins: _Origins = {}
        for number, (side, join) in enumerate(zip(table.sides, (None, *table.joins), strict=True)):
            if side.is_reference:
                continue
            read = self.read(side.table)
            if side.analytics is not None:
                yield from _of_analytics(side.analytics, read)
            new = {side_column(number, name): of for name, of in read.items()}
            if isinstance(join, Join):
                pairs = [pair for pair in _equal_columns(join.condition, origins, new) if self._have_one_type(*pair)]
                yield _any_of(_merged(*pair) for pair in pairs)
                is_outer = join.latest_match is not None
                origins = _linked(origins, {} if is_outer else new, pairs)
            else:
                origins = new
        self._origins[table.name] = origins

    def _have_one_type(self, *columns: frozenset[_Origin]) -> bool:
        return len({self.types[column] for origins in columns for origin in origins for column in origin}) == 1


def _of_analytics(analytics: Analytics, read: _Origins) -> Iterator[frozenset[_Origin]]:
    for function in analytics.functions:
        yield _any_of(_origins_of(key, read) for key in function.history.keys)


def _of_keys(grouping: Grouping, groups_view: GroupsView | None, read: _Origins) -> _Origins:
    """Return the origins of the keys of a GROUP BY; if its groups are merged from panes, those are of events."""
    if groups_view is None:
        return {f"_k{number}": _origins_of(key, read) for number, key in enumerate(grouping.keys)}
    window = groups_view.groups.windows[0]
    return {
        key.name: frozenset([frozenset([(window.view, key.value.name)])] if key.value.is_column else [])
        for key in window.aggregation.keys
    }


def _origins_of(expression: Expr, read: _Origins) -> frozenset[_Origin]:
    return read.get(expression.name, frozenset()) if expression.is_column else frozenset()


def _any_of(origins: Iterable[frozenset[_Origin]]) -> frozenset[_Origin]:
    return frozenset[_Origin]().union(*origins)


def _merged(first: frozenset[_Origin], second: frozenset[_Origin]) -> frozenset[_Origin]:
    """Return what agrees with one of `first` and one of `second`: {a: k}, {b: id} => {a: k, b: id}

    Two origins agree unless they name different columns of a view.
    """
    together = {left | right for left in first for right in second}
    agreeing = (key for key in together if len({view for view, _ in key}) == len(key))
    return frozenset(sorted(agreeing, key=sorted)[:_MOST])


def _equal_columns(
    condition: Expr, earlier: _Origins, new: _Origins
) -> Iterator[tuple[frozenset[_Origin], frozenset[_Origin]]]:
    """Yield the origins of columns that ON sets equal: of one of the sides before, and of one of the new side."""
    for part in conjuncts(condition):
        if part.op is Op.EQUAL:
            first, second = part.arguments
            for column, opposite in ((first, second), (second, first)):
                if (origins := _origins_of(column, earlier)) and (opposite_origins := _origins_of(opposite, new)):
                    yield origins, opposite_origins


def _linked(
    earlier: _Origins, new: _Origins, pairs: Iterable[tuple[frozenset[_Origin], frozenset[_Origin]]]
) -> dict[str, frozenset[_Origin]]:
    """Return the origins of the columns of joined rows: of those that equal a column of the other side.

    `new` has no columns for a LEFT JOIN: they are NULL in a row without a match.
    """
    linked: dict[_Origin, set[_Origin]] = {}
    for pair in pairs:
        for origins, others in (pair, pair[::-1]):
            for origin in origins:
                linked.setdefault(origin, set()).update(_merged(frozenset([origin]), others))
    columns = {**earlier, **new}
    return {name: _any_of(frozenset(linked.get(origin, ())) for origin in of) for name, of in columns.items()}
