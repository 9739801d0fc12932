"""Rows of the quarantine: events that no query can read, and damaged blobs."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.formats.views import copies
from recapture.ordering.chunks import Chunk
from recapture.ordering.decoding import DecodedBlob
from recapture.time_model.metrics import VERDICTS

QUARANTINE_SCHEMA = pa.schema(
    [
        ("input", pa.string()),
        ("partition", pa.string()),
        ("sequence_number", pa.int64()),
        ("place", pa.int64()),
        ("blob", pa.string()),
        ("etag", pa.string()),
        ("verdict", pa.string()),
        ("reason", pa.string()),
        ("body", pa.binary()),
    ]
)
"""Schema of the quarantine, without slice_start.

An event has a sequence number or, if it has none, a `place`: its index in the blob, from 0. A damaged blob has neither.
"""
DAMAGED = "damaged"
"""The verdict on a damaged blob."""


def event_rows(
    alias: str, partition: str, chunk: Chunk, rows: NDArray[np.intp], verdict: NDArray[np.int8], reasons: pa.Array
) -> pa.RecordBatch:
    """Return the rows of some events; `verdict` and `reasons` have an entry for each event of the chunk."""
    blobs = pa.array(chunk.blob_index[rows])
    columns = [
        pa.repeat(alias, len(rows)),
        pa.repeat(partition, len(rows)),
        *chunk.numbers_and_places(rows),
        pa.array([pinned.blob.name for pinned in chunk.blobs]).take(blobs),
        pa.array([pinned.blob.etag for pinned in chunk.blobs]).take(blobs),
        pa.array(VERDICTS).take(pa.array(verdict[rows])),
        reasons.take(pa.array(rows)),
        copies(chunk.body, rows),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=QUARANTINE_SCHEMA)


def blob_row(blob: DecodedBlob) -> pa.RecordBatch:
    """Return the row of a damaged blob."""
    assert blob.damage is not None
    row = {
        "input": blob.pinned.input,
        "partition": blob.pinned.partition,
        "blob": blob.pinned.blob.name,
        "etag": blob.pinned.blob.etag,
        "verdict": DAMAGED,
        "reason": blob.damage.reason,
        "body": blob.damage.content,
    }
    return pa.RecordBatch.from_pylist([row], schema=QUARANTINE_SCHEMA)
