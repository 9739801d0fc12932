"""POWER and EXP to the last bit: Java's StrictMath, which follows the algorithms of FDLIBM.

EXP reduces x to k·ln 2 + r and approximates exp(r) by a rational function. POWER computes y·log2(x) in two floats, the
first of which has 21 bits. Numba compiles the loops when they are first called.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recapture.evaluate.numbers import computed
from recapture.process.compilation import compiled

Floats = NDArray[np.float64]

_P1, _P2, _P3 = 1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05
_P4, _P5 = -1.65339022054652515390e-06, 4.13813679705723846039e-08
_L1, _L2, _L3 = 5.99999999999994648725e-01, 4.28571428578550184252e-01, 3.33333329818377432918e-01
_L4, _L5, _L6 = 2.72728123808534006489e-01, 2.30660745775561754067e-01, 2.06975017800338417784e-01
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_INVERSE_LN2 = 1.44269504088896338700e00
_INVERSE_LN2_HIGH, _INVERSE_LN2_LOW = 1.44269502162933349609e00, 1.92596299112661746887e-08
_CP, _CP_HIGH, _CP_LOW = 9.61796693925975554329e-01, 9.61796700954437255859e-01, -7.02846165095275826516e-09
_LOG2_HIGH, _LOG2_LOW = 5.84962487220764160156e-01, 1.35003920212974897128e-08
_LG2, _LG2_HIGH, _LG2_LOW = 6.93147180559945286227e-01, 6.93147182464599609375e-01, -1.90465429995776804525e-09
_OVERFLOW = 8.0085662595372944372e-17


@compiled
def high_word(number: float) -> Any:
    """Return the upper 32 bits of a float."""
    return np.float64(number).view(np.int64) >> 32


@compiled
def with_high_word(number: float, high: int) -> Any:
    """Return a float with other upper 32 bits."""
    bits = np.float64(number).view(np.int64)
    return np.int64((bits & 0xFFFFFFFF) | (np.int64(high) << 32)).view(np.float64)


@compiled
def rounded_down(number: float) -> Any:
    """Return a float with zeros in the lower 32 bits."""
    bits = np.float64(number).view(np.int64)
    return np.int64((bits >> 32) << 32).view(np.float64)


@compiled
def exponential(x: float) -> Any:
    """Return exp(x)."""
    if np.isnan(x):
        return x
    if x > 7.09782712893383973096e02:
        return np.inf
    if x < -7.45133219101941108420e02:
        return 0.0
    magnitude = high_word(x) & 0x7FFFFFFF
    k = 0
    high = low = 0.0
    if magnitude > 0x3FD62E42:
        if magnitude < 0x3FF0A2B2:
            k = 1 if x > 0 else -1
            high = x - k * _LN2_HIGH
            low = k * _LN2_LOW
        else:
            k = int(_INVERSE_LN2 * x + (0.5 if x > 0 else -0.5))
            high = x - k * _LN2_HIGH
            low = k * _LN2_LOW
        x = high - low
    elif magnitude < 0x3E300000:
        return 1.0 + x
    t = x * x
    c = x - t * (_P1 + t * (_P2 + t * (_P3 + t * (_P4 + t * _P5))))
    if k == 0:
        return 1.0 - ((x * c) / (c - 2.0) - x)
    y = 1.0 - ((low - (x * c) / (2.0 - c)) - high)
    if k >= -1021:
        return with_high_word(y, high_word(y) + (k << 20))
    return with_high_word(y, high_word(y) + ((k + 1000) << 20)) * 9.33263618503218878990e-302


@compiled
def logarithm(magnitude: float) -> Any:
    """Return log2 of a positive float that is not near 1, as the sum of two floats."""
    n = 0
    word = high_word(magnitude)
    if word < 0x00100000:
        magnitude *= 9007199254740992.0
        n -= 53
        word = high_word(magnitude)
    n += (word >> 20) - 0x3FF
    j = word & 0x000FFFFF
    word = j | 0x3FF00000
    k = 0
    if 0x3988E < j < 0xBB67A:
        k = 1
    elif j >= 0xBB67A:
        n += 1
        word -= 0x00100000
    base = 1.5 if k else 1.0
    magnitude = with_high_word(magnitude, word)
    u = magnitude - base
    v = 1.0 / (magnitude + base)
    ss = u * v
    s_high = rounded_down(ss)
    t_high = with_high_word(0.0, ((word >> 1) | 0x20000000) + 0x00080000 + (k << 18))
    t_low = magnitude - (t_high - base)
    s_low = v * ((u - s_high * t_high) - s_high * t_low)
    s2 = ss * ss
    r = s2 * s2 * (_L1 + s2 * (_L2 + s2 * (_L3 + s2 * (_L4 + s2 * (_L5 + s2 * _L6)))))
    r += s_low * (s_high + ss)
    s2 = s_high * s_high
    t_high = rounded_down(3.0 + s2 + r)
    t_low = r - ((t_high - 3.0) - s2)
    u = s_high * t_high
    v = s_low * t_high + t_low * ss
    p_high = rounded_down(u + v)
    p_low = v - (p_high - u)
    z_high = _CP_HIGH * p_high
    z_low = _CP_LOW * p_high + p_low * _CP + (_LOG2_LOW if k else 0.0)
    offset = _LOG2_HIGH if k else 0.0
    t = float(n)
    t1 = rounded_down(((z_high + z_low) + offset) + t)
    t2 = z_low - (((t1 - t) - offset) - z_high)
    return t1, t2


@compiled
def power(x: float, y: float) -> Any:
    """Return x to the power of y."""
    if y == 0.0:
        return 1.0
    if np.isnan(x) or np.isnan(y):
        return np.nan
    y_abs, x_abs = abs(y), abs(x)
    if y == 2.0:
        return x * x
    if y == 0.5 and x >= -1.7976931348623157e308:
        return np.sqrt(x + 0.0)
    if y_abs == 1.0:
        return x if y == 1.0 else 1.0 / x
    if y_abs == np.inf:
        if x_abs == 1.0:
            return np.nan
        if x_abs > 1.0:
            return y if y >= 0 else 0.0
        return -y if y < 0 else 0.0
    is_negative = high_word(x) < 0
    integer: Any = 0
    if is_negative:
        if y_abs >= 9007199254740992.0:
            integer = 2
        elif y_abs >= 1.0 and np.floor(y_abs) == y_abs:
            integer = 2 - (np.int64(y_abs) & 1)
    if x_abs == 0.0 or x_abs == np.inf or x_abs == 1.0:
        z = 1.0 / x_abs if y < 0.0 else x_abs
        if is_negative:
            if x_abs == 1.0 and integer == 0:
                return np.nan
            if integer == 1:
                z = -z
        return z
    if is_negative and integer == 0:
        return np.nan
    sign = -1.0 if is_negative and integer == 1 else 1.0
    if high_word(y_abs) > 0x41E00000:
        word = high_word(x_abs)
        if word < 0x3FEFFFFF:
            return sign * np.inf if y < 0.0 else sign * 0.0
        if word > 0x3FF00000:
            return sign * np.inf if y > 0.0 else sign * 0.0
        if high_word(y_abs) > 0x43F00000:
            grows = (y < 0.0) == (x_abs < 1.0)
            return np.inf if grows else 0.0
        t = x_abs - 1.0
        w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25))
        u = _INVERSE_LN2_HIGH * t
        v = t * _INVERSE_LN2_LOW - w * _INVERSE_LN2
        t1 = rounded_down(u + v)
        t2 = v - (t1 - u)
    else:
        t1, t2 = logarithm(x_abs)
    y1 = rounded_down(y)
    p_low = (y - y1) * t1 + y * t2
    p_high = y1 * t1
    z = p_low + p_high
    j = high_word(z)
    if z >= 1024.0:
        if z > 1024.0 or p_low + _OVERFLOW > z - p_high:
            return sign * np.inf
    elif z <= -1075.0 and (z < -1075.0 or p_low <= z - p_high):
        return sign * 0.0
    return sign * exponential_of_two(p_high, p_low, j)


@compiled
def exponential_of_two(p_high: float, p_low: float, j: int) -> Any:
    """Return 2 to the power of a sum; `j` is the high word of the sum."""
    i = j & 0x7FFFFFFF
    k = (i >> 20) - 0x3FF
    n = 0
    if i > 0x3FE00000:
        n = j + (0x00100000 >> (k + 1))
        k = ((n & 0x7FFFFFFF) >> 20) - 0x3FF
        t = with_high_word(0.0, n & ~(0x000FFFFF >> k))
        n = ((n & 0x000FFFFF) | 0x00100000) >> (20 - k)
        if j < 0:
            n = -n
        p_high -= t
    t = rounded_down(p_low + p_high)
    u = t * _LG2_HIGH
    v = (p_low - (t - p_high)) * _LG2 + t * _LG2_LOW
    z = u + v
    w = v - (z - u)
    t = z * z
    t1 = z - t * (_P1 + t * (_P2 + t * (_P3 + t * (_P4 + t * _P5))))
    r = (z * t1) / (t1 - 2.0) - (w + z * w)
    z = 1.0 - (r - z)
    if ((high_word(z) + (n << 20)) >> 20) <= 0:
        # The result has fewer bits, and is rounded once.
        return with_high_word(z, high_word(z) + ((n + 1000) << 20)) * 9.33263618503218878990e-302
    return with_high_word(z, high_word(z) + (n << 20))


@compiled
def write_powers(x: Floats, y: Floats, result: Floats) -> None:
    """Write the powers of floats."""
    for row in range(len(result)):
        result[row] = power(x[row], y[row])


@compiled
def write_exponentials(x: Floats, result: Floats) -> None:
    """Write exp of floats."""
    for row in range(len(result)):
        result[row] = exponential(x[row])


def powers(x: Floats, y: Floats) -> Floats:
    """Return the powers of floats."""
    x, y = np.broadcast_arrays(x, y)
    result = np.empty(x.size)
    write_powers(np.ascontiguousarray(x).reshape(-1), np.ascontiguousarray(y).reshape(-1), result)
    return result.reshape(x.shape)


def exponentials(x: Floats) -> Floats:
    """Return exp of floats."""
    result = np.empty(x.size)
    write_exponentials(np.ascontiguousarray(x).reshape(-1), result)
    return result.reshape(x.shape)


POWER, EXPONENTIAL = computed(powers), computed(exponentials)
