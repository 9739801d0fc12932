"""ON of a JOIN in parts: what both sides share, how far apart in time they are, and the rest."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial, reduce

from sqlglot import exp

from recapture.evaluate.values import column_names
from recapture.query.generate.joins import side_time
from recapture.query.generate.trees import operation
from recapture.time_model.joins import TimeBound


@dataclass(frozen=True)
class On:
    """The conditions that ON connects by AND, for a JOIN of a new side with the sides before it."""

    keys: tuple[tuple[exp.Expr, exp.Expr], ...]
    """Equalities: a value of the sides before, and a value of the new side."""
    bounds: tuple[TimeBound, ...]
    """Limits of the time of the new side's row."""
    rest: exp.Expr | None
    """The other conditions, over the columns of both."""


def parts_of(condition: exp.Expr, new: int) -> On:
    """Return the parts of ON; `new` is the number of the new side.

    `0.k` = `1.k` AND `1._system_timestamp` <= (`0._system_timestamp` + 5L) AND `0.x` < `1.x`
    => keys [(`0.k`, `1.k`)], bounds [TimeBound(0, high=5)], rest `0.x` < `1.x`
    """
    keys: list[tuple[exp.Expr, exp.Expr]] = []
    bounds: list[TimeBound] = []
    rest: list[exp.Expr] = []
    for part in _conjuncts(condition):
        bound, key = _bound(part, new), _key(part, new)
        if bound is not None:
            bounds.append(bound)
        elif key is not None:
            keys.append(key)
        else:
            rest.append(part)
    return On(tuple(keys), tuple(bounds), reduce(partial(operation, exp.And), rest) if rest else None)


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the conditions that AND connects, in order."""
    remaining = [condition]
    while remaining:
        part = remaining.pop().unnest()
        if isinstance(part, exp.And):
            remaining += [part.expression, part.this]
        else:
            yield part


def _key(part: exp.Expr, new: int) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the two values of an equality, that of the new side last; None for any other condition."""
    if not isinstance(part, exp.EQ):
        return None
    one, other = part.this, part.expression
    is_new = [{side_of(name) == new for name in column_names(value)} for value in (one, other)]
    if is_new == [{False}, {True}]:
        return one, other
    return (other, one) if is_new == [{True}, {False}] else None


def _bound(part: exp.Expr, new: int) -> TimeBound | None:
    """Return the limit that a condition sets to the time of the new side; None for any other condition.

    `0._system_timestamp` >= (`1._system_timestamp` - 5L), 1 => TimeBound(0, high=5)
    """
    if not isinstance(part, exp.GTE | exp.LTE) or not isinstance(part.expression, exp.Paren):
        return None
    shifted = part.expression.this
    if not isinstance(shifted, exp.Add | exp.Sub) or not isinstance(shifted.expression, exp.Literal):
        return None
    times = part.this, shifted.this
    if not all(isinstance(time, exp.Column) and time == side_time(side_of(time.name)) for time in times):
        return None
    end, start = (side_of(time.name) for time in times)
    limit = int(shifted.expression.name.removesuffix("L")) * (1 if isinstance(shifted, exp.Add) else -1)
    is_low = isinstance(part, exp.GTE)
    if end == new:
        return TimeBound(start, limit, None) if is_low else TimeBound(start, None, limit)
    if start == new:
        return TimeBound(end, None, -limit) if is_low else TimeBound(end, -limit, None)
    return None


def side_of(name: str) -> int:
    """Return the number of the side of a column: 1.x => 1"""
    return int(name.partition(".")[0])
