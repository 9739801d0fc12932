"""The values of expressions over rows, and rows in other places."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.expressions import project
from recapture.query.plan.expressions import Expr


def evaluated(rows: pa.Table, expressions: Iterable[Expr], bounds: SliceBounds) -> list[pa.ChunkedArray]:
    """Return the value of each expression for each row. Errors are those of `project`."""
    items = [(str(number), expression) for number, expression in enumerate(expressions)]
    columns: list[pa.ChunkedArray] = project(rows, items, None, bounds).columns
    return columns


def taken(column: pa.ChunkedArray, places: NDArray[np.int64]) -> pa.ChunkedArray:
    """Return the values at some places of a column; place -1 gives NULL."""
    return column.take(pa.array(places, mask=places < 0 if has_none(places) else None))


def has_none(places: NDArray[np.int64]) -> bool:
    """Return whether any place is -1."""
    return bool(places.min(initial=0) < 0)


def flags(condition: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return where a column of bits is true, as an array."""
    values: NDArray[np.bool_] = condition.fill_null(False).to_numpy()
    return values


def valid(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return where a column is not NULL, as an array."""
    values: NDArray[np.bool_] = column.is_valid().to_numpy()
    return values
