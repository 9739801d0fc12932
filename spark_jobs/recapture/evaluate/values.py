"""The values of expressions over rows, and rows in other places."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.expressions import project
from recapture.query.generate.trees import is_of_row


def evaluated(rows: pa.Table, expressions: Iterable[exp.Expr], bounds: SliceBounds) -> list[pa.ChunkedArray]:
    """Return the value of each expression for each row. Errors are those of `project`."""
    items = [(str(number), tree) for number, tree in enumerate(expressions)]
    columns: list[pa.ChunkedArray] = project(rows, items, None, bounds).columns
    return columns


def column_names(tree: exp.Expr) -> list[str]:
    """Return the different columns of the row that an expression reads."""
    return list(dict.fromkeys(node.name for node in tree.find_all(exp.Column) if is_of_row(node)))


def taken(column: pa.ChunkedArray, places: NDArray[np.int64]) -> pa.ChunkedArray:
    """Return the values in some places of a column; -1 stands for NULL."""
    return column.take(pa.array(places, mask=places < 0))


def flags(condition: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return where a column of bits is true, as an array."""
    values: NDArray[np.bool_] = condition.fill_null(False).to_numpy()
    return values


def valid(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return where a column is not NULL, as an array."""
    values: NDArray[np.bool_] = column.is_valid().to_numpy()
    return values
