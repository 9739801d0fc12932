"""Frames: the rows over which an expression is evaluated.

A branch of a CASE, the right side of AND, and whatever else Spark evaluates for some rows only, is evaluated over a
frame of those rows. So a CASE guards a division by zero as it does in Spark. Each node is evaluated once per frame.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.vectors import DTYPES, Numbers, Vector, either, from_arrow, null_of, taken, to_arrow

Kernel = Callable[["Frame", "Node"], Vector]


@dataclass(frozen=True, eq=False)
class Node:
    """One operation of an expression. Equal nodes of one projection are the same object."""

    kernel: Kernel
    arguments: tuple["Node", ...]
    type: pa.DataType
    """Type of its values; null for the literal NULL."""
    parameters: tuple[Any, ...] = ()
    """What the kernel needs to know besides its arguments, such as a compiled pattern."""
    raises: bool = False
    """Whether it, or a part of it, may raise an error."""
    depth: int = 1
    """Number of nodes within each other, with this one."""


@dataclass
class Frame:
    """Some rows of a table."""

    table: pa.Table
    bounds: SliceBounds
    size: int
    parent: "Frame | None" = None
    rows: NDArray[np.int64] | None = None
    """Indexes of its rows in the parent."""
    _vectors: dict[Node, Vector] = field(default_factory=dict)
    _columns: dict[str, Vector] = field(default_factory=dict)

    def column(self, name: str) -> Vector:
        """Return a column of the table."""
        vector = self._columns.get(name)
        if vector is None:
            if self.parent is None:
                vector = from_arrow(self.table[name])
            else:
                assert self.rows is not None
                vector = taken(self.parent.column(name), self.rows)
            self._columns[name] = vector
        return vector

    def vector(self, node: Node) -> Vector:
        """Return the values of a node."""
        vector = self._known(node)
        if vector is None:
            vector = node.kernel(self, node)
            if self.size == 0 and isinstance(vector, Numbers):
                # A literal stands for no row here, so that 1 / 0 stops nothing.
                vector = Numbers(np.empty(0, vector.values.dtype))
            self._vectors[node] = vector
        return vector

    def _known(self, node: Node) -> Vector | None:
        vector = self._vectors.get(node)
        if vector is None and self.parent is not None:
            assert self.rows is not None
            vector = self.parent._known(node)
            if vector is not None:
                vector = self._vectors[node] = taken(vector, self.rows)
        return vector

    def array(self, node: Node) -> pa.Array:
        """Return the values of a node as an Arrow array."""
        return to_arrow(self.vector(node), node.type, self.size)

    def where(self, mask: NDArray[np.bool_]) -> "Frame":
        """Return the frame of the rows that a mask holds."""
        if not mask.shape:
            mask = np.full(self.size, mask)
        return self.of_rows(np.flatnonzero(mask))

    def of_rows(self, rows: NDArray[np.int64]) -> "Frame":
        """Return the frame of some rows, in order, by their indexes."""
        if len(rows) == self.size:
            return self
        return Frame(self.table, self.bounds, len(rows), self, rows)

    def root_rows(self) -> NDArray[np.int64] | None:
        """Return the indexes of its rows in the table; None if it has all of them."""
        if self.parent is None:
            return None
        assert self.rows is not None
        above = self.parent.root_rows()
        return self.rows if above is None else above[self.rows]

    def strict(self, arguments: Sequence[Node]) -> tuple[list[Vector], NDArray[np.bool_] | None]:
        """Return the values of arguments, and where one of them is NULL.

        As in Spark, an argument is not evaluated where one before it is NULL: its error does not count there.
        """
        vectors: list[Vector] = []
        null: NDArray[np.bool_] | None = None
        for argument in arguments:
            if argument.raises and null is not None and null.any():
                vector = self.scattered([(self.where(~null), argument)], argument.type)
            else:
                vector = self.vector(argument)
            vectors.append(vector)
            null = either(null, null_of(vector))
        return vectors, null

    def scattered(self, parts: Sequence[tuple["Frame", Node]], type_: pa.DataType) -> Vector:
        """Return the values of nodes over frames that are parts of this one; NULL in the rows of no part."""
        parts = [(frame, node) for frame, node in parts if frame.size or self.size == 0]
        if len(parts) == 1 and parts[0][0] is self:
            vector = self.vector(parts[0][1])
            return pa.scalar(None, type_) if pa.types.is_null(parts[0][1].type) and type_ not in DTYPES else vector
        if type_ in DTYPES:
            values = np.zeros(self.size, DTYPES[type_])
            null = np.ones(self.size, np.bool_)
            for frame, node in parts:
                numbers = frame.vector(node)
                assert isinstance(numbers, Numbers)
                rows = self._rows_of(frame)
                values[rows] = numbers.values
                null[rows] = False if numbers.null is None else numbers.null
            return Numbers(values, null if null.any() else None)
        order = np.full(self.size, -1, np.int64)
        arrays, count = [], 0
        for frame, node in parts:
            if pa.types.is_null(node.type):
                frame.vector(node)
                continue
            order[self._rows_of(frame)] = np.arange(count, count + frame.size)
            arrays.append(frame.array(node))
            count += frame.size
        if not arrays:
            return pa.nulls(self.size, type_)
        together = arrays[0] if len(arrays) == 1 else pa.concat_arrays([array.cast(type_) for array in arrays])
        return together.take(pa.array(order, mask=order < 0))

    def _rows_of(self, frame: "Frame") -> NDArray[np.int64] | slice:
        """Return the indexes of the rows of a frame below this one."""
        if frame is self:
            return slice(None)
        assert frame.parent is not None
        assert frame.rows is not None
        above = self._rows_of(frame.parent)
        return frame.rows if isinstance(above, slice) else above[frame.rows]


def whole(table: pa.Table, bounds: SliceBounds) -> Frame:
    """Return the frame of all rows of a table."""
    return Frame(table, bounds, table.num_rows)


Columns = Mapping[str, pa.DataType]
"""Types of the columns of a table, by name."""
