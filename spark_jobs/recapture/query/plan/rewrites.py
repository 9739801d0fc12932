"""Rewrites of relations: each has a name and gives the same rows, unless they spare the run an error.

    plain steps     WITH s AS (SELECT x + 1 AS y FROM t WHERE x > 0), SELECT y FROM s WHERE y < 9
                    => SELECT x + 1 AS y FROM t WHERE x > 0 AND x + 1 < 9
    grouped steps   WITH s AS (SELECT COUNT(*) AS n FROM t GROUP BY Tumbling(…)), SELECT n + 1 AS m FROM s WHERE n > 2
                    => SELECT COUNT(*) + 1 AS m FROM t GROUP BY Tumbling(…) HAVING COUNT(*) > 2
    unused columns  WITH s AS (SELECT x, 1 / y AS z FROM t), SELECT x FROM s
                    => WITH s AS (SELECT x FROM t), SELECT x FROM s

So an error in a column that nothing reads, or in a row that a later WHERE leaves out, does not stop the run.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from recapture.query.plan.aggregates import Aggregate
from recapture.query.plan.analytics import Analytics, result_name
from recapture.query.plan.expressions import NULL, Expr, call, column, columns_of, replaced, size, user_calls, walk
from recapture.query.plan.grouping import WINDOW_END
from recapture.query.plan.joins import Join, JoinedTable, Lookup
from recapture.query.plan.matches import MatchedTable
from recapture.query.plan.operations import Op
from recapture.query.plan.relations import Item, SelectedTable, Selection, Table

T = TypeVar("T")

LARGEST_EXPRESSION = 500
"""Largest number of operations of an expression that grows as it is put together from those of two SELECTs."""
_TIMES = {column(name): column(WINDOW_END) for name in ("_system_timestamp", "_arrival")}
"""What the times of a group's row stand for, over the group."""


@dataclass(frozen=True)
class Rewritten:
    """The tables of a query after all rewrites."""

    steps: tuple[Table, ...]
    outputs: tuple[SelectedTable, ...]
    notes: tuple[str, ...]
    """What was rewritten, for readers."""


def rewritten(steps: Sequence[Table], outputs: Mapping[str, SelectedTable]) -> Rewritten:
    """Return the tables of a query, rewritten; `outputs` are named by their aliases.

    `steps` come in the order of WITH, with the JOINs before the steps that read them. Those that nothing reads are left
    out.
    """
    query = _Query(list(steps), dict(outputs))
    query.prune()
    query.read_through()
    query.prune()
    return Rewritten(tuple(query.steps), tuple(query.outputs.values()), tuple(dict.fromkeys(query.notes)))


def through(reader: Selection, step: Selection) -> Selection | None:
    """Return a SELECT that reads what a step reads instead of the step; None if it has to read the step.

    It has to if it has analytic functions or an APPLY, which come before its WHERE, if both have a GROUP BY, or if an
    expression would become too long.
    """
    if reader.analytics or reader.laterals or (reader.grouping and step.grouping):
        return None
    values = {column(item.name): item.expression for item in step.items} | (_TIMES if step.grouping else {})
    if _grow_too_long(reader, step, values):
        return None

    def over_source(expression: Expr) -> Expr:
        return replaced(expression, values)

    condition = None if reader.where is None else over_source(reader.where)
    if step.grouping is None:
        changed = _mapped(reader, over_source)
        return replace(step, where=_both(step.where, condition), grouping=changed.grouping, items=changed.items)
    grouping = replace(step.grouping, having=_both(step.grouping.having, condition))
    return replace(step, grouping=grouping, items=_mapped(reader, over_source).items)


@dataclass
class _Query:
    """The tables of a query, as far as they are rewritten."""

    steps: list[Table]
    outputs: dict[str, SelectedTable]
    notes: list[str] = field(default_factory=list)

    def read_through(self) -> None:
        """Let SELECTs read through the steps that they read.

        A step that costs more than a column is computed once if several tables read it: one with a GROUP BY, analytic
        functions, an APPLY or a call of a function in Python.
        """
        tables: Sequence[Table] = (*self.steps, *self.outputs.values())
        readers = Counter(name for table in tables for name in table.sources)
        steps: dict[str, Table] = {}
        for place, table in enumerate(self.steps):
            self.steps[place] = steps[table.name] = self._reading_through(table.name, table, steps, readers)
        for alias, output in self.outputs.items():
            reading = self._reading_through(f"output {alias}", output, steps, readers)
            assert isinstance(reading, SelectedTable)
            self.outputs[alias] = reading

    def _reading_through(
        self, name: str, table: Table, steps: Mapping[str, Table], readers: Mapping[str, int]
    ) -> Table:
        if not isinstance(table, SelectedTable):
            return table
        selections: list[Selection] = []
        for selection in table.selections:
            step = steps.get(selection.table)
            parts = _parts(selection, step, readers[selection.table] == 1) if step else None
            if parts:
                kind = "grouped" if any(part.grouping for part in parts) and not selection.grouping else "plain"
                self.notes.append(f"{kind} steps: {name} reads through {selection.table}")
            selections += parts or [selection]
        return replace(table, selections=tuple(selections))

    def prune(self) -> None:
        """Leave out the steps that nothing reads, and of the others the columns that nothing reads."""
        read: dict[str, set[str]] = {}
        for output in self.outputs.values():
            _note_reads(output, read)
        steps: list[Table] = []
        for table in reversed(self.steps):
            if table.name not in read:
                self.notes.append(f"unused steps: {table.name}")
                continue
            pruned = _pruned(table, read[table.name])
            if unused := sorted(_names(table) - _names(pruned)):
                self.notes.append(f"unused columns: {', '.join(unused)} of {table.name}")
            _note_reads(pruned, read)
            steps.insert(0, pruned)
        self.steps = steps


def _parts(reader: Selection, step: Table, is_only_reader: bool) -> list[Selection] | None:
    """Return the SELECTs that read through a step, one for each SELECT of the step; None if they cannot."""
    if not isinstance(step, SelectedTable) or (len(step.selections) > 1 and not _can_read_union(reader, step)):
        return None
    parts = [through(reader, part) for part in step.selections if is_only_reader or _is_cheap(part)]
    found = [part for part in parts if part is not None]
    return found if len(found) == len(step.selections) else None


def _can_read_union(reader: Selection, step: SelectedTable) -> bool:
    """Return whether a SELECT can read the SELECTs of a UNION, one by one; a column of NULLs has no type of its own."""
    has_nulls = any(item.expression == NULL for part in step.selections for item in part.items)
    return reader.grouping is None and not has_nulls


def _is_cheap(selection: Selection) -> bool:
    """Return whether a SELECT may be computed for each of its readers."""
    if selection.grouping or selection.analytics or selection.laterals:
        return False
    return not any(map(user_calls, _expressions(selection)))


def _pruned(table: Table, names: set[str]) -> Table:
    """Return a table with no more than some of its columns."""
    if isinstance(table, SelectedTable):
        return replace(table, selections=tuple(_with_columns(part, names) for part in table.selections))
    if isinstance(table, MatchedTable):
        return replace(table, measures=tuple(measure for measure in table.measures if measure[0] in names))
    names = names.union(*(_read_by_join(join) for join in table.joins))
    sides = (
        replace(side, columns=tuple(name for name in side.columns if f"{number}.{name}" in names))
        for number, side in enumerate(table.sides)
    )
    return replace(table, sides=tuple(sides))


def _with_columns(selection: Selection, names: set[str]) -> Selection:
    """Return a SELECT with some columns, without the aggregates and analytic functions that none of them needs."""
    items = tuple(item for item in selection.items if item.name in names)
    selection = replace(selection, items=items)
    renamed: dict[Expr, Expr] = {}
    grouping, analytics = selection.grouping, selection.analytics
    if grouping is not None:
        group_columns = {*_columns(item.expression for item in items), *_columns([grouping.having])}
        aggregates = _used(grouping.aggregates, "_r{}".format, group_columns, renamed)
        having = None if grouping.having is None else replaced(grouping.having, renamed)
        items = tuple(Item(item.name, replaced(item.expression, renamed)) for item in items)
        selection = replace(selection, grouping=replace(grouping, aggregates=aggregates, having=having), items=items)
        renamed = {}
    if analytics is not None:
        functions = _used(analytics.functions, result_name, _columns(_expressions(selection)), renamed)
        selection = _mapped(selection, lambda expression: replaced(expression, renamed))
        selection = replace(selection, analytics=replace(analytics, functions=functions))
    return selection


def _used(values: Sequence[T], name: Callable[[int], str], read: set[str], renamed: dict[Expr, Expr]) -> tuple[T, ...]:
    """Return those of the values whose columns are read, and note the new names of their columns in `renamed`."""
    used = [number for number in range(len(values)) if name(number) in read]
    renamed |= {column(name(number)): column(name(place)) for place, number in enumerate(used) if number != place}
    return tuple(values[number] for number in used)


def _note_reads(table: Table, read: dict[str, set[str]]) -> None:
    """Add to `read` the columns that a table reads of each table."""
    if isinstance(table, JoinedTable):
        for side in table.sides:
            read.setdefault(side.table, set()).update(side.columns, _read_by_analytics(side.analytics))
        return
    if isinstance(table, MatchedTable):
        read.setdefault(table.source, set()).update(_columns([*table.inputs, *table.conditions]), table.ties or ())
        return
    for selection in table.selections:
        names = read.setdefault(selection.table, set())
        names |= _columns(_expressions(selection)) | _read_by_analytics(selection.analytics)


def _read_by_join(join: Join | Lookup) -> set[str]:
    latest = join.latest_match if isinstance(join, Join) else None
    return _columns([join.condition, latest])


def _read_by_analytics(analytics: Analytics | None) -> set[str]:
    if analytics is None:
        return set()
    expressions = [part for function in analytics.functions for part in (*function.history.inputs, *function.inputs)]
    return _columns(expressions) | {*(analytics.ties or ())}


def _expressions(selection: Selection) -> Iterator[Expr]:
    """Yield the expressions of a SELECT over the rows that it reads, after its analytic functions."""
    if selection.where is not None:
        yield selection.where
    yield from (lateral.array for lateral in selection.laterals)
    if selection.grouping is None:
        yield from (item.expression for item in selection.items)
        return
    yield from selection.grouping.keys
    for aggregate in selection.grouping.aggregates:
        yield from aggregate.inputs


def _mapped(selection: Selection, change: Callable[[Expr], Expr]) -> Selection:
    """Return a SELECT with changed expressions over the rows that it reads."""
    where = None if selection.where is None else change(selection.where)
    laterals = tuple(replace(lateral, array=change(lateral.array)) for lateral in selection.laterals)
    if selection.grouping is None:
        items = tuple(Item(item.name, change(item.expression)) for item in selection.items)
        return replace(selection, where=where, laterals=laterals, items=items)
    grouping = replace(
        selection.grouping,
        keys=tuple(map(change, selection.grouping.keys)),
        aggregates=tuple(_mapped_aggregate(aggregate, change) for aggregate in selection.grouping.aggregates),
    )
    return replace(selection, where=where, laterals=laterals, grouping=grouping)


def _mapped_aggregate(aggregate: Aggregate, change: Callable[[Expr], Expr]) -> Aggregate:
    argument = None if aggregate.argument is None else change(aggregate.argument)
    orderings = tuple(replace(ordering, value=change(ordering.value)) for ordering in aggregate.orderings)
    return replace(aggregate, argument=argument, orderings=orderings)


def _both(first: Expr | None, second: Expr | None) -> Expr | None:
    """Return the condition that a row meets both, `first` first."""
    if first is None or second is None:
        return second if first is None else first
    return call(Op.AND, first, second)


def _grow_too_long(reader: Selection, step: Selection, values: Mapping[Expr, Expr]) -> bool:
    """Return whether an expression of a SELECT is too long once the values of a step replace its columns."""
    sizes = {column: size(value) for column, value in values.items()}

    def grown(expression: Expr) -> int:
        return sum(sizes.get(part, 1) for part in walk(expression))

    before = step.where if step.grouping is None else step.grouping.having
    conditions = 0 if reader.where is None or before is None else size(before) + grown(reader.where)
    computed = (grown(expression) for expression in _expressions(reader) if not expression.is_column)
    return max(conditions, *computed, 0) > LARGEST_EXPRESSION


def _names(table: Table) -> set[str]:
    """Return the names of the columns of a table."""
    if isinstance(table, SelectedTable):
        return {item.name for selection in table.selections for item in selection.items}
    if isinstance(table, MatchedTable):
        return {name for name, _ in table.measures}
    return {f"{number}.{name}" for number, side in enumerate(table.sides) for name in side.columns}


def _columns(expressions: Iterable[Expr | None]) -> set[str]:
    return {name for expression in expressions if expression is not None for name in columns_of(expression)}
