"""JSON messages: one object, an array of objects, or objects in lines."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.formats.duckdb_sql import one_array, select, utf8
from recapture.formats.messages import NO_EVENT, EventBodies
from recapture.formats.views import copies, starts_with

_BYTE_ORDER_MARK = "\ufeff"
_BRACE = "{"
_SEVERAL = r"""
    WITH checked AS (SELECT body, json_valid(body) AS valid FROM bodies),
    read AS (
        SELECT *, CASE WHEN NOT valid THEN
            list_filter(string_split(body, chr(10)), lambda line: trim(line, ' ' || chr(9) || chr(13)) <> '')
        END AS lines FROM checked
    )
    SELECT CASE
        WHEN valid THEN
            CASE WHEN json_type(body) = 'ARRAY' THEN CAST(json_transform(body, '["JSON"]') AS VARCHAR[]) END
        WHEN len(lines) > 1 AND json_valid(lines[1]) THEN CASE WHEN json_type(lines[1]) = 'OBJECT' THEN lines END
    END AS events FROM read
"""
"""The events in a body; NULL if it is one event. Lines are events if the first of them is an object by itself."""


@dataclass(frozen=True)
class JsonMessages:
    """JSON `Messages`: "an array of objects or line separated objects" ("Azure Stream Analytics data errors")."""

    only_strings = False

    def unpack(self, bodies: pa.Array, unreadable: pa.Array | None) -> EventBodies | None:
        """Return the events if some bodies do not begin with a brace: those that do are objects, or lines of them."""
        others = pc.fill_null(pc.invert(starts_with(bodies, _BRACE)), False)
        if unreadable is not None:
            others = pc.and_(others, pc.is_null(unreadable))
        events = _split(bodies, pc.indices_nonzero(others).to_numpy().astype(np.intp))
        if events is None or unreadable is None:
            return events
        return replace(events, unreadable=pc.coalesce(unreadable.take(pa.array(events.message)), events.unreadable))

    def split(self, bodies: pa.Array, malformed: pa.Array) -> EventBodies | None:
        """Return the events if some bodies that begin with a brace are lines of objects."""
        lines = pc.and_(pc.is_valid(malformed), pc.fill_null(starts_with(bodies, _BRACE), False))
        return _split(bodies, pc.indices_nonzero(lines).to_numpy().astype(np.intp))


def _split(bodies: pa.Array, rows: NDArray[np.intp]) -> EventBodies | None:
    """Return the events of all bodies; None if none of those at `rows` has several."""
    if not len(rows):
        return None
    documents = utf8(copies(bodies, rows))
    marked = pc.fill_null(pc.starts_with(documents, _BYTE_ORDER_MARK), False)
    if pc.any(marked).as_py():
        documents = pc.if_else(marked, pc.utf8_slice_codeunits(documents, 1), documents)
    lists = one_array(select({"body": documents}, _SEVERAL)["events"])
    sizes = pc.list_value_length(lists)
    if sizes.null_count == len(sizes):
        return None
    several = sizes.is_valid().to_numpy(zero_copy_only=False)
    counts = sizes.fill_null(1).to_numpy()
    kept = np.setdiff1d(np.arange(len(bodies)), rows[several & (counts > 0)])
    message = np.concatenate([kept, np.repeat(rows[several], counts[several])])
    order = pa.array(np.argsort(message, kind="stable"))
    reasons = np.isin(kept, rows[several & (counts == 0)])
    body = pa.concat_arrays([copies(bodies, kept), pc.list_flatten(lists).cast(pa.binary())])
    empty = pc.if_else(pa.array(reasons), NO_EVENT, pa.scalar(None, pa.string()))
    unreadable = pa.concat_arrays([empty, pa.nulls(len(message) - len(kept), pa.string())])
    return EventBodies(np.sort(message, kind="stable"), body.take(order), unreadable.take(order))
