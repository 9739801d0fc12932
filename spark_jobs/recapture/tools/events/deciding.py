"""Which rows of a group decide what an aggregate is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.groups import groups
from recapture.evaluate.ranks import ranks
from recapture.evaluate.values import valid
from recapture.model import AsaType
from recapture.ordering.keys import first_rows, key_codes
from recapture.query.plan.aggregates import Aggregate, AggregateFunction, Ordering
from recapture.query.plan.expressions import cast_as, column
from recapture.query.plan.grouping import GroupedWindow, Grouping
from recapture.query.plan.relations import Item
from recapture.time_model.windows import HoppingWindow

Bools = NDArray[np.bool_]
_MEMBER = "@member"
"""Column with the number of a row in its group."""


@dataclass(frozen=True)
class ArgumentColumns:
    """The columns with what an aggregate reads of each row."""

    argument: str
    orderings: tuple[str, ...]


def argument_columns(number: int, aggregate: Aggregate) -> ArgumentColumns:
    """Return the columns of an aggregate's inputs, by the number of the aggregate."""
    return ArgumentColumns(f"@a{number}", tuple(f"@o{number}.{place}" for place in range(len(aggregate.orderings))))


def input_items(aggregates: Mapping[int, Aggregate]) -> list[Item]:
    """Return what aggregates read of a row, under the names of `argument_columns`."""
    items = []
    for number, aggregate in aggregates.items():
        columns = argument_columns(number, aggregate)
        if aggregate.argument is not None:
            items.append(Item(columns.argument, aggregate.argument))
        orderings = (ordering.value for ordering in aggregate.orderings)
        items += [Item(name, value) for name, value in zip(columns.orderings, orderings, strict=True)]
    return items


def deciding(aggregate: Aggregate, members: pa.Table, columns: ArgumentColumns, bounds: SliceBounds) -> Bools:
    """Return which rows of a group decide the result of an aggregate: without the others it is the same.

    Rows come in order of time and arrival, with the columns of `input_items`. Of equal values, the first row decides.
    """
    if aggregate.argument is None or aggregate.function in (AggregateFunction.COLLECT, AggregateFunction.USER_DEFINED):
        return np.ones(len(members), np.bool_)
    if aggregate.function in (AggregateFunction.TOPONE, AggregateFunction.COLLECTTOP):
        return _flags(_ranked(aggregate, members, columns, bounds), len(members))
    values = members[columns.argument]
    has_value = valid(values)
    (present,) = np.nonzero(has_value)
    if not len(present):
        return has_value
    match aggregate.function:
        case AggregateFunction.MIN | AggregateFunction.MAX:
            numbers, _ = ranks(values.take(pa.array(present)))
            is_least = aggregate.function is AggregateFunction.MIN
            return _flags(present[[np.argmin(numbers) if is_least else np.argmax(numbers)]], len(members))
        case AggregateFunction.COUNT_DISTINCT:
            return _flags(present[first_rows(key_codes([values.take(pa.array(present))]))], len(members))
    return has_value


def _ranked(
    aggregate: Aggregate, members: pa.Table, columns: ArgumentColumns, bounds: SliceBounds
) -> NDArray[np.int64]:
    """Return the rows that TopOne and CollectTop take: it collects their numbers, in one window over all of them."""
    places = members.append_column(_MEMBER, pa.array(np.arange(len(members))))
    orderings = tuple(
        replace(ordering, value=column(name))
        for ordering, name in zip(aggregate.orderings, columns.orderings, strict=True)
    )
    if not aggregate.ordered:
        ties = ("_system_timestamp", "_arrival", "_partition", columns.argument)
        orderings += tuple(Ordering(column(name), descending=False) for name in ties)
    is_json = aggregate.function is AggregateFunction.COLLECTTOP
    member = cast_as(column(_MEMBER), AsaType.STRING) if is_json else column(_MEMBER)
    collecting = replace(aggregate, argument=member, argument_type=AsaType.BIGINT, orderings=orderings)
    times = members["_system_timestamp"].to_numpy()
    last, size = int(times.max()), int(times.max() - times.min()) + 1
    window = GroupedWindow(HoppingWindow(size, size, last % size), None)
    grouping = Grouping((window,), (), (collecting,), None)
    grouped = groups(places, grouping, SliceBounds(last - 1, last, bounds.functions), 0)
    (result,) = grouped["_r0"].to_pylist()
    chosen = (
        [result] if aggregate.function is AggregateFunction.TOPONE else [item["value"] for item in json.loads(result)]
    )
    return np.array(chosen, np.int64)


def _flags(rows: NDArray[np.int64], count: int) -> Bools:
    flags = np.zeros(count, np.bool_)
    flags[rows] = True
    return flags
