"""The rows of a query, in every way in which a worker computes them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from recapture.query.model import CompiledQuery
from tests.evaluate.evaluated import evaluated, in_order, merged, parts_of, require_same_in_parts


def rows_of_outputs(
    query: CompiledQuery,
    events: Mapping[str, Sequence[dict[str, Any]]],
    references: Mapping[str, pa.Table] | None = None,
) -> list[pa.Table]:
    """Return the rows of each output, with the start of their slice as `slice_start`.

    `events` are rows of the views, by the alias of the input, and `references` the rows of reference data, by their
    views. Raise AssertionError if two ways of computing the rows do not give the same.
    """
    parts = parts_of(query, events)
    tables = [evaluated(parts, output, references or {}) for output in query.outputs]
    for output, table in zip(query.outputs, tables, strict=True):
        if output.selects:
            names = [*(column.name for column in output.columns), "slice_start"]
            assert in_order(merged(parts, output), names) == in_order(table, names)
    require_same_in_parts(query, parts, tables, references or {})
    return tables
