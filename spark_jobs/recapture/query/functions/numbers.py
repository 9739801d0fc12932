"""The mathematical functions. As in T-SQL, a result that is not a finite number stops the run."""

from recapture.model import AsaType
from recapture.query.analyse.kinds import with_kind_of
from recapture.query.analyse.values import Value
from recapture.query.functions.call import Call, takes
from recapture.query.plan.expressions import Expr, cast_as, failure
from recapture.query.plan.operations import Op

_NUMBER = (AsaType.FLOAT, AsaType.BIGINT)


def absolute(call: Call) -> Value:
    """ABS(x), in the type of x."""
    number = _only_number(call)
    return _of_same_type(Expr(Op.ABSOLUTE, [number.node]), number)


def sign(call: Call) -> Value:
    """SIGN(x): -1, 0 or 1, in the type of x."""
    number = _only_number(call)
    signed = Expr(Op.SIGN, [number.node])
    return _of_same_type(signed if number.type is AsaType.FLOAT else cast_as(signed, AsaType.BIGINT), number)


def floor(call: Call) -> Value:
    """FLOOR(x): the largest integer that is not above x, in the type of x."""
    return _whole(call, Op.FLOOR)


def ceiling(call: Call) -> Value:
    """CEILING(x): the smallest integer that is not below x, in the type of x."""
    return _whole(call, Op.CEILING)


def rounded(call: Call) -> Value:
    """ROUND(x, length), in the type of x: halves away from zero."""
    takes(call, 2)
    number, length = call.argument(0, *_NUMBER), call.argument(1, AsaType.BIGINT).node
    places = _literal(length)
    if places is None:
        return _of_same_type(Expr(Op.ROUND_COMPUTED, [number.node, length]), number)
    return _of_same_type(Expr(Op.ROUND, [number.node], [places]), number)


def _literal(number: Expr) -> int | None:
    """Return the value of a bigint literal, which may be negative; None for anything else."""
    sign, digits = (-1, number.arguments[0]) if number.op is Op.NEGATE else (1, number)
    return sign * int(str(digits.constants[0])) if digits.op is Op.BIGINT else None


def power(call: Call) -> Value:
    """POWER(x, y), in the type of x: a bigint is computed as a float and truncated, as in T-SQL."""
    takes(call, 2)
    base, exponent = call.argument(0, *_NUMBER), call.argument(1, *_NUMBER)
    raised = _finite(call, Expr(Op.POWER, [base.node, exponent.node]))
    return _of_same_type(raised if base.type is AsaType.FLOAT else cast_as(raised, AsaType.BIGINT), base)


def square_root(call: Call) -> Value:
    """SQRT(x), a float; a negative x stops the run."""
    return _of_float(call, Op.SQUARE_ROOT)


def square(call: Call) -> Value:
    """SQUARE(x), a float."""
    return _of_float(call, Op.SQUARE)


def exponential(call: Call) -> Value:
    """EXP(x), a float."""
    return _of_float(call, Op.EXPONENTIAL)


def _only_number(call: Call) -> Value:
    takes(call, 1)
    return call.argument(0, *_NUMBER)


def _whole(call: Call, op: Op) -> Value:
    number = _only_number(call)
    return number if number.type is AsaType.BIGINT else _of_same_type(Expr(op, [number.node]), number)


def _of_same_type(node: Expr, number: Value) -> Value:
    """Return a result that has the type of an argument."""
    return with_kind_of(Value(node, number.type), [number])


def _of_float(call: Call, op: Op) -> Value:
    takes(call, 1)
    return Value(_finite(call, Expr(op, [call.argument(0, AsaType.FLOAT).node])), AsaType.FLOAT)


def _finite(call: Call, number: Expr) -> Expr:
    return Expr(Op.FINITE, [number, failure(f"{call.name}: the result is not a finite number")])
