"""Floats as text: as Java writes them, and as .NET does, which is the form that a query publishes.

The digits are those of Java 17's Double.toString, which Spark uses: as many as tell a float from its neighbours, and
in some cases one more. Numba compiles the loops when they are first called.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.evaluate.frames import Frame, Node
from recapture.evaluate.vectors import Numbers, Vector
from recapture.process.compilation import compiled

WIDTH = 26
"""Largest number of bytes of a float's text: -1.2345678901234567E-300, and .NET's -0.00001 with 17 digits."""
_BITS_OF_5 = np.array(
    [0, 3, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28, 31, 33, 35, 38, 40, 42, 45, 47, 49, 52, 54, 56, 59, 61], np.int64
)
"""Number of bits of 5^n."""
_POWERS_OF_5 = np.array([5**n for n in range(27)], np.int64)
_POWERS_OF_10 = np.array([10**n for n in range(19)], np.int64)
_LONG = -10_000
"""Place of the point of a float that needs more than 64 bits."""
_INSIGNIFICANT = np.array(
    [
        *(0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 9),
        *(10, 10, 10, 11, 11, 11, 12, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15, 15, 16, 16, 16, 17, 17, 17),
        *(18, 18, 18, 19),
    ],
    np.int64,
)
"""Number of decimal digits below the precision of a float, by the power of two that exceeds its 53 bits."""


@compiled
def short_digits(
    numbers: NDArray[np.float64],
    bits_of_5: NDArray[np.int64],
    powers_of_5: NDArray[np.int64],
    powers_of_10: NDArray[np.int64],
    insignificant: NDArray[np.int64],
    digits: NDArray[np.int64],
    points: NDArray[np.int64],
) -> None:
    """Write the digits of positive finite floats as integers, and the place of the point: 21.5 => 215, 2.

    The point of a float that needs more than 64 bits is -10000. Those that are not positive or finite are left out.
    """
    for row in range(len(numbers)):
        number = numbers[row]
        if not (number > 0.0 and number < np.inf):
            continue
        raw: Any = np.float64(number).view(np.int64)
        exponent = raw >> 52
        fraction = raw & ((1 << 52) - 1)
        significant = 53
        if exponent == 0:
            shift = 0
            while fraction & (1 << 52) == 0:
                fraction <<= 1
                shift += 1
            exponent = 1 - shift
            significant = 53 - shift
        else:
            fraction |= 1 << 52
        binary = exponent - 1023
        tail = 0
        while (fraction >> tail) & 1 == 0:
            tail += 1
        width = 53 - tail
        tiny: Any = max(0, width - binary - 1)
        points[row] = _LONG
        if -21 <= binary <= 62 and tiny == 0 and width < 64:
            value = fraction << (binary - 52) if binary >= 52 else fraction >> (52 - binary)
            dropped = 0
            if binary > significant:
                excess = binary - significant - 1
                dropped = insignificant[excess] if 1 < excess < len(insignificant) else 0
            power = 0
            if dropped:
                ten = powers_of_5[dropped] << dropped
                rest = value % ten
                value //= ten
                power = dropped
                if rest >= ten >> 1:
                    value += 1
            while value % 10 == 0:
                value //= 10
                power += 1
            count = 0
            rest = value
            while rest:
                rest //= 10
                count += 1
            digits[row] = value
            points[row] = count + power
            continue
        mantissa = np.int64((fraction & ((1 << 52) - 1)) | (1023 << 52)).view(np.float64)
        estimate = (mantissa - 1.5) * 0.289529654 + 0.176091259 + float(binary) * 0.301029995663981
        decimal: Any = int(np.floor(estimate))
        b5 = max(0, -decimal)
        b2 = b5 + tiny + binary
        s5 = max(0, decimal)
        s2 = s5 + tiny
        m5 = b5
        m2 = b2 - significant
        fraction >>= tail
        b2 -= width - 1
        common = min(b2, s2)
        b2 -= common
        s2 -= common
        m2 -= common
        if width == 1:
            m2 -= 1
        if m2 < 0:
            b2 -= m2
            s2 -= m2
            m2 = 0
        b_bits = width + b2 + (bits_of_5[b5] if b5 < len(bits_of_5) else b5 * 3)
        s_bits = s2 + 1 + (bits_of_5[s5 + 1] if s5 + 1 < len(bits_of_5) else (s5 + 1) * 3)
        if b_bits >= 64 or s_bits >= 64:
            continue
        b = (fraction * powers_of_5[b5]) << b2
        s = powers_of_5[s5] << s2
        m: Any = powers_of_5[m5] << m2
        tens = s * 10
        are_ints = b_bits < 32 and s_bits < 32
        value = produced = 0
        q = b // s
        b = 10 * (b % s)
        m *= 10
        low = b < m
        high = b + m > tens
        if q == 0 and not high:
            decimal -= 1
        else:
            value = q
            produced = 1
        if decimal < -3 or decimal >= 8:
            high = low = False
        while not low and not high:
            q = b // s
            b = 10 * (b % s)
            # Java lets m wrap around.
            m = np.int64(np.uint64(m) * np.uint64(10))
            if are_ints:
                m = np.int64(np.int32(m))
            if m > 0:
                low = b < m
                high = np.int64(np.uint64(b) + np.uint64(m)) > tens
            else:
                low = high = True
            value = value * 10 + q
            produced += 1
        difference = np.int64((np.uint64(b) << np.uint64(1)) - np.uint64(tens))
        if high and (not low or difference > 0 or (difference == 0 and value & 1)):
            value += 1
        # `produced` digits are before the rounding, which may carry into one more.
        point = decimal + 1
        if value >= powers_of_10[produced]:
            point += 1
        while value % 10 == 0:
            value //= 10
        digits[row] = value
        points[row] = point


@compiled
def write_java(
    numbers: NDArray[np.float64],
    digits: NDArray[np.int64],
    points: NDArray[np.int64],
    net: bool,
    ends: NDArray[np.int32],
    text: NDArray[np.uint8],
) -> None:
    """Write floats as Java does, or as .NET with `net`, one after the other; `ends` has where each one ends."""
    figures = np.empty(20, np.uint8)
    place = 0
    for row in range(len(numbers)):
        number = numbers[row]
        if np.isnan(number):
            for code in (78, 97, 78):  # NaN
                text[place] = code
                place += 1
            ends[row + 1] = place
            continue
        if number < 0.0 or (number == 0.0 and not net and np.signbit(number)):
            text[place] = 45  # -
            place += 1
        if np.isinf(number):
            for code in (73, 110, 102, 105, 110, 105, 116, 121):  # Infinity
                text[place] = code
                place += 1
            ends[row + 1] = place
            continue
        count = 0
        rest = digits[row]
        point = points[row]
        if number == 0.0:
            rest, point = 0, 1
            figures[0] = 48
            count = 1
        while rest:
            figures[count] = 48 + rest % 10
            rest //= 10
            count += 1
        magnitude = abs(number)
        is_plain = number == 0.0 or 1e-5 <= magnitude < 1e15 if net else -3 < point < 8
        if is_plain:
            if point <= 0:
                text[place] = 48  # 0
                text[place + 1] = 46  # .
                place += 2
                for _ in range(-point):
                    text[place] = 48
                    place += 1
            for index in range(max(count, point)):
                if index == point and index > 0:
                    text[place] = 46
                    place += 1
                text[place] = figures[count - 1 - index] if index < count else 48
                place += 1
            if count <= point and not net:
                text[place] = 46
                text[place + 1] = 48
                place += 2
        else:
            text[place] = figures[count - 1]
            place += 1
            if count > 1 or not net:
                text[place] = 46
                place += 1
            if count == 1 and not net:
                text[place] = 48
                place += 1
            for index in range(1, count):
                text[place] = figures[count - 1 - index]
                place += 1
            text[place] = 69  # E
            place += 1
            power = point - 1
            if power < 0 or net:
                text[place] = 45 if power < 0 else 43
                place += 1
            power = abs(power)
            if power >= 100:
                text[place] = 48 + power // 100
                place += 1
            if power >= 10 or net:
                text[place] = 48 + power // 10 % 10
                place += 1
            text[place] = 48 + power % 10
            place += 1
        ends[row + 1] = place


def texts(numbers: NDArray[np.float64], net: bool) -> pa.Array:
    """Return floats as strings, as Java writes them, or as .NET does: 1.0E-5 and 0.00001"""
    numbers = np.ascontiguousarray(numbers)
    digits, points = digits_of(np.abs(numbers))
    ends = np.zeros(len(numbers) + 1, np.int32)
    text = np.empty(WIDTH * len(numbers) + 1, np.uint8)
    write_java(numbers, digits, points, net, ends, text)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(ends), pa.py_buffer(text[: ends[-1]].copy()))


def digits_of(numbers: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the digits of floats that are not negative, without zeros at the end, and the places of their points.

    0.00215 => 215, -2
    """
    digits, points = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
    short_digits(numbers, _BITS_OF_5, _POWERS_OF_5, _POWERS_OF_10, _INSIGNIFICANT, digits, points)
    for row in np.flatnonzero(points == _LONG):
        digits[row], points[row] = _long_digits(float(numbers[row]))
    return digits, points


@lru_cache(maxsize=65536)
def _long_digits(number: float) -> tuple[int, int]:
    """Return what `short_digits` does, for a float that needs more than 64 bits."""
    mantissa, exponent = math.frexp(number)
    binary = exponent - 1
    significant = 53 if binary >= -1022 else 53 - (-1022 - binary)
    fraction = int(mantissa * 2.0**53)
    tail = (fraction & -fraction).bit_length() - 1
    width = 53 - tail
    tiny = max(0, width - binary - 1)
    estimate = (mantissa * 2.0 - 1.5) * 0.289529654 + 0.176091259 + float(binary) * 0.301029995663981
    decimal = math.floor(estimate)
    b5, s5 = max(0, -decimal), max(0, decimal)
    b2, s2 = b5 + tiny + binary, s5 + tiny
    m2 = b2 - significant
    b2 -= width - 1
    common = min(b2, s2)
    b2, s2, m2 = b2 - common, s2 - common, m2 - common
    if width == 1:
        m2 -= 1
    if m2 < 0:
        b2, s2, m2 = b2 - m2, s2 - m2, 0
    b, s, m = (fraction >> tail) * 5**b5 << b2, 5**s5 << s2, 5**b5 << m2
    tens = 10 * s
    produced = value = 0
    is_first = True
    low = high = False
    while is_first or not (low or high):
        q, rest = divmod(b, s)
        b, m = 10 * rest, 10 * m
        low, high = b < m, b + m >= tens
        if is_first and q == 0 and not high:
            decimal -= 1
        else:
            value, produced = value * 10 + q, produced + 1
        if is_first and (decimal < -3 or decimal >= 8):
            low = high = False
        is_first = False
    if high and (not low or 2 * b > tens or (2 * b == tens and value % 2)):
        value += 1
    point = decimal + 1 + (value >= 10**produced)
    while value % 10 == 0:
        value //= 10
    return value, point


def kernel(net: bool) -> Callable[[Frame, Node], Vector]:
    """Return the kernel of CAST(float AS STRING) in Spark, or of a float as ASA writes it."""

    def text(frame: Frame, node: Node) -> Vector:
        numbers = frame.vector(node.arguments[0])
        assert isinstance(numbers, Numbers)
        values = np.broadcast_to(numbers.values, (frame.size,))
        strings = texts(np.ascontiguousarray(values), net)
        if numbers.null is None:
            return strings
        null = np.broadcast_to(numbers.null, (frame.size,))
        return pc.if_else(pa.array(null), pa.scalar(None, pa.string()), strings)

    return text


JAVA, NET = kernel(net=False), kernel(net=True)
