"""Functions of Python over the distinct values of columns, where Arrow has no function that gives Spark's values."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from recapture.evaluate.frames import Frame, Node
from recapture.evaluate.vectors import from_arrow

Function = Callable[..., Any]


def each(function: Function, column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return a function of values over a column; NULL gives NULL. It is called once for each distinct value."""
    encoded = column.dictionary_encode()
    results = pa.array([function(value) for value in encoded.dictionary.to_pylist()], type_)
    return results.take(encoded.indices)


def of_many(function: Function) -> Callable[[Frame, Node], Any]:
    """Return the kernel of a function of several values; NULL if one of them is NULL."""

    def kernel(frame: Frame, node: Node) -> Any:
        vectors, _ = frame.strict(node.arguments)
        computed = [
            index
            for index, vector in enumerate(vectors)
            if not isinstance(vector, pa.Scalar) and not _is_single(vector)
        ]
        if len(computed) == 1 and pa.types.is_string(node.arguments[computed[0]].type):
            return _over_one(function, frame, node, vectors, computed[0])
        columns = [frame.array(argument).to_pylist() for argument in node.arguments]
        known: dict[tuple[Any, ...], Any] = {}
        results = []
        for given in zip(*columns, strict=True):
            if given not in known:
                known[given] = None if None in given else function(*given)
            results.append(known[given])
        return from_arrow(pa.array(results, node.type))

    return kernel


def _is_single(vector: Any) -> bool:
    values = getattr(vector, "values", None)
    return isinstance(values, np.ndarray) and not values.shape


def _over_one(function: Function, frame: Frame, node: Node, vectors: Sequence[Any], index: int) -> Any:
    """Compute a function of which one argument alone is a column."""
    constants: list[Any] = []
    for vector in vectors:
        if isinstance(vector, pa.Scalar):
            constants.append(vector.as_py())
        elif _is_single(vector):
            constants.append(None if vector.null is not None and bool(vector.null) else vector.values.item())
        else:
            constants.append(None)
    if any(value is None for place, value in enumerate(constants) if place != index):
        return from_arrow(pa.nulls(frame.size, node.type))

    def with_constants(value: Any) -> Any:
        constants[index] = value
        return function(*constants)

    return from_arrow(each(with_constants, vectors[index], node.type))
