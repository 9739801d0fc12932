"""JSON messages: one object, an array of objects, or objects in lines."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recapture.formats.duckdb_sql import one_array, select, utf8
from recapture.formats.messages import NO_EVENT, EventBodies
from recapture.formats.views import copies

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
