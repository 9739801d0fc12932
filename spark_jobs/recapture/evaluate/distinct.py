"""Functions of Python over the distinct values of columns, where Arrow has no function that gives Spark's values."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from recapture.evaluate.frames import Frame, Kernel, Node
from recapture.evaluate.vectors import Numbers, Vector, from_arrow, to_arrow

Function = Callable[..., Any]


def each(function: Function, column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return a function of values over a column; NULL gives NULL. It is called once for each distinct value."""
    encoded = column.dictionary_encode()
    results = pa.array([function(value) for value in encoded.dictionary.to_pylist()], type_)
    return results.take(encoded.indices)


def of_many(function: Function) -> Kernel:
    """Return the kernel of a function of several values; NULL if one of them is NULL."""

    def kernel(frame: Frame, node: Node) -> Vector:
        vectors, _ = frame.strict(node.arguments)
        return row_by_row(function, frame, vectors, [argument.type for argument in node.arguments], node.type)

    return kernel


def row_by_row(
    function: Function, frame: Frame, vectors: Sequence[Vector], types: Sequence[pa.DataType], gives: pa.DataType
) -> Vector:
    """Return a function of several values of each row; NULL if one is NULL. It is called once for equal values."""
    computed = [index for index, vector in enumerate(vectors) if not _is_single(vector)]
    if len(computed) == 1 and pa.types.is_string(types[computed[0]]):
        return _over_one(function, frame, vectors, computed[0], gives)
    columns = [to_arrow(vector, type_, frame.size).to_pylist() for vector, type_ in zip(vectors, types, strict=True)]
    known: dict[tuple[Any, ...], Any] = {}
    results = []
    for arguments in zip(*columns, strict=True):
        if arguments not in known:
            known[arguments] = None if None in arguments else function(*arguments)
        results.append(known[arguments])
    return from_arrow(pa.array(results, gives))


def _is_single(vector: Vector) -> bool:
    """Return whether a value stands for all rows."""
    return isinstance(vector, pa.Scalar) or (isinstance(vector, Numbers) and not vector.values.shape)


def _over_one(function: Function, frame: Frame, vectors: Sequence[Vector], index: int, gives: pa.DataType) -> Vector:
    """Compute a function of which one argument alone is a column."""
    constants = [None if place == index else _constant(vector) for place, vector in enumerate(vectors)]
    if any(value is None for place, value in enumerate(constants) if place != index):
        return from_arrow(pa.nulls(frame.size, gives))
    return from_arrow(
        each(lambda value: function(*constants[:index], value, *constants[index + 1 :]), vectors[index], gives)
    )


def _constant(vector: Vector) -> Any:
    if isinstance(vector, pa.Scalar):
        return vector.as_py()
    return None if vector.null is not None and bool(vector.null) else vector.values.item()
