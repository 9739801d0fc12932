"""The mathematical functions. As in T-SQL, a result that is not a finite number stops the run."""

from collections.abc import Callable

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


def integral(op: Op) -> Callable[[Call], Value]:
    """Return FLOOR(x) or CEILING(x), in the type of x."""

    def function(call: Call) -> Value:
        number = _only_number(call)
        return number if number.type is AsaType.BIGINT else _of_same_type(Expr(op, [number.node]), number)

    return function


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


def of_float(op: Op) -> Callable[[Call], Value]:
    """Return the function of a float, such as EXP(x), that is one operation, with a float as its result."""

    def function(call: Call) -> Value:
        takes(call, 1)
        return Value(_finite(call, Expr(op, [call.argument(0, AsaType.FLOAT).node])), AsaType.FLOAT)

    return function


def _only_number(call: Call) -> Value:
    takes(call, 1)
    return call.argument(0, *_NUMBER)


def _of_same_type(node: Expr, number: Value) -> Value:
    """Return a result that has the type of an argument."""
    return with_kind_of(Value(node, number.type), [number])


def _finite(call: Call, number: Expr) -> Expr:
    return Expr(Op.FINITE, [number, failure(f"{call.name}: the result is not a finite number")])
