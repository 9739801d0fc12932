"""The mathematical functions. As in T-SQL, a result that is not a finite number stops the run."""

from recapture.model import AsaType
from recapture.query.functions.arity import takes
from recapture.query.functions.call import Call
from recapture.query.generate.let import failure, once
from recapture.query.generate.values import Value

_NUMBER = (AsaType.FLOAT, AsaType.BIGINT)
_ALL_WHOLE_FROM = "4503599627370496D"
"""Smallest power of two, 2^52, from which on floats have no decimals."""


def absolute(call: Call) -> Value:
    """ABS(x), in the type of x."""
    number = _only_number(call)
    return Value(f"abs({number.sql})", number.type)


def sign(call: Call) -> Value:
    """SIGN(x): -1, 0 or 1, in the type of x."""
    number = _only_number(call)
    signed = f"sign({number.sql})"
    return Value(signed if number.type is AsaType.FLOAT else f"CAST({signed} AS BIGINT)", number.type)


def floor(call: Call) -> Value:
    """FLOOR(x): the largest whole number that is not above x, in the type of x."""
    return _whole(call, "floor")


def ceiling(call: Call) -> Value:
    """CEILING(x): the smallest whole number that is not below x, in the type of x."""
    return _whole(call, "ceil")


def rounded(call: Call) -> Value:
    """ROUND(x, length), in the type of x: halves away from zero; `length` is written out."""
    takes(call, 2)
    number = call.of(0, *_NUMBER)
    places = call.number(1)
    # Beyond these a bigint or a float has no digits.
    return Value(f"round({number.sql}, {max(-400, min(400, places))})", number.type)


def power(call: Call) -> Value:
    """POWER(x, y), in the type of x: a bigint is computed as a float and truncated, as in T-SQL."""
    takes(call, 2)
    base, exponent = call.of(0, *_NUMBER), call.of(1, *_NUMBER)
    raised = _finite(call, f"pow({base.sql}, {exponent.sql})")
    return Value(raised if base.type is AsaType.FLOAT else f"CAST({raised} AS BIGINT)", base.type)


def square_root(call: Call) -> Value:
    """SQRT(x), a float; a negative x stops the run."""
    return _of_float(call, "sqrt({0})")


def square(call: Call) -> Value:
    """SQUARE(x), a float."""
    return _of_float(call, "pow({0}, 2D)")


def exponential(call: Call) -> Value:
    """EXP(x), a float."""
    return _of_float(call, "exp({0})")


def _only_number(call: Call) -> Value:
    takes(call, 1)
    return call.of(0, *_NUMBER)


def _whole(call: Call, function: str) -> Value:
    number = _only_number(call)
    if number.type is AsaType.BIGINT:
        return number
    return Value(
        once(
            number.sql,
            "number",
            lambda it: f"(CASE WHEN abs({it}) < {_ALL_WHOLE_FROM} THEN CAST({function}({it}) AS DOUBLE) ELSE {it} END)",
        ),
        AsaType.FLOAT,
    )


def _of_float(call: Call, computed: str) -> Value:
    takes(call, 1)
    number = call.of(0, AsaType.FLOAT)
    return Value(_finite(call, computed.replace("{0}", number.sql)), AsaType.FLOAT)


def _finite(call: Call, sql: str) -> str:
    refused = failure(f"{call.name}: the result is not a finite number")
    # NaN is the largest number to Spark.
    return once(
        sql, "number", lambda it: f"(CASE WHEN abs({it}) > 1.7976931348623157E308D THEN {refused} ELSE {it} END)"
    )
