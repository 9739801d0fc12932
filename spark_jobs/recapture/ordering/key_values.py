"""Values of keys as strings that are equal if a condition finds them alike: 5, 5.0 and 50e-1 are one number."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recapture.formats.views import copied
from recapture.ordering.bloom import Hashes, hashes_of

_NUMBER = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"
_LARGEST_EXACT = 2**53
"""Largest integer up to which floats hold every integer."""


def number_of(value: str) -> float | None:
    """Return a value as a number; None if it is not one, or an integer that no float holds exactly."""
    number = float(value) if re.fullmatch(_NUMBER, value) else None
    return None if number is None or abs(number) > _LARGEST_EXACT else number


def numbers_in(strings: pa.Array) -> pa.Array:
    """Return the strings that are numbers as floats; NULL for the others."""
    is_number = pc.match_substring_regex(strings, _NUMBER)
    return pc.if_else(is_number, strings, None).cast(pa.float64())


def key_hashes(values: pa.Array, number: int) -> Hashes:
    """Return the hashes of the values of a key: of equal values, and of equal numbers, they are equal.

    `number` is that of the key in the index. The hash of NULL means nothing.
    """
    strings = copied(values).cast(pa.string())
    numbers = numbers_in(strings)
    floats = numbers.fill_null(np.inf).to_numpy(zero_copy_only=False)
    is_exact = np.abs(floats) <= _LARGEST_EXACT
    if is_exact.any():
        spelt = pa.array(np.where(is_exact, floats, 0) + 0.0).cast(pa.string())  # -0.0 becomes 0.0
        strings = pc.if_else(pa.array(is_exact), spelt, strings)
    return hashes_of(strings, number)
