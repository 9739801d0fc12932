"""Arithmetic, comparisons and mathematical functions. What has no result stops the run."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.evaluate.faults import overflow, stop_where
from recapture.evaluate.float_text import digits_of
from recapture.evaluate.frames import Frame, Kernel, Node
from recapture.evaluate.vectors import Numbers, Vector, either, null_of

_LEAST, _LARGEST = -(2**63), 2**63 - 1
_BY_ZERO = "a number is divided by zero: guard the division with NULLIF or CASE"

Values = NDArray[Any]
Mask = NDArray[np.bool_] | None


def computed(compute: Callable[..., Values]) -> Kernel:
    """Return the kernel of a function of numbers that raises no error; NULL where an argument is NULL."""

    def kernel(frame: Frame, node: Node) -> Vector:
        vectors, null = frame.strict(node.arguments)
        with np.errstate(all="ignore"):
            return Numbers(compute(*(vector.values for vector in vectors)), null)

    return kernel


def checked(compute: Callable[..., Values]) -> Kernel:
    """Return the kernel of a function that takes the mask of NULL after its arguments, to raise errors elsewhere."""

    def kernel(frame: Frame, node: Node) -> Vector:
        vectors, null = frame.strict(node.arguments)
        with np.errstate(all="ignore"):
            return Numbers(compute(*(vector.values for vector in vectors), null), null)

    return kernel


def add(left: Values, right: Values, null: Mask) -> Values:
    total = np.asarray(left + right)
    overflow((left ^ total) & (right ^ total) < 0, null)
    return total


def subtract(left: Values, right: Values, null: Mask) -> Values:
    difference = np.asarray(left - right)
    overflow((left ^ right) & (left ^ difference) < 0, null)
    return difference


def multiply(left: Values, right: Values, null: Mask) -> Values:
    product = np.asarray(left * right)
    if product.size and _largest(left) * _largest(right) > _LARGEST:
        approximate = np.asarray(left).astype(np.float64) * np.asarray(right).astype(np.float64)
        # A product that wraps around is wrong by a multiple of 2^64, one that does not by the rounding alone.
        overflow(np.abs(approximate - product.astype(np.float64)) > 2.0**32, null)
    return product


def _largest(values: Values) -> int:
    return max(abs(int(values.min())), abs(int(values.max()))) if values.size else 0


def negative(values: Values, null: Mask) -> Values:
    overflow(values == _LEAST, null)
    return np.asarray(-values)


def absolute(values: Values, null: Mask) -> Values:
    overflow(values == _LEAST, null)
    return np.abs(values)


def quotient(frame: Frame, node: Node) -> Vector:
    """Return / of floats or bigints: the divisor comes first, and an integer quotient is truncated."""
    (dividend, divisor), null = _divided(frame, node)
    zero = divisor.values == 0
    stop_where(np.asarray(zero), null, "DIVIDE_BY_ZERO", _BY_ZERO)
    with np.errstate(all="ignore"):
        if pa.types.is_float64(node.type):
            return Numbers(np.asarray(dividend.values / divisor.values), null)
        overflow(np.asarray((dividend.values == _LEAST) & (divisor.values == -1)), null)
        safe = np.where(zero, 1, divisor.values) if zero.any() else divisor.values
        return Numbers(_truncated(dividend.values, safe), null)


def remainder(frame: Frame, node: Node) -> Vector:
    """Return %, which has the sign of the dividend."""
    (dividend, divisor), null = _divided(frame, node)
    zero = np.asarray(divisor.values == 0)
    stop_where(zero, null, "REMAINDER_BY_ZERO", _BY_ZERO)
    safe = np.where(zero | (divisor.values == -1), 1, divisor.values)
    return Numbers(np.asarray(np.fmod(dividend.values, safe)), null)


def _divided(frame: Frame, node: Node) -> tuple[tuple[Numbers, Numbers], Mask]:
    left, right = node.arguments
    (divisor, dividend), null = frame.strict([right, left])
    assert isinstance(divisor, Numbers)
    assert isinstance(dividend, Numbers)
    return (dividend, divisor), null


def _truncated(dividend: Values, divisor: Values) -> Values:
    down = np.asarray(dividend // divisor)
    if dividend.size and divisor.size and dividend.min() >= 0 and divisor.min() > 0:
        return down
    inexact = down * divisor != dividend
    return down + (inexact & ((dividend < 0) != (divisor < 0)))


_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_STRINGS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compared(sign: str) -> Kernel:
    """Return the comparison of numbers, or of strings by their bytes. NaN equals NaN and is the largest number."""

    def kernel(frame: Frame, node: Node) -> Vector:
        (left, right), null = frame.strict(node.arguments)
        if not isinstance(left, Numbers) or not isinstance(right, Numbers):
            result = _STRINGS[sign](left, right)
            if isinstance(result, pa.Scalar):
                return Numbers(np.array(bool(result.as_py())), null)
            return Numbers(pc.fill_null(result, False).to_numpy(zero_copy_only=False), null)
        values = np.asarray(_COMPARED[sign](left.values, right.values))
        if pa.types.is_float64(node.arguments[0].type):
            values = _with_nan(sign, left.values, right.values, values)
        return Numbers(values, null)

    return kernel


def _with_nan(sign: str, left: Values, right: Values, values: Values) -> Values:
    left_nan, right_nan = np.isnan(left), np.isnan(right)
    if not left_nan.any() and not right_nan.any():
        return values
    match sign:
        case "=":
            return values | (left_nan & right_nan)
        case "<>":
            return values & ~(left_nan & right_nan)
        case "<":
            return values | (~left_nan & right_nan)
        case "<=":
            return values | right_nan
        case ">":
            return values | (left_nan & ~right_nan)
    return values | left_nan


def least(frame: Frame, node: Node) -> Vector:
    """Return the smallest of bigints that are not NULL."""
    values: Any = np.int64(_LARGEST).reshape(())
    null: Any = np.bool_(True).reshape(())
    for argument in node.arguments:
        vector = frame.vector(argument)
        assert isinstance(vector, Numbers)
        candidates = vector.values if vector.null is None else np.where(vector.null, _LARGEST, vector.values)
        values = np.minimum(values, candidates)
        null = null & (np.bool_(False) if vector.null is None else vector.null)
    return Numbers(np.asarray(values), np.asarray(null) if np.any(null) else None)


def float_to_bigint(frame: Frame, node: Node) -> Vector:
    """Truncate towards zero. A number that does not fit, or NaN, stops the run, or is NULL in TRY_CAST."""
    (vector,), null = frame.strict(node.arguments)
    (lenient,) = node.parameters
    values = vector.values
    whole, fits = truncated(values)
    if lenient:
        null = either(null, np.asarray(~fits)) if not fits.all() else null
    else:
        stop_where(np.asarray(~fits), null, "CAST_OVERFLOW", "CAST: a number does not fit a bigint")
    return Numbers(whole, null)


def truncated(values: Values) -> tuple[Values, NDArray[np.bool_]]:
    """Return floats truncated towards zero to bigints, and which of them fit; 2^63 becomes the largest bigint."""
    fits = np.asarray((np.floor(values) <= float(_LARGEST)) & (np.ceil(values) >= float(_LEAST)))
    clipped = np.where(fits, values, 0.0)
    saturated = clipped >= 2.0**63
    whole = np.where(saturated, 0.0, clipped).astype(np.int64)
    return np.asarray(np.where(saturated, _LARGEST, whole)), fits


def rounded_bigint(frame: Frame, node: Node) -> Vector:
    """Round halves away from zero at a power of ten."""
    (vector,), null = frame.strict(node.arguments)
    (places,) = node.parameters
    values = np.asarray(vector.values)
    if places >= 0:
        return vector
    if places < -19:
        return Numbers(np.zeros_like(values), null)
    unit = 10**-places
    exact = [_rounded(int(value), unit) for value in values.reshape(-1)] if unit > 10**17 else None
    if exact is not None:
        outside = np.array([not _LEAST <= value <= _LARGEST for value in exact], np.bool_).reshape(values.shape)
        overflow(outside, null)
        return Numbers(
            np.array([value if _LEAST <= value <= _LARGEST else 0 for value in exact], np.int64).reshape(values.shape),
            null,
        )
    rest = np.fmod(values, unit)
    up = np.abs(rest) * 2 >= unit
    base = values - rest
    steps = np.where(up, np.sign(rest) * unit, 0)
    return Numbers(add(base, steps, null), null)


def _rounded(value: int, unit: int) -> int:
    whole, rest = divmod(abs(value), unit)
    magnitude = (whole + (2 * rest >= unit)) * unit
    return -magnitude if value < 0 else magnitude


def floor(values: Values) -> Values:
    """Return FLOOR; a zero has no sign."""
    return np.asarray(np.floor(values) + 0.0)


def ceiling(values: Values) -> Values:
    """Return CEILING; a zero has no sign."""
    return np.asarray(np.ceil(values) + 0.0)


def sign(values: Values) -> Values:
    """Return SIGN: NaN for NaN, and a zero keeps its sign."""
    return np.where(values == 0, values, np.sign(values))


def is_not_finite(vector: Numbers) -> NDArray[np.bool_]:
    return np.asarray(~np.isfinite(vector.values))


def is_null(frame: Frame, node: Node) -> Vector:
    null = null_of(frame.vector(node.arguments[0]))
    return Numbers(np.zeros((), np.bool_) if null is None else null)


def to_bit(values: Values) -> Values:
    return np.asarray(values != 0)


def to_float(values: Values) -> Values:
    return np.asarray(values).astype(np.float64)


def to_bigint(values: Values) -> Values:
    return np.asarray(values).astype(np.int64)


def rounded_float(frame: Frame, node: Node) -> Vector:
    """Round halves of the digits that Java writes away from zero, as BigDecimal does."""
    (vector,), null = frame.strict(node.arguments)
    (places,) = node.parameters
    values = np.asarray(vector.values)
    with np.errstate(all="ignore"):
        return Numbers(_half_up(values.reshape(-1), places).reshape(values.shape), null)


def _half_up(values: Values, places: int) -> Values:
    result = values.copy()
    finite = np.isfinite(values)
    slow = finite
    if 0 <= places <= 15:
        scaled = np.abs(np.where(finite, values, 0.0)) * 10.0**places
        down = np.floor(scaled)
        distance = np.abs(scaled - down - 0.5)
        # Far from a half, and with fewer digits than a float has, no digit that Java writes matters.
        quick = finite & (scaled < 2.0**50) & (distance > 1e-3)
        rounded = (down + (scaled - down > 0.5)) / 10.0**places
        result[quick] = np.where((values < 0) & (rounded != 0), -rounded, rounded)[quick]
        slow = finite & ~quick
    for row in np.flatnonzero(slow):
        result[row] = _rounded_digits(float(values[row]), places)
    return result


def _rounded_digits(number: float, places: int) -> float:
    digits, points = digits_of(np.array([abs(number)]))
    if not digits[0]:
        return 0.0
    digit, point = int(digits[0]), int(points[0])
    last = point - len(str(digit))  # the decimal is digit * 10^last
    if -places <= last:
        return number + 0.0
    unit = 10 ** (-places - last)
    whole = (2 * digit + unit) // (2 * unit)
    magnitude = float(f"{whole}e{-places}")
    return -magnitude if number < 0 and magnitude else magnitude


ADD, SUBTRACT, MULTIPLY = checked(add), checked(subtract), checked(multiply)
ADD_FLOATS, SUBTRACT_FLOATS, MULTIPLY_FLOATS = computed(np.add), computed(np.subtract), computed(np.multiply)
NOT = computed(np.logical_not)
TO_FLOAT, TO_BIGINT, TO_BIT = computed(to_float), computed(to_bigint), computed(to_bit)
EQUAL, NOT_EQUAL, LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL = map(compared, _COMPARED)
NEGATIVE, ABSOLUTE = checked(negative), checked(absolute)
