"""The mathematical functions. As in T-SQL, a result that is not a finite number stops the run."""

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.functions.call import Call, takes
from recapture.query.generate.casts import finite
from recapture.query.generate.kinds import with_kind_of
from recapture.query.generate.let import failure, once_in
from recapture.query.generate.trees import cast_as, spark_call, template
from recapture.query.generate.values import Value

_NUMBER = (AsaType.FLOAT, AsaType.BIGINT)


def absolute(call: Call) -> Value:
    """ABS(x), in the type of x."""
    number = _only_number(call)
    return _of_same_type(spark_call("abs", number.node), number)


def sign(call: Call) -> Value:
    """SIGN(x): -1, 0 or 1, in the type of x."""
    number = _only_number(call)
    signed = spark_call("sign", number.node)
    return _of_same_type(signed if number.type is AsaType.FLOAT else cast_as(signed, "BIGINT"), number)


def floor(call: Call) -> Value:
    """FLOOR(x): the largest integer that is not above x, in the type of x."""
    return _whole(call, "floor")


def ceiling(call: Call) -> Value:
    """CEILING(x): the smallest integer that is not below x, in the type of x."""
    return _whole(call, "ceil")


def rounded(call: Call) -> Value:
    """ROUND(x, length), in the type of x: halves away from zero; `length` is a literal."""
    takes(call, 2)
    number = call.argument(0, *_NUMBER)
    places = call.literal_number(1)
    # Beyond these a bigint or a float has no digits.
    digits = exp.Literal.number(max(-400, min(400, places)))
    return _of_same_type(spark_call("round", number.node, digits), number)


def power(call: Call) -> Value:
    """POWER(x, y), in the type of x: a bigint is computed as a float and truncated, as in T-SQL."""
    takes(call, 2)
    base, exponent = call.argument(0, *_NUMBER), call.argument(1, *_NUMBER)
    raised = _finite(call, spark_call("pow", base.node, exponent.node))
    return _of_same_type(raised if base.type is AsaType.FLOAT else cast_as(raised, "BIGINT"), base)


def square_root(call: Call) -> Value:
    """SQRT(x), a float; a negative x stops the run."""
    return _of_float(call, "sqrt({number})")


def square(call: Call) -> Value:
    """SQUARE(x), a float."""
    return _of_float(call, "pow({number}, 2D)")


def exponential(call: Call) -> Value:
    """EXP(x), a float."""
    return _of_float(call, "exp({number})")


def _only_number(call: Call) -> Value:
    takes(call, 1)
    return call.argument(0, *_NUMBER)


def _whole(call: Call, function: str) -> Value:
    number = _only_number(call)
    if number.type is AsaType.BIGINT:
        return number
    # From 2^52 on, floats have no decimals.
    whole = f"(CASE WHEN abs({{it}}) < 4503599627370496D THEN CAST({function}({{it}}) AS DOUBLE) ELSE {{it}} END)"
    return _of_same_type(once_in(whole, "number", number.node), number)


def _of_same_type(node: exp.Expr, number: Value) -> Value:
    """Return a result that has the type of an argument."""
    return with_kind_of(Value(node, number.type), [number])


def _of_float(call: Call, computed: str) -> Value:
    takes(call, 1)
    number = call.argument(0, AsaType.FLOAT).node
    return Value(_finite(call, template(computed, number=number)), AsaType.FLOAT)


def _finite(call: Call, number: exp.Expr) -> exp.Expr:
    return finite(number, failure(f"{call.name}: the result is not a finite number"))
