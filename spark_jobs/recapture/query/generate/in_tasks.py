"""Which GROUP BYs the tasks of an input compute in part: trees of Spark SQL become scalars that Arrow can compute.

Tasks aggregate an input if all that a query reads of it can be aggregated there; otherwise Spark gets its events. What
reads a step that only selects and filters events reads the events themselves.

    WITH s AS (SELECT k, t FROM input WHERE t > 1), SELECT k, AVG(t) FROM s GROUP BY k, Tumbling(minute, 1)
    => panes of a minute over the events with t > 1: key k, sum and count of t
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, Protocol

import pyarrow as pa
from sqlglot import exp

from recapture.query.generate.aggregates import Function as AggregateFunction
from recapture.query.generate.grouping import Grouping
from recapture.query.generate.panes import pane_length
from recapture.query.generate.statements import CommonTable, Selection, Table
from recapture.query.generate.trees import Template, is_of_row
from recapture.query.generate.values import quoted_name
from recapture.query.model import panes_view
from recapture.query.partials import Call, Column, Constant, Fold, Function, Key, PaneAggregation, Partial, Scalar
from recapture.time_model.windows import HoppingWindow, SessionWindow, SlidingWindow, SnapshotWindow

_SYSTEM = ("_system_timestamp", "_arrival")
_OPERATORS: dict[type[exp.Expr], Function] = {
    exp.And: Function.AND,
    exp.Or: Function.OR,
    exp.EQ: Function.EQUAL,
    exp.NEQ: Function.NOT_EQUAL,
    exp.LT: Function.LESS,
    exp.LTE: Function.LESS_OR_EQUAL,
    exp.GT: Function.GREATER,
    exp.GTE: Function.GREATER_OR_EQUAL,
    exp.Add: Function.ADD,
    exp.Sub: Function.SUBTRACT,
    exp.Mul: Function.MULTIPLY,
}
_FOLDS = {
    AggregateFunction.COUNT: Fold.COUNT,
    AggregateFunction.SUM: Fold.SUM,
    AggregateFunction.AVG: Fold.SUM,
    AggregateFunction.MIN: Fold.MIN,
    AggregateFunction.MAX: Fold.MAX,
}
_NEEDS_EVENTS = {
    SlidingWindow: "a sliding window needs events",
    SessionWindow: "a session window needs events",
    SnapshotWindow: "GROUP BY System.Timestamp() needs events",
}
_TO_FLOAT = "CAST({value} AS DOUBLE)"

LARGEST_EXPRESSION = 200
"""Largest number of nodes of an expression. A task would be slow with a longer one, and Python could not pickle it."""


class NotInTasksError(Exception):
    """Why a GROUP BY is not for tasks."""


@dataclass(frozen=True)
class _Typed:
    """A scalar with its type."""

    scalar: Scalar
    type: pa.DataType
    """Type on Arrow; null for the constant NULL."""
    finite: bool = True
    """Whether a float is certainly finite. Arrow and Spark compare other floats in different ways."""
    size: int = 1
    """Number of its nodes."""


@dataclass(frozen=True)
class InTasks:
    """What the tasks of an input compute."""

    aggregations: tuple[PaneAggregation, ...] = ()
    """Aggregations; none if the tasks pass the events on."""
    because: str | None = None
    """Why the tasks pass the events on; None if they aggregate."""


class _Row(Protocol):
    """A row that a SELECT reads, which comes from one event."""

    @property
    def view(self) -> str:
        """Return the view of the event."""

    @property
    def conditions(self) -> tuple[Scalar, ...]:
        """Return the conditions that the event has to meet."""

    def column(self, name: str) -> _Typed:
        """Return a column of the row."""


@dataclass(frozen=True)
class _Event:
    """An event as the row of a view."""

    view: str
    types: Mapping[str, pa.DataType]
    conditions: tuple[Scalar, ...] = ()

    def column(self, name: str) -> _Typed:
        return _Typed(Column(name), pa.int64() if name in _SYSTEM else self.types[name])


@dataclass(frozen=True)
class _Selected:
    """An event as the row of a step that selects and filters events."""

    read: _Row
    selection: Selection

    @property
    def view(self) -> str:
        return self.read.view

    @property
    def conditions(self) -> tuple[Scalar, ...]:
        return _conditions(self.read, self.selection)

    def column(self, name: str) -> _Typed:
        if name in _SYSTEM:
            return self.read.column(name)
        (expression,) = (item.expression for item in self.selection.items if item.name == name)
        return _scalar(f"the step's column {name}", expression, self.read)


@dataclass(frozen=True)
class Assignment:
    """Decides what the tasks of each input compute, for the tables of all outputs."""

    steps: Mapping[str, Table]
    """Steps and JOINs by the names of their tables."""
    types: Mapping[str, Mapping[str, pa.DataType]]
    """Types on Arrow of the columns of each input's view, by the name of its table."""

    def of_outputs(self, outputs: Sequence[CommonTable]) -> dict[str, InTasks]:
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

    def reading_panes(self, table: CommonTable, in_tasks: Mapping[str, InTasks]) -> CommonTable:
        """Return a table whose SELECTs read the panes that tasks compute."""
        selections = (replace(one, pane_tables=self._pane_tables(one, in_tasks)) for one in table.selections)
        return replace(table, selections=tuple(selections))

    def _pane_tables(self, selection: Selection, in_tasks: Mapping[str, InTasks]) -> tuple[str, ...]:
        try:
            view, aggregations = self._aggregated(selection)
        except NotInTasksError:
            return ()
        numbers = {aggregation: number for number, aggregation in enumerate(in_tasks[view].aggregations)}
        if not numbers.keys() >= set(aggregations):
            return ()
        return tuple(_panes_table(view, numbers[one]) for one in aggregations)

    def _passed_on(
        self, table: Table, aggregations: dict[str, dict[PaneAggregation, None]]
    ) -> Iterator[tuple[str, str | None]]:
        """Yield what a table reads in Spark, with the reason or None for a SELECT; add what tasks aggregate for it."""
        if not isinstance(table, CommonTable):
            yield from ((name, "a JOIN needs events") for name in table.sources)
            return
        for selection in table.selections:
            try:
                view, found = self._aggregated(selection)
                aggregations[view] |= dict.fromkeys(found)
            except NotInTasksError as error:
                yield selection.table, None if selection.grouping is None else str(error)

    def _aggregated(self, selection: Selection) -> tuple[str, list[PaneAggregation]]:
        if selection.grouping is None:
            raise NotInTasksError
        try:
            return self._panes(selection, selection.grouping)
        except RecursionError:
            raise NotInTasksError("the steps are nested too deeply for tasks") from None

    def _panes(self, selection: Selection, grouping: Grouping) -> tuple[str, list[PaneAggregation]]:
        row = self._row(selection)
        conditions = _conditions(row, selection)
        keys = tuple(_key(f"_k{number}", key, row) for number, key in enumerate(grouping.keys))
        partials = tuple(_partials(grouping, row))
        aggregations = []
        for grouped in grouping.windows:
            if not isinstance(grouped.window, HoppingWindow):
                raise NotInTasksError(_NEEDS_EVENTS[type(grouped.window)])
            length = pane_length(grouped.window)
            aggregations.append(PaneAggregation(length, grouped.window.offset % length, conditions, keys, partials))
        return row.view, aggregations

    def _row(self, selection: Selection) -> _Row:
        """Return the row that a selection reads."""
        if selection.analytics or selection.laterals:
            raise NotInTasksError("an analytic function or an APPLY needs events")
        if selection.table in self.types:
            return _Event(selection.table, self.types[selection.table])
        step = self.steps.get(selection.table)
        if not isinstance(step, CommonTable) or len(step.selections) > 1 or step.selections[0].grouping is not None:
            raise NotInTasksError("a GROUP BY reads a JOIN, a UNION or another GROUP BY")
        return _Selected(self._row(step.selections[0]), step.selections[0])


def _panes_table(table: str, number: int) -> str:
    """Return the table of an aggregation's panes: `input telemetry`, 0 => `input telemetry panes 0`"""
    return quoted_name(panes_view(table[1:-1].replace("``", "`"), number))


def _conditions(row: _Row, selection: Selection) -> tuple[Scalar, ...]:
    if selection.where is None:
        return row.conditions
    condition = _scalar("WHERE", selection.where, row)
    if condition.type != pa.bool_():
        _refuse("WHERE")
    return (*row.conditions, condition.scalar)


def _key(name: str, tree: exp.Expr, row: _Row) -> Key:
    key = _scalar("a key", tree, row)
    if key.type not in (pa.int64(), pa.string(), pa.bool_()):
        _refuse("a float key" if key.type == pa.float64() else "a key")
    return Key(name, key.scalar, key.type)


def _partials(grouping: Grouping, row: _Row) -> Iterator[Partial]:
    for number, aggregate in enumerate(grouping.aggregates):
        function = aggregate.function.value
        fold = _FOLDS.get(aggregate.function)
        if fold is None or not aggregate.ordered:
            _refuse(function)
        argument, name = _scalar(f"the argument of {function}", aggregate.prepared(), row), f"_p{number}"
        if fold is not Fold.COUNT:
            yield _partial(name, fold, argument)
        if fold in (Fold.COUNT, Fold.SUM):
            yield Partial(name if fold is Fold.COUNT else f"{name}_n", Fold.COUNT, argument.scalar, pa.int64())


def _partial(name: str, fold: Fold, argument: _Typed) -> Partial:
    if fold is not Fold.SUM and not (argument.type in (pa.int64(), pa.float64(), pa.string()) and argument.finite):
        _refuse(f"{fold.name} of a computed float or of a bit")
    return Partial(name, fold, argument.scalar, argument.type)


def _scalar(what: str, tree: exp.Expr, row: _Row) -> _Typed:
    """Return a part of a SELECT as a scalar over an event. Raise NotInTasksError, which names it, if it is none."""
    if sum(1 for _ in tree.walk()) > LARGEST_EXPRESSION:
        raise NotInTasksError(f"{what} is too long for tasks")
    try:
        value = _typed(tree, row)
    except _UnknownError:
        _refuse(what)
    if value.size > LARGEST_EXPRESSION:
        raise NotInTasksError(f"{what} is too long for tasks")
    return value


def _refuse(what: str) -> NoReturn:
    raise NotInTasksError(f"{what} is computed in Spark")


class _UnknownError(Exception):
    """Arrow may compute another value than Spark."""


def _call(function: Function, arguments: Sequence[_Typed], type_: pa.DataType, finite: bool = True) -> _Typed:
    size = 1 + sum(argument.size for argument in arguments)
    return _Typed(Call(function, tuple(argument.scalar for argument in arguments)), type_, finite, size)


def _bit(tree: exp.Expr, row: _Row) -> _Typed:
    value = _typed(tree, row)
    if value.type != pa.bool_():
        raise _UnknownError
    return value


def _typed(tree: exp.Expr, row: _Row) -> _Typed:
    """Return a tree of Spark SQL as a scalar over an event. Raise _UnknownError if Arrow may compute another value.

    (`x` > CAST(1L AS DOUBLE)) => Call(GREATER, (Column("x"), Call(TO_FLOAT, (Constant(1),))))
    """
    match tree:
        case exp.Paren():
            return _typed(tree.this, row)
        case exp.Column() if is_of_row(tree):
            return row.column(tree.name)
        case exp.Literal() if tree.is_string:
            return _Typed(Constant(tree.name, pa.string()), pa.string())
        case exp.Literal() if tree.name.endswith("D"):
            return _Typed(Constant(float(tree.name[:-1]), pa.float64()), pa.float64())
        case exp.Literal():
            return _Typed(Constant(int(tree.name.removesuffix("L")), pa.int64()), pa.int64())
        case exp.Neg(this=exp.Literal()):
            number = _typed(tree.this, row)
            assert isinstance(number.scalar, Constant)
            assert isinstance(number.scalar.value, int | float)
            return replace(number, scalar=replace(number.scalar, value=-number.scalar.value))
        case exp.Boolean():
            return _Typed(Constant(bool(tree.this), pa.bool_()), pa.bool_())
        case exp.Null():
            return _Typed(Constant(None, pa.null()), pa.null())
        case exp.Not():
            return _call(Function.NOT, [_bit(tree.this, row)], pa.bool_())
        case exp.And() | exp.Or():
            return _call(_OPERATORS[type(tree)], [_bit(tree.this, row), _bit(tree.expression, row)], pa.bool_())
        case exp.Is() if isinstance(tree.expression, exp.Null):
            return _call(Function.IS_NULL, [_typed(tree.this, row)], pa.bool_())
        case exp.In() if tree.expressions:
            value = _typed(tree.this, row)
            equal = [_compared(Function.EQUAL, value, _typed(one, row)) for one in tree.expressions]
            return _call(Function.OR, equal, pa.bool_())
        case exp.Case() if tree.this is None:
            return _case(tree, row)
        case exp.Anonymous(this="coalesce"):
            return _alike(Function.COALESCE, [_typed(argument, row) for argument in tree.expressions])
        case Template(name=name) if name == _TO_FLOAT:
            value = _typed(tree.args["value"], row)
            if value.type in (pa.int64(), pa.float64()):
                return _call(Function.TO_FLOAT, [value], pa.float64(), value.finite)
        case exp.Add() | exp.Sub() | exp.Mul():
            return _computed(_OPERATORS[type(tree)], _typed(tree.this, row), _typed(tree.expression, row))
        case exp.Binary() if type(tree) in _OPERATORS:
            return _compared(_OPERATORS[type(tree)], _typed(tree.this, row), _typed(tree.expression, row))
    raise _UnknownError


def _compared(function: Function, left: _Typed, right: _Typed) -> _Typed:
    equality = function in (Function.EQUAL, Function.NOT_EQUAL)
    comparable = (pa.int64(), pa.float64(), pa.string(), *[pa.bool_()] * equality)
    if left.type != right.type or left.type not in comparable or not (left.finite and right.finite):
        raise _UnknownError
    return _call(function, [left, right], pa.bool_())


def _computed(function: Function, left: _Typed, right: _Typed) -> _Typed:
    """Return an operation on floats. One on bigints may overflow, which is an error that Spark reports."""
    if left.type != pa.float64() or right.type != pa.float64():
        raise _UnknownError
    removes_sign_of_zero = function is Function.ADD and right.scalar == Constant(0.0, pa.float64())
    return _call(function, [left, right], pa.float64(), removes_sign_of_zero and left.finite)


def _case(tree: exp.Case, row: _Row) -> _Typed:
    conditions = [_bit(branch.this, row) for branch in tree.args["ifs"]]
    default = tree.args.get("default")
    branches = [*(branch.args["true"] for branch in tree.args["ifs"]), exp.Null() if default is None else default]
    *values, otherwise = _of_one_type([_typed(branch, row) for branch in branches])
    turns = [part for pair in zip(conditions, values, strict=True) for part in pair]
    finite = all(value.finite for value in (*values, otherwise))
    return _call(Function.CASE, [*turns, otherwise], otherwise.type, finite)


def _alike(function: Function, values: Sequence[_Typed]) -> _Typed:
    alike = _of_one_type(values)
    return _call(function, alike, alike[0].type, all(value.finite for value in alike))


def _of_one_type(values: Sequence[_Typed]) -> list[_Typed]:
    """Return values that have one type; a constant NULL gets the type of the others."""
    types = {value.type for value in values} - {pa.null()}
    if len(types) != 1:
        raise _UnknownError
    (type_,) = types
    return [value if value.type == type_ else _Typed(Constant(None, type_), type_) for value in values]
