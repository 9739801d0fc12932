"""The Spark functions and casts that this package evaluates, by name, with the types that they take."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from recapture.evaluate import numbers
from recapture.evaluate.frames import Kernel
from recapture.evaluate.lowering import BIGINT, BOOLEAN, DOUBLE, INT

_INT_RANGE = (-(2**31), 2**31 - 1)
_BIGINT_RANGE = (-(2**63), 2**63 - 1)


@dataclass(frozen=True)
class Signature:
    """One form of a function."""

    arguments: tuple[pa.DataType, ...]
    type: pa.DataType
    """Type of its result."""
    kernel: Kernel
    parameters: tuple[Any, ...] = ()
    raises: bool = False
    """Whether it may raise an error."""
    many: bool = False
    """Whether the last type stands for any number of arguments."""


_SAME, _FLOAT = numbers.computed_same, numbers.computed_float

CASTS: dict[str, tuple[Signature, ...]] = {
    "cast bigint": (
        Signature((BIGINT,), BIGINT, _SAME),
        Signature((BOOLEAN,), BIGINT, numbers.computed_bigint),
        Signature((DOUBLE,), BIGINT, numbers.double_to_bigint, (*_BIGINT_RANGE, False), raises=True),
    ),
    "try_cast bigint": (
        Signature((BIGINT,), BIGINT, _SAME),
        Signature((BOOLEAN,), BIGINT, numbers.computed_bigint),
        Signature((DOUBLE,), BIGINT, numbers.double_to_bigint, (*_BIGINT_RANGE, True)),
    ),
    "cast int": (
        Signature((INT,), INT, _SAME),
        Signature((BIGINT,), INT, numbers.to_int, raises=True),
    ),
    **dict.fromkeys(
        ("cast double", "try_cast double"),
        (Signature((DOUBLE,), DOUBLE, _SAME), Signature((BOOLEAN,), DOUBLE, _FLOAT)),
    ),
    **dict.fromkeys(
        ("cast boolean", "try_cast boolean"),
        (
            Signature((BOOLEAN,), BOOLEAN, _SAME),
            Signature((BIGINT,), BOOLEAN, numbers.computed_bit),
            Signature((DOUBLE,), BOOLEAN, numbers.computed_bit),
        ),
    ),
}
"""Casts, after the type that they cast to."""

FUNCTIONS: dict[str, tuple[Signature, ...]] = {
    **CASTS,
    "negative": (
        Signature((BIGINT,), BIGINT, numbers.NEGATIVE, raises=True),
        Signature((DOUBLE,), DOUBLE, numbers.computed(np.negative)),
    ),
    "abs": (
        Signature((BIGINT,), BIGINT, numbers.ABSOLUTE, raises=True),
        Signature((DOUBLE,), DOUBLE, numbers.computed(np.abs)),
    ),
    "&": (Signature((BIGINT, BIGINT), BIGINT, numbers.computed(np.bitwise_and)),),
    "|": (Signature((BIGINT, BIGINT), BIGINT, numbers.computed(np.bitwise_or)),),
    "^": (Signature((BIGINT, BIGINT), BIGINT, numbers.computed(np.bitwise_xor)),),
    "~": (Signature((BIGINT,), BIGINT, numbers.computed(np.invert)),),
    "greatest": (Signature((BIGINT,), BIGINT, numbers.greatest, many=True),),
    "least": (Signature((BIGINT,), BIGINT, numbers.least, many=True),),
    "sign": (Signature((DOUBLE,), DOUBLE, numbers.computed(numbers.java_sign)),),
    "floor": (Signature((DOUBLE,), BIGINT, numbers.floor_bigint, (np.floor,)),),
    "ceil": (Signature((DOUBLE,), BIGINT, numbers.floor_bigint, (np.ceil,)),),
    "sqrt": (Signature((DOUBLE,), DOUBLE, numbers.computed(np.sqrt)),),
}
"""Functions, casts and operators, with each form's types. INT passes as bigint, and both as float."""
