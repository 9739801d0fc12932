"""ON of a JOIN in parts: what both sides share, how far apart in time they are, and the rest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from recapture.query.plan.expressions import Expr, call, columns_of, conjuncts
from recapture.query.plan.joins import side_time
from recapture.query.plan.operations import Op
from recapture.time_model.joins import TimeBound


@dataclass(frozen=True)
class On:
    """The conditions that ON connects by AND, for a JOIN of a new side with the sides before it."""

    keys: tuple[tuple[Expr, Expr], ...]
    """Equalities: a value of the sides before, and a value of the new side."""
    bounds: tuple[TimeBound, ...]
    """Limits of the time of the new side's row."""
    rest: Expr | None
    """The other conditions, over the columns of both."""
    earlier_guard: Expr | None
    """Those of the other conditions that read only the sides before."""
    new_guard: Expr | None
    """Those of the other conditions that read only the new side."""

    def without_earlier_guard(self) -> "On":
        """Return the parts of ON of a LEFT JOIN, in which Spark computes the keys of all rows of the sides before."""
        return replace(self, earlier_guard=None)


def parts_of(condition: Expr, new: int) -> On:
    """Return the parts of ON; `new` is the number of the new side.

    `0.k` = `1.k` AND `1._system_timestamp` <= (`0._system_timestamp` + 5L) AND `0.x` < `1.x`
    => keys [(`0.k`, `1.k`)], bounds [TimeBound(0, high=5)], rest `0.x` < `1.x`
    """
    keys: list[tuple[Expr, Expr]] = []
    bounds: list[TimeBound] = []
    rest: list[Expr] = []
    for part in conjuncts(condition):
        bound, key = _bound(part, new), _key(part, new)
        if bound is not None:
            bounds.append(bound)
        elif key is not None:
            keys.append(key)
        else:
            rest.append(part)
    sides = [{side_of(name) == new for name in columns_of(part)} for part in rest]
    earlier_guard, new_guard = (
        _all_of([part for part, is_new in zip(rest, sides, strict=True) if is_new == {side}]) for side in (False, True)
    )
    return On(tuple(keys), tuple(bounds), _all_of(rest), earlier_guard, new_guard)


def _all_of(conditions: Sequence[Expr]) -> Expr | None:
    return reduce(partial(call, Op.AND), conditions) if conditions else None


def _key(part: Expr, new: int) -> tuple[Expr, Expr] | None:
    """Return the two values of an equality, that of the new side last; None for any other condition."""
    if part.op is not Op.EQUAL:
        return None
    left, right = part.arguments
    is_new = [{side_of(name) == new for name in columns_of(value)} for value in (left, right)]
    if is_new == [{False}, {True}]:
        return left, right
    return (right, left) if is_new == [{True}, {False}] else None


def _bound(part: Expr, new: int) -> TimeBound | None:
    """Return the limit that a condition sets to the time of the new side; None for any other condition.

    `0._system_timestamp` >= (`1._system_timestamp` - 5L), 1 => TimeBound(0, high=5)
    """
    is_low = part.op is Op.GREATER_OR_EQUAL
    if not (is_low or part.op is Op.LESS_OR_EQUAL) or part.arguments[1].op not in (Op.ADD, Op.SUBTRACT):
        return None
    late, shifted = part.arguments
    early, distance = shifted.arguments
    if distance.op is not Op.BIGINT or not all(
        time.is_column and time == side_time(side_of(time.name)) for time in (late, early)
    ):
        return None
    end, start = side_of(late.name), side_of(early.name)
    [ticks] = distance.constants
    assert isinstance(ticks, int)
    limit = ticks if shifted.op is Op.ADD else -ticks
    if end == new:
        return TimeBound(start, limit, None) if is_low else TimeBound(start, None, limit)
    if start == new:
        return TimeBound(end, None, -limit) if is_low else TimeBound(end, -limit, None)
    return None


def side_of(name: str) -> int:
    """Return the number of the side of a column: 1.x => 1"""
    return int(name.partition(".")[0])
