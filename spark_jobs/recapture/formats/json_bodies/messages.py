"""JSON messages: one object, an array of objects, or objects in lines."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recapture.formats.duckdb_sql import one_array, select, utf8
from recapture.formats.messages import NO_EVENT, EventBodies
from recapture.formats.views import copied, copies

_BYTE_ORDER_MARK = "\ufeff"
_SEVERAL = r"""
    WITH read AS (
        SELECT body, list_filter(string_split(body, chr(10)), lambda line: trim(line, ' ' || chr(9) || chr(13)) <> '')
            AS lines
        FROM bodies
    )
    SELECT CASE
        WHEN json_valid(body) THEN
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
        return None

    def split(self, bodies: pa.Array, malformed: pa.Array) -> EventBodies | None:
        rows = np.flatnonzero(malformed.is_valid())
        documents = utf8(copies(bodies, rows))
        marked = pc.fill_null(pc.starts_with(documents, _BYTE_ORDER_MARK), False)
        if pc.any(marked).as_py():
            documents = pc.if_else(marked, pc.utf8_slice_codeunits(documents, 1), documents)
        lists = one_array(select({"body": documents}, _SEVERAL)["events"])
        is_list = np.asarray(lists.is_valid())
        if not is_list.any():
            return None
        counts = np.ones(len(bodies), np.int64)
        sizes = pc.list_value_length(lists).fill_null(1).to_numpy()
        counts[rows] = np.maximum(sizes, 1)
        return _spread(bodies, rows[is_list], lists.filter(pa.array(is_list)), counts)


def _spread(bodies: pa.Array, rows: np.ndarray, lists: pa.Array, counts: np.ndarray) -> EventBodies:
    """Return the bodies, with those at `rows` replaced by what is in their lists; an empty list keeps its body."""
    message = np.repeat(np.arange(len(bodies)), counts)
    events = copied(bodies).take(pa.array(message))
    replaced = np.isin(message, rows[pc.greater(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)])
    body = pc.replace_with_mask(events, pa.array(replaced), pc.list_flatten(lists).cast(pa.binary()))
    is_empty = np.isin(message, rows[pc.equal(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)])
    unreadable = pc.if_else(pa.array(is_empty), NO_EVENT, pa.scalar(None, pa.string())) if is_empty.any() else None
    return EventBodies(message, body, unreadable)
