"""Which GROUP BYs the tasks of an input compute in part.

Tasks aggregate an input if all that a query reads of it can be aggregated there; otherwise they return the ordered
events.

    SELECT k, AVG(t) FROM input WHERE t > 1 GROUP BY k, Tumbling(minute, 1)
    => panes of a minute over the events with t > 1: key k, sum and count of t
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from recapture.query.plan.aggregates import SPREADS, AggregateFunction
from recapture.query.plan.expressions import Expr, column, conjuncts
from recapture.query.plan.grouping import Grouping
from recapture.query.plan.joins import JoinedTable
from recapture.query.plan.panes import Fold, Key, PaneAggregation, Partial
from recapture.query.plan.relations import SelectedTable, Selection, Table
from recapture.query.plan.scalars import NotInTasksError, Row, Typed, may_stop, refuse, scalar
from recapture.time_model.windows import HoppingWindow, SessionWindow, SlidingWindow, SnapshotWindow

_SYSTEM = ("_system_timestamp", "_arrival")
"""Columns of every row with its times, in ticks."""
_FOLDS = {
    AggregateFunction.COUNT: Fold.COUNT,
    AggregateFunction.SUM: Fold.SUM,
    AggregateFunction.AVG: Fold.SUM,
    AggregateFunction.MIN: Fold.MIN,
    AggregateFunction.MAX: Fold.MAX,
    **dict.fromkeys(SPREADS, Fold.SUM),
}
"""How the first partial aggregate of a function is folded."""
_ORDERED = (pa.int64(), pa.float64(), pa.string())
"""Types of values of which tasks find the smallest and the largest."""
_NEEDS_EVENTS = {
    SlidingWindow: "a sliding window needs events",
    SessionWindow: "a session window needs events",
    SnapshotWindow: "GROUP BY System.Timestamp() needs events",
}


@dataclass(frozen=True)
class InTasks:
    """What the tasks of an input compute."""

    aggregations: tuple[PaneAggregation, ...] = ()
    """Aggregations; none if the tasks return the ordered events."""
    because: str | None = None
    """Why the tasks return the ordered events; None if they aggregate."""


@dataclass(frozen=True)
class Assignment:
    """Decides what the tasks of each input compute, for the tables of all outputs."""

    steps: Mapping[str, Table]
    """Steps and JOINs by the names of their tables."""
    types: Mapping[str, Mapping[str, pa.DataType]]
    """Types on Arrow of the columns of each input's view, by the name of its table."""

    def of_outputs(self, outputs: Sequence[SelectedTable]) -> dict[str, InTasks]:
        """Return what the tasks compute, by the name of the table of the input's view."""
        aggregations: dict[str, dict[PaneAggregation, None]] = {view: {} for view in self.types}
        reasons: dict[str, str] = {}
        todo: list[tuple[Table, str | None]] = [(output, None) for output in outputs]
        seen: set[str] = set()
        while todo:
            table, reason_of_reader = todo.pop()
            for name, reason in self._passed_on(table, aggregations):
                because = reason or reason_of_reader or "a SELECT without GROUP BY needs events"
                if name in self.types:
                    reasons.setdefault(name, because)
                elif name in self.steps and name not in seen:
                    seen.add(name)
                    todo.append((self.steps[name], because))
        return {
            view: InTasks(because=reasons[view]) if view in reasons else InTasks(tuple(found))
            for view, found in aggregations.items()
        }

    def keys(self, tables: Iterable[Table]) -> dict[str, tuple[str, ...]]:
        """Return the columns of events by which the tables group them, by the name of the table of the input's view.

        Only keys that are columns count, and of each view only the first GROUP BY that has any.
        """
        keys: dict[str, tuple[str, ...]] = {}
        for table in tables:
            for selection in table.selections if isinstance(table, SelectedTable) else ():
                if selection.grouping is not None:
                    try:
                        view, row = self._row(selection)
                        found = tuple(_columns_of(selection.grouping.keys, row))
                    except NotInTasksError:
                        continue
                    if found:
                        keys.setdefault(view, found)
        return keys

    def aggregated(self, selection: Selection) -> tuple[str, list[PaneAggregation]]:
        """Return the view of the events that a selection groups, and their aggregation for each of its windows.

        Raise NotInTasksError, which says why, if tasks cannot aggregate them.
        """
        grouping = selection.grouping
        if grouping is None:
            raise NotInTasksError
        view, row = self._row(selection)
        conditions = conditions_of(row, "WHERE", selection.where)
        keys = tuple(_key(f"_k{number}", key, row) for number, key in enumerate(grouping.keys))
        partials = tuple(_partials(grouping, row))
        aggregations = []
        for grouped in grouping.windows:
            if not isinstance(grouped.window, HoppingWindow):
                raise NotInTasksError(_NEEDS_EVENTS[type(grouped.window)])
            length = math.gcd(grouped.window.size, grouped.window.hop)
            aggregations.append(PaneAggregation(length, grouped.window.offset % length, conditions, keys, partials))
        return view, aggregations

    def _passed_on(
        self, table: Table, aggregations: dict[str, dict[PaneAggregation, None]]
    ) -> Iterator[tuple[str, str | None]]:
        """Yield what a table reads of events, with the reason or None for a SELECT; add what tasks aggregate for it."""
        if not isinstance(table, SelectedTable):
            word = "a JOIN" if isinstance(table, JoinedTable) else "MATCH_RECOGNIZE"
            yield from ((name, f"{word} needs events") for name in table.sources)
            return
        for selection in table.selections:
            try:
                view, found = self.aggregated(selection)
                aggregations[view] |= dict.fromkeys(found)
            except NotInTasksError as error:
                yield selection.table, None if selection.grouping is None else str(error)

    def _row(self, selection: Selection) -> tuple[str, Row]:
        """Return the view of the events that a selection reads, and the row that it reads."""
        if selection.analytics or selection.laterals:
            raise NotInTasksError("an analytic function or an APPLY needs events")
        if selection.table not in self.types:
            raise NotInTasksError("a GROUP BY reads a JOIN, a UNION, another GROUP BY or a long step")
        types = {**self.types[selection.table], **dict.fromkeys(_SYSTEM, pa.int64())}
        return selection.table, lambda name: Typed(column(name), types[name])


def conditions_of(row: Row, what: str, condition: Expr | None) -> tuple[Expr, ...]:
    """Return the conditions that rows have to meet, one after the other; `what` names them."""
    values = () if condition is None else tuple(scalar(what, part, row) for part in conjuncts(condition))
    if any(may_stop(value.expression) for value in values):
        refuse(what)
    return tuple(value.expression for value in values)


def _columns_of(keys: Iterable[Expr], row: Row) -> Iterator[str]:
    """Yield the columns of an event that the keys are, leaving out keys that are not columns."""
    for key in keys:
        value = scalar("a key", key, row).expression if key.is_column else key
        if value.is_column and value.name not in _SYSTEM:
            yield value.name


def _key(name: str, expression: Expr, row: Row) -> Key:
    key = scalar("a key", expression, row)
    if key.type not in (pa.int64(), pa.string(), pa.bool_()):
        refuse("a float key" if key.type == pa.float64() else "a key")
    return Key(name, key.expression, key.type)


def _partials(grouping: Grouping, row: Row) -> Iterator[Partial]:
    for number, aggregate in enumerate(grouping.aggregates):
        function = aggregate.function.value
        fold = _FOLDS.get(aggregate.function)
        if fold is None or not aggregate.ordered:
            refuse(function)
        argument, name = scalar(f"the argument of {function}", aggregate.prepared(), row), f"_p{number}"
        if fold in (Fold.MIN, Fold.MAX) and not (argument.type in _ORDERED and argument.finite):
            refuse(f"{fold.name} of a computed float or of a bit")
        if fold is not Fold.COUNT:
            yield Partial(name, fold, argument.expression, argument.type)
        if fold in (Fold.COUNT, Fold.SUM):
            yield Partial(name if fold is Fold.COUNT else f"{name}_n", Fold.COUNT, argument.expression, pa.int64())
        if aggregate.function in SPREADS:
            yield Partial(f"{name}_m2", Fold.SPREAD, argument.expression, pa.float64())
