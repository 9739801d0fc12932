"""Columns, literals, conditions and choices: they decide for which rows other operations are evaluated."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.evaluate.faults import stop_with
from recapture.evaluate.frames import Frame, Kernel, Node
from recapture.evaluate.vectors import DTYPES, Numbers, Vector, either, from_arrow, null_of


def literal(value: Any, type_: pa.DataType) -> Vector:
    """Return a literal as a vector for all rows."""
    dtype = DTYPES.get(type_)
    if dtype is None:
        return pa.scalar(value, type_)
    if value is None:
        return Numbers(np.zeros((), dtype), np.ones((), np.bool_))
    return Numbers(np.array(value, dtype))


def constant(frame: Frame, node: Node) -> Vector:
    vector: Vector = node.parameters[0]
    return vector


def bound(frame: Frame, node: Node) -> Vector:
    """Return the start or the end of the slice."""
    bounds = frame.bounds
    return Numbers(np.array(bounds.start if node.parameters[0] == "_slice_start" else bounds.end, np.int64))


def column_type(type_: pa.DataType) -> pa.DataType:
    """Return the type in which a column is evaluated."""
    if pa.types.is_dictionary(type_):
        return column_type(type_.value_type)
    return pa.string() if pa.types.is_large_string(type_) or pa.types.is_string_view(type_) else type_


def column(frame: Frame, node: Node) -> Vector:
    return frame.column(node.parameters[0])


def field(frame: Frame, node: Node) -> Vector:
    """Return a field of structs; that of a NULL is NULL."""
    structs = frame.array(node.arguments[0])
    inner = pc.struct_field(structs, node.parameters[0])
    return from_arrow(inner)


def struct(frame: Frame, node: Node) -> Vector:
    arrays = [frame.array(argument) for argument in node.arguments]
    fields = [node.type.field(index) for index in range(node.type.num_fields)]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def typed_null(frame: Frame, node: Node) -> Vector:
    """Return NULL in another type, after the argument, which may raise an error."""
    frame.vector(node.arguments[0])
    return literal(None, node.type)


def fail(frame: Frame, node: Node) -> Vector:
    """Stop the run if there is a row."""
    if frame.size:
        stop_with(str(node.parameters[0]))
    return pa.scalar(None, pa.null())


def result(frame: Frame, node: Node) -> Vector:
    """Return the values of structs of a value and an error; stop the run with the first error."""
    structs = frame.array(node.arguments[0])
    errors = pc.struct_field(structs, "error").drop_null()
    if len(errors):
        stop_with(errors[0].as_py())
    return from_arrow(pc.struct_field(structs, "value"))


def unless(test: Callable[[Numbers], NDArray[np.bool_]]) -> Kernel:
    """Return the kernel of a number, or of another value where a test of the number holds."""

    def kernel(frame: Frame, node: Node) -> Vector:
        number, other = node.arguments
        vector = frame.vector(number)
        failed = test(vector)
        if vector.null is not None:
            failed = failed & ~vector.null
        if not failed.any():
            return vector
        return frame.scattered([(frame.where(~failed), number), (frame.where(failed), other)], node.type)

    return kernel


def holds(frame: Frame, node: Node) -> NDArray[np.bool_]:
    """Return the rows in which a condition is true; NULL is not."""
    vector = frame.vector(node)
    assert isinstance(vector, Numbers)
    mask = vector.values if vector.null is None else vector.values & ~vector.null
    return mask if mask.shape else np.full(frame.size, mask)


def case(frame: Frame, node: Node) -> Vector:
    """Return CASE: each branch is evaluated where its condition is the first that is true."""
    *pairs, default = node.arguments
    rest = frame
    parts: list[tuple[Frame, Node]] = []
    for condition, value in zip(pairs[::2], pairs[1::2], strict=True):
        if not rest.size and frame.size:
            break
        mask = holds(rest, condition)
        parts.append((rest.where(mask), value))
        rest = rest.where(~mask)
    parts.append((rest, default))
    return frame.scattered(parts, node.type)


def coalesce(frame: Frame, node: Node) -> Vector:
    """Return the first value that is not NULL; the others are not evaluated."""
    rest = frame
    parts: list[tuple[Frame, Node]] = []
    for value in node.arguments:
        null = null_of(rest.vector(value))
        if null is None:
            parts.append((rest, value))
            break
        mask = null if null.shape else np.full(rest.size, null)
        parts.append((rest.where(~mask), value))
        rest = rest.where(mask)
        if not rest.size:
            break
    if not parts[0][0].size and len(parts) > 1:
        parts = parts[1:]
    return frame.scattered(parts, node.type)


def conjunction(frame: Frame, node: Node) -> Vector:
    """Return AND: the right side is evaluated where the left one is not false."""
    return _connected(frame, node, decisive=False)


def disjunction(frame: Frame, node: Node) -> Vector:
    """Return OR: the right side is evaluated where the left one is not true."""
    return _connected(frame, node, decisive=True)


def _connected(frame: Frame, node: Node, decisive: bool) -> Vector:
    """Return a connective; a side with the value `decisive` decides, and any other NULL makes it NULL."""
    decided: Any = np.zeros((), np.bool_)
    null = None
    for index, side in enumerate(node.arguments):
        if index and side.raises and np.any(decided):
            vector = frame.scattered([(frame.where(~decided), side)], node.type)
        else:
            vector = frame.vector(side)
        assert isinstance(vector, Numbers)
        deciding = vector.values if decisive else ~vector.values
        if vector.null is not None:
            deciding = deciding & ~vector.null
        decided = decided | deciding
        null = either(null, vector.null)
    if null is not None:
        null = null & ~decided
    return Numbers(np.asarray(decided if decisive else ~decided), null)
