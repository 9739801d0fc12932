"""The Spark functions and casts that this package evaluates, by name, with the types that they take."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from recapture.evaluate import calendar, casts, float_text, numbers, powers, strings
from recapture.evaluate.distinct import of_many
from recapture.evaluate.frames import Kernel
from recapture.evaluate.lowering import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP

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
_TO_DOUBLE = (Signature((DOUBLE,), DOUBLE, _SAME), Signature((BOOLEAN,), DOUBLE, _FLOAT))

CASTS: dict[str, tuple[Signature, ...]] = {
    "cast bigint": (
        Signature((BIGINT,), BIGINT, _SAME),
        Signature((BOOLEAN,), BIGINT, numbers.computed_bigint),
        Signature((DOUBLE,), BIGINT, numbers.double_to_bigint, (*_BIGINT_RANGE, False), raises=True),
        Signature((STRING,), BIGINT, casts.BIGINT, (False,), raises=True),
    ),
    "try_cast bigint": (
        Signature((BIGINT,), BIGINT, _SAME),
        Signature((BOOLEAN,), BIGINT, numbers.computed_bigint),
        Signature((DOUBLE,), BIGINT, numbers.double_to_bigint, (*_BIGINT_RANGE, True)),
        Signature((STRING,), BIGINT, casts.BIGINT, (True,)),
    ),
    "cast int": (
        Signature((INT,), INT, _SAME),
        Signature((BIGINT,), INT, numbers.to_int, raises=True),
    ),
    "cast double": (*_TO_DOUBLE, Signature((STRING,), DOUBLE, casts.DOUBLE, (False,), raises=True)),
    "try_cast double": (*_TO_DOUBLE, Signature((STRING,), DOUBLE, casts.DOUBLE, (True,))),
    **dict.fromkeys(
        ("cast string", "try_cast string"),
        (
            Signature((STRING,), STRING, strings.same),
            Signature((BIGINT,), STRING, strings.bigint_text),
            Signature((BOOLEAN,), STRING, casts.bit_text),
            Signature((DOUBLE,), STRING, float_text.JAVA),
        ),
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
    "date_from_unix_date": (Signature((INT,), DATE, _SAME),),
    "unix_date": (Signature((DATE,), INT, _SAME),),
    "add_months": (Signature((DATE, INT), DATE, calendar.add_months, raises=True),),
    "make_date": (Signature((INT, INT, INT), DATE, calendar.make_date, raises=True),),
    "year": (Signature((DATE,), INT, calendar.YEAR),),
    "quarter": (Signature((DATE,), INT, calendar.QUARTER),),
    "month": (Signature((DATE,), INT, calendar.MONTH),),
    "day": (Signature((DATE,), INT, calendar.DAY),),
    "dayofyear": (Signature((DATE,), INT, calendar.DAY_OF_YEAR),),
    "timestamp_micros": (Signature((BIGINT,), TIMESTAMP, _SAME),),
    "exp": (Signature((DOUBLE,), DOUBLE, powers.EXPONENTIAL),),
    "length": (Signature((STRING,), INT, strings.length),),
    "reverse": (Signature((STRING,), STRING, strings.REVERSED),),
    "rtrim": (Signature((STRING,), STRING, strings.trimmed, ("trailing", " ")),),
    "replace": (Signature((STRING, STRING, STRING), STRING, strings.replace),),
    "translate": (Signature((STRING, STRING, STRING), STRING, of_many(strings.translate)),),
    "contains": (Signature((STRING, STRING), BOOLEAN, strings.contains),),
    "repeat": (Signature((STRING, INT), STRING, of_many(strings.repeat)),),
    "left": (Signature((STRING, INT), STRING, strings.taken_left),),
    "right": (Signature((STRING, INT), STRING, strings.RIGHT),),
    "substring": (Signature((STRING, INT, INT), STRING, strings.substring),),
    "overlay": (Signature((STRING, STRING, INT, INT), STRING, of_many(strings.overlay)),),
    "locate": (Signature((STRING, STRING, INT), INT, strings.located),),
    "ascii": (Signature((STRING,), INT, strings.code_point),),
    "sqrt": (Signature((DOUBLE,), DOUBLE, numbers.computed(np.sqrt)),),
}
"""Functions, casts and operators, with each form's types. INT passes as bigint, and both as float."""
