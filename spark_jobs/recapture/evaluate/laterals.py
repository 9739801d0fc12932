"""CROSS APPLY and OUTER APPLY: a row for each element of an array, or for each property of a record."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.values import evaluated, taken
from recapture.query.plan.relations import Lateral


def applied(rows: pa.Table, laterals: Iterable[Lateral], bounds: SliceBounds) -> pa.Table:
    """Return the rows with the elements that APPLYs add, as struct columns `@@e0`, …

    A row comes once for each of its elements, in their order. A row without elements is left out, or with OUTER has
    NULL as its element.
    """
    for lateral in laterals:
        [arrays] = evaluated(rows, [lateral.array], bounds)
        array = arrays.combine_chunks()
        sizes = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        counts = np.maximum(sizes, 1) if lateral.outer else sizes
        numbers = np.repeat(np.arange(len(sizes)), counts)
        places = np.cumsum(np.append(0, sizes))[:-1]
        element = np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts) + places[numbers]
        elements = pa.chunked_array([array.flatten()])
        element = np.where(sizes[numbers] > 0, element, -1)
        rows = rows.take(pa.array(numbers)).append_column(lateral.column, taken(elements, element))
    return rows
