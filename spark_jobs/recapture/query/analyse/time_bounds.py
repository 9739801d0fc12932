"""Time bounds: DATEDIFF of two sides of a JOIN by their names, which ON compares with numbers.

In ON, DATEDIFF(minute, a, b) is the time that elapsed from the System.Timestamp of a's row to that of b's row. It is
exact: 90 seconds are more than one minute. Everywhere else, DATEDIFF counts the boundaries between two datetimes.
"""

from dataclasses import dataclass
from functools import partial, reduce

from sqlglot import exp

from recapture.query.analyse.relations import From, NamedRelation
from recapture.query.parse.date_parts import PARTS, TICKS
from recapture.query.parse.names import call_name, identifiers
from recapture.query.parse.source import require_only
from recapture.query.plan.expressions import Expr, call, shifted
from recapture.query.plan.joins import side_time
from recapture.query.plan.operations import Op
from recapture.time_model.joins import LARGEST_BOUND, TimeBound

_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
"""Comparisons that a time bound may be, each with the one that has its sides exchanged."""
_UNUSUAL = (
    "DATEDIFF of two sides is a time bound, alone or next to AND: compare it with integer literals, by BETWEEN, "
    "=, <, <=, > or >="
)


@dataclass(frozen=True)
class TimeLimits:
    """Limits of the time of the side `end` minus that of the side `start`; ticks."""

    start: NamedRelation
    end: NamedRelation
    low: int | None
    high: int | None

    @property
    def condition(self) -> Expr:
        """Condition over the joined rows: (`1._system_timestamp` >= (`0._system_timestamp` + 5L))"""
        start, end = side_time(self.start.number or 0), side_time(self.end.number or 0)
        limits = ((Op.GREATER_OR_EQUAL, self.low), (Op.LESS_OR_EQUAL, self.high))
        parts = [call(comparison, end, shifted(start, limit)) for comparison, limit in limits if limit is not None]
        return reduce(partial(call, Op.AND), parts)

    def bound_of(self, new: NamedRelation) -> TimeBound | None:
        """Return what the limits say about the time of a new side; None if they are of two earlier sides."""
        if self.end is new:
            return TimeBound(self.start.number or 0, self.low, self.high)
        if self.start is new:
            low, high = (None if limit is None else -limit for limit in (self.high, self.low))
            return TimeBound(self.end.number or 0, low, high)
        return None


def limits_of(from_clause: From, node: exp.Expr) -> TimeLimits | None:
    """Return the limits that a condition of ON sets; None if it has no DATEDIFF of two sides.

    DATEDIFF(second, a, b) < 5 => TimeLimits(a, b, None, 5 s - 1 tick)

    Raise DefinitionError for a DATEDIFF of two sides that is not compared with integers.
    """
    operator, call, numbers = type(node), None, []
    if isinstance(node, exp.Between):
        require_only(from_clause.source, node, "this", "low", "high")
        call, numbers = _difference(from_clause, node.this), [node.args["low"], node.args["high"]]
    elif operator in _FLIPPED:
        call, numbers = _difference(from_clause, node.this), [node.expression]
        if call is None:
            call, numbers = _difference(from_clause, node.expression), [node.this]
            operator = _FLIPPED[operator]
    if call is None:
        for part in node.find_all(exp.Anonymous):
            if _difference(from_clause, part) is not None:
                raise from_clause.source.error(part, _UNUSUAL)
        return None
    unit, start, end = call
    first, last = (_ticks(from_clause, number, unit) for number in (numbers[0], numbers[-1]))
    low = None if operator in (exp.LT, exp.LTE) else first + (operator is exp.GT)
    high = None if operator in (exp.GT, exp.GTE) else last - (operator is exp.LT)
    if low is not None and high is not None and low > high:
        raise from_clause.source.error(node, "BETWEEN takes the smaller number first: nothing is between these two")
    return TimeLimits(start, end, low, high)


def _difference(from_clause: From, node: exp.Expr) -> tuple[int, NamedRelation, NamedRelation] | None:
    """Return the ticks of the unit and the two sides of a DATEDIFF of sides; None for any other expression."""
    node = node.unnest()
    if call_name(node) != "DATEDIFF" or len(node.expressions) != 3:
        return None
    paths = [identifiers(argument) or [] for argument in node.expressions[1:]]
    start, end = (from_clause.named(path[0].name) if len(path) == 1 else None for path in paths)
    if start is None or end is None:
        return None
    for side in (start, end):
        if side.is_reference:
            message = f"`{side.name}` is reference data, which has no time: in ON, DATEDIFF takes sides with events"
            raise from_clause.source.error(node, message)
    if start is end:
        raise from_clause.source.error(node, "DATEDIFF in ON takes two sides of the JOIN")
    part = PARTS.get(node.expressions[0].name.lower())
    if part not in TICKS:
        raise from_clause.source.error(node.expressions[0], "a time bound takes a unit from week to microsecond")
    return TICKS[part], start, end


def _ticks(from_clause: From, node: exp.Expr, unit: int) -> int:
    """Return an integer literal, a number of units, in ticks."""
    number = node.unnest()
    sign, digits = (-1, number.this.unnest()) if isinstance(number, exp.Neg) else (1, number)
    if not (isinstance(digits, exp.Literal) and not digits.is_string and digits.name.isdecimal()):
        raise from_clause.source.error(node, _UNUSUAL)
    ticks = sign * int(digits.name) * unit
    if abs(ticks) > LARGEST_BOUND:
        raise from_clause.source.error(node, "a time bound is at most 7 days")
    return ticks
