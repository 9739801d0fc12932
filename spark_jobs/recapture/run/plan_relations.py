"""The relations of a compiled query and their expressions, as `recapture plan --explain` shows them."""

from collections.abc import Iterator

from recapture.execute.shared_keys import shared_keys
from recapture.query.model import CompiledQuery
from recapture.query.plan.aggregates import Aggregate
from recapture.query.plan.analytics import AnalyticFunction, EarlierValue, HistoryAggregate, result_name
from recapture.query.plan.grouping import Grouping
from recapture.query.plan.matches import MatchedTable, aggregate_name
from recapture.query.plan.relations import SelectedTable, Selection, Table
from recapture.time_model.ticks import TICKS_PER_SECOND


def plan_relations(query: CompiledQuery) -> list[str]:
    """Return a line for each relation of each output, in the order in which they are computed, and for its expressions.

    Before them come the rewrites, after them the keys that all relations share.

    The sizes of windows are in ticks of 100 ns.

    SELECT k, COUNT(*) AS n INTO o … GROUP BY k, … => output o / output: reads input telemetry / _k0 = k / …
    """
    lines = ["rewrites", *(f"  {note}" for note in query.rewrites)] if query.rewrites else []
    for output in query.outputs:
        lines.append(f"output {output.alias}")
        for table in (*output.plan.steps, output.plan.output):
            lines += (f"  {line}" for line in _relation(table))
    return [*lines, *_shared_keys(query)]


def _shared_keys(query: CompiledQuery) -> Iterator[str]:
    keys = shared_keys(query)
    if keys is None:
        yield "shared keys: none"
        return
    yield "shared keys"
    yield from (f"  {view}: {', '.join(columns) or 'its rows never meet'}" for view, columns in keys.items())


def _relation(table: Table) -> Iterator[str]:
    name = table.name
    if isinstance(table, SelectedTable):
        for selection in table.selections:
            yield f"{name}: reads {selection.table}"
            yield from (f"  {line}" for line in _expressions(selection))
        return
    if isinstance(table, MatchedTable):
        yield f"{name}: matches {table.source}"
        yield from (f"  {line}" for line in _match(table))
        return
    yield f"{name}: joins {', '.join(table.sources)}"
    for number, join in enumerate(table.joins, 1):
        yield f"  side {number} on {join.condition}"


def _match(table: MatchedTable) -> Iterator[str]:
    """Yield the conditions of the variables, the aggregates over their rows, and the columns of a match."""
    by = f" by {', '.join(map(str, table.keys))}" if table.keys else ""
    yield f"within {table.length / TICKS_PER_SECOND:g} s{by}"
    variables = table.automaton.variables
    yield from (f"{name} if {condition}" for name, condition in zip(variables, table.conditions, strict=True))
    for number, aggregate in enumerate(table.aggregates):
        called = f"{aggregate.function.value.lower()} of {variables[aggregate.variable]}"
        yield f"{aggregate_name(number)} = {called}: {aggregate.value}"
    yield from (f"{name} = {value}" for name, value in table.measures)


def _expressions(selection: Selection) -> Iterator[str]:
    """Yield what a SELECT computes, in order: analytic functions, APPLY, WHERE, GROUP BY and the select list."""
    for number, function in enumerate(selection.analytics.functions if selection.analytics else ()):
        yield f"{result_name(number)} = {_analytic(function)}"
    for lateral in selection.laterals:
        yield f"{lateral.column} = each of {lateral.array}"
    if selection.where is not None:
        yield f"where {selection.where}"
    if selection.grouping is not None:
        yield from _groups(selection.grouping)
    yield from (f"{item.name} = {item.expression}" for item in selection.items)


def _groups(grouping: Grouping) -> Iterator[str]:
    yield from (f"grouped by {grouped.window}" for grouped in grouping.windows)
    yield from (f"_k{number} = {key}" for number, key in enumerate(grouping.keys))
    yield from (f"_r{number} = {_aggregate(aggregate)}" for number, aggregate in enumerate(grouping.aggregates))
    if grouping.having is not None:
        yield f"having {grouping.having}"


def _aggregate(aggregate: Aggregate) -> str:
    argument = "*" if aggregate.argument is None else str(aggregate.argument)
    order = [f"{by.value}{' desc' if by.descending else ''}" for by in aggregate.orderings]
    return f"{aggregate.function}({argument})" + (f" ordered by {', '.join(order)}" if order else "")


def _analytic(function: AnalyticFunction) -> str:
    history = function.history
    match function:
        case EarlierValue(_, value, steps, default):
            called = f"value {steps} rows back of {value}, or {default}" if steps else f"last {value}, or {default}"
        case HistoryAggregate(_, aggregate):
            called = _aggregate(aggregate)
        case _:
            called = "is first"
    by = f" by {', '.join(map(str, history.keys))}" if history.keys else ""
    when = "" if history.when is None else f" when {history.when}"
    return f"{called} within {history.length / TICKS_PER_SECOND:g} s{by}{when}"
