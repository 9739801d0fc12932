"""Rules of CAST, and of the conversions of strings as ASA makes them."""

from collections.abc import Mapping

import pyarrow as pa

from recapture.evaluate import casts, float_text, numbers, strings
from recapture.evaluate.frames import Kernel, Node
from recapture.evaluate.lowering import BIGINT, BIT, FLOAT, NULL, STRING, Lowering
from recapture.evaluate.rules import Constants, of
from recapture.model import TYPES, AsaType
from recapture.query.plan.operations import Op

_CASTS: Mapping[tuple[pa.DataType, pa.DataType], Kernel] = {
    (BIT, BIGINT): numbers.TO_BIGINT,
    (FLOAT, BIGINT): numbers.float_to_bigint,
    (STRING, BIGINT): casts.BIGINT,
    (BIT, FLOAT): numbers.TO_FLOAT,
    (BIGINT, FLOAT): numbers.TO_FLOAT,
    (STRING, FLOAT): casts.FLOAT,
    (BIGINT, BIT): numbers.TO_BIT,
    (FLOAT, BIT): numbers.TO_BIT,
    (BIGINT, STRING): strings.bigint_text,
    (BIT, STRING): casts.bit_text,
    (FLOAT, STRING): float_text.JAVA,
}
"""Kernels of CAST, by the types from and to."""
_STOPPING = (casts.BIGINT, casts.FLOAT, numbers.float_to_bigint)
"""Those that stop the run, unless they are lenient."""


def cast(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    [value], [to, lenient] = arguments, constants
    type_ = TYPES[AsaType(str(to))].view
    if value.type in (type_, NULL):
        return lowering.required([value], [type_])[0]
    kernel = _CASTS[value.type, type_]
    return lowering.node(kernel, [value], type_, (lenient,), kernel in _STOPPING and not lenient)


def string_to_float(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    text, excess = arguments
    number = of([STRING], FLOAT, casts.ASA_FLOAT, not constants[0])(lowering, constants, [text])
    return lowering.operation(Op.FINITE, [number, excess])


def string_to_datetime(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    return of([STRING, BIGINT], BIGINT, casts.asa_datetime, not constants[0])(lowering, constants, arguments)


def string_to_bit(lowering: Lowering, constants: Constants, arguments: list[Node]) -> Node:
    return of([STRING], BIT, casts.ASA_BIT, not constants[0])(lowering, constants, arguments)
