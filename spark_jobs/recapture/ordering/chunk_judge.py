"""Judge the events of a chunk: their numbers, their bodies, their times, and then the policies.

`ChunkJudge` carries the watermarks from one chunk of a partition to the next. A run and the commands that ask what
became of an event use the same functions, so they give the same verdicts.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recapture.formats.bodies import Bodies, Projection, first_reasons
from recapture.model import InputColumn, MetadataColumn, dateadd_fields, time_fields
from recapture.ordering.application_time import times_of
from recapture.ordering.chunks import Chunk
from recapture.ordering.profile import TimedEvents
from recapture.ordering.sequence import AscendingEvents
from recapture.ordering.sequence_partitions import PartitionedNumbers
from recapture.query.model import CompiledInput
from recapture.time_model.judging import LargestTimes, judge
from recapture.time_model.policies import Judged, Policies
from recapture.time_model.verdicts import Verdict


class JudgedChunk(NamedTuple):
    """What became of the events of a chunk."""

    judged: Judged
    reasons: pa.Array
    """Reason why an event is malformed or has no time (string), or NULL."""
    timed: TimedEvents | None
    """Times of the events; None without TIMESTAMP BY."""


@dataclass
class ChunkJudge:
    """Judges the events of one partition, chunk by chunk in arrival order."""

    compiled: CompiledInput
    policies: Policies | None
    """Policies of the input; None without TIMESTAMP BY."""
    largest_times: LargestTimes = field(default_factory=LargestTimes)

    def judge(self, chunk: Chunk, parsed: Bodies) -> JudgedChunk:
        """Judge the next chunk, which has no duplicates; `parsed` is what `parse_bodies` returns for it."""
        decoded = pc.is_null(parsed.malformed).to_numpy(zero_copy_only=False)
        if self.policies is None or self.compiled.timestamp_by is None:
            none = np.zeros(len(decoded), bool)
            verdict = np.where(decoded, Verdict.ON_TIME, Verdict.MALFORMED).astype(np.int8)
            nothing = np.zeros(len(decoded), np.int64)
            judged = Judged(verdict, chunk.arrival, none, none, none, chunk.arrival, nothing, nothing)
            return JudgedChunk(judged, parsed.malformed, None)
        times = times_of(self.compiled.timestamp_by, parsed, chunk.metadata)
        keys = columns_of(self.compiled.over, chunk, parsed)
        scope = scope_columns(chunk, keys)
        has_time = times.valid & decoded
        judged = judge(self.policies, self.largest_times, times.ticks, has_time, chunk.arrival, in_one(scope))
        judged.verdict[~decoded] = Verdict.MALFORMED
        reasons = first_reasons(parsed.malformed, times.reason)
        for name, values in keys.items():
            if values.null_count:
                missing = pc.if_else(pc.is_null(values), f"the OVER key {name} is missing or null", None)
                reasons = first_reasons(reasons, missing)
        has_time &= judged.verdict != Verdict.INVALID_TIMESTAMP
        return JudgedChunk(judged, reasons, TimedEvents(chunk, times.ticks, has_time, judged, scope))


def observe_numbers(chunk: Chunk, numbers: PartitionedNumbers) -> tuple[NDArray[np.bool_], list[AscendingEvents]]:
    """Return which events of the next chunk are duplicates, and the others in groups of ascending numbers."""
    if not chunk.numbered:
        return np.zeros(len(chunk), bool), []
    return numbers.observe(
        chunk.continuous_number, chunk.sequence_partition, chunk.blob_arrival_by_event, chunk.arrival, chunk.enqueued
    )


def parse_bodies(chunk: Chunk, compiled: CompiledInput, strings: Iterable[InputColumn] = ()) -> tuple[Chunk, Bodies]:
    """Return the events of a chunk, the columns that a query reads of their bodies, and the strings of TIMESTAMP BY.

    The chunk has no duplicates; what is returned has a row for each event of its messages.

    `strings` are more fields whose strings are returned; their values make no body malformed.
    """
    time = compiled.timestamp_by
    timestamp_fields = tuple(dict.fromkeys([*time_fields(time), *dateadd_fields(time), *strings]))
    return chunk.in_events(Projection(compiled.body_columns, timestamp_fields, compiled.columns_to_check))


def columns_of(columns: Iterable[InputColumn | MetadataColumn], chunk: Chunk, parsed: Bodies) -> dict[str, pa.Array]:
    """Return the values of columns by name."""
    return {
        column.name: parsed.columns[column] if isinstance(column, InputColumn) else chunk.metadata(column)
        for column in columns
    }


def scope_columns(chunk: Chunk, keys: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """Return what tells the scopes of a partition apart: the columns of the OVER key, and the sequence partition."""
    return keys if chunk.sequence_partition is None else keys | {"": pa.array(chunk.sequence_partition)}


def in_one(columns: dict[str, pa.Array]) -> pa.Array | None:
    """Return the columns of a scope's key as one; None without columns."""
    if len(columns) < 2:
        return next(iter(columns.values()), None)
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))
