"""Rows of the table of verdicts: the events of a slice that are not on time, with the numbers behind their verdicts."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.ordering.chunk_judge import JudgedChunk
from recapture.ordering.chunks import Chunk
from recapture.ordering.pushers import Pushers
from recapture.time_model.metrics import VERDICTS
from recapture.time_model.policies import BEFORE_EVERYTHING, Judged, Policies
from recapture.time_model.ticks import TICKS_PER_MICROSECOND, TICKS_PER_SECOND, UNIX_EPOCH
from recapture.time_model.verdicts import Verdict

_TIME = pa.timestamp("us", tz="UTC")
_NAME = pa.dictionary(pa.int32(), pa.string())
"""Type of strings that many rows share, while a task collects rows."""
_COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("sequence_number", pa.int64()),
    ("place", pa.int64()),
    ("blob", _NAME),
    ("arrival", _TIME),
    ("time", _TIME),
    ("system_timestamp", _TIME),
    ("verdict", _NAME),
    ("reason", _NAME),
    ("late_seconds", pa.float64()),
    ("behind_seconds", pa.float64()),
    ("watermark", _TIME),
    ("pushed_by_number", pa.int64()),
    ("pushed_by_place", pa.int64()),
    ("pushed_by_blob", _NAME),
)
COLLECTED_SCHEMA = pa.schema(_COLUMNS)
"""Schema of the rows of a partition, as a task collects them."""
VERDICTS_SCHEMA = pa.schema(
    [
        ("input", pa.string()),
        ("partition", pa.string()),
        *((name, pa.string() if type_ == _NAME else type_) for name, type_ in _COLUMNS),
    ]
)
"""Schema of the table of verdicts, without slice_start.

An event has a sequence number or, if it has none, a `place`: its index in the blob, from 0. `late_seconds` is its
arrival less its time, and `behind_seconds` how far its time was below the largest one so far when it reached the
disorder rule. Only an event that is out of order has a `watermark`, and the event that had pushed it.
"""


def collected(
    chunk: Chunk, judgements: JudgedChunk, policies: Policies | None, pushers: Pushers
) -> tuple[NDArray[np.intp], pa.RecordBatch]:
    """Return which events of the next chunk of a partition are not on time, and their rows with COLLECTED_SCHEMA."""
    judged, reasons, timed = judgements
    rows = np.flatnonzero(judged.verdict != Verdict.ON_TIME)
    out_of_order = judged.out_of_order[rows]
    pushed = pushers.observe(chunk, judged, rows[out_of_order])
    blobs = pa.array([pinned.blob.name for pinned in chunk.blobs], pa.string())
    numbers, places = chunk.numbers_and_places(rows)
    columns = {
        "sequence_number": numbers,
        "place": places,
        "blob": pa.DictionaryArray.from_arrays(pa.array(chunk.blob_index[rows], pa.int32()), blobs),
        "arrival": _times(chunk.arrival[rows]),
        "system_timestamp": _times(judged.system_timestamp[rows], ~judged.processed[rows]),
        "verdict": pa.DictionaryArray.from_arrays(pa.array(judged.verdict[rows], pa.int32()), list(VERDICTS)),
        "reason": reasons.take(pa.array(rows)).cast(pa.string()),
    }
    if policies is not None and timed is not None:
        has_time, behind = timed.has_time[rows], judged.behind[rows]
        late = chunk.arrival[rows] - timed.time[rows]
        reaches = judged.largest_time[rows] != BEFORE_EVERYTHING
        columns["time"] = _times(timed.time[rows], ~has_time)
        columns["late_seconds"] = pa.array(late / TICKS_PER_SECOND, mask=~has_time)
        columns["behind_seconds"] = pa.array(behind / TICKS_PER_SECOND, mask=~reaches)
        watermark = judged.largest_time[rows] - policies.out_of_order_tolerance
        columns["watermark"] = _times(np.where(out_of_order, watermark, 0), ~out_of_order)
        columns["reason"] = pc.coalesce(columns["reason"], _reasons(policies, judged, rows))
        place = pa.array(np.cumsum(out_of_order) - 1, mask=~out_of_order)
        columns |= {f"pushed_by_{name}": values for name, values in vars(pushed.taken(place)).items()}
    arrays = [_as(columns.get(field.name), field.type, len(rows)) for field in COLLECTED_SCHEMA]
    return rows, pa.RecordBatch.from_arrays(arrays, schema=COLLECTED_SCHEMA)


def verdicts_table(alias: str, partition: str, batches: list[pa.RecordBatch]) -> pa.Table:
    """Return what was collected of a slice and partition, with VERDICTS_SCHEMA."""
    table = pa.Table.from_batches(batches, COLLECTED_SCHEMA)
    names = [pa.repeat(name, len(table)) for name in (alias, partition)]
    return pa.table([*names, *table.columns], names=VERDICTS_SCHEMA.names).cast(VERDICTS_SCHEMA)


def _as(values: pa.Array | None, type_: pa.DataType, count: int) -> pa.Array:
    """Return a column in its type; NULL if there are no values."""
    if values is None:
        return pa.nulls(count, type_)
    return values.dictionary_encode().cast(type_) if type_ == _NAME else values


def _times(times: NDArray[np.int64], is_null: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return times in ticks as timestamps, truncated to microseconds."""
    return pa.array((times - UNIX_EPOCH) // TICKS_PER_MICROSECOND, mask=is_null).cast(_TIME)


def _reasons(policies: Policies, judged: Judged, rows: NDArray[np.intp]) -> pa.Array:
    """Return which limits the events exceed (string); NULL if none."""
    limits = (
        (judged.early, "beyond the early window", policies.early_window),
        (judged.late, "beyond the late tolerance", policies.late_tolerance),
        (judged.out_of_order, "beyond the out-of-order tolerance", policies.out_of_order_tolerance),
    )
    reasons = pa.nulls(len(rows), pa.string())
    for exceeds, what, limit in limits:
        if limit is not None:
            own = pc.if_else(pa.array(exceeds[rows]), f"{what} of {_seconds(limit)} s", None)
            reasons = pc.coalesce(pc.binary_join_element_wise(reasons, own, "; "), reasons, own)
    return reasons


def _seconds(ticks: int) -> str:
    return f"{ticks / TICKS_PER_SECOND:g}"
