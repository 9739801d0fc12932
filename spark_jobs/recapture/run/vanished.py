"""Find the keys that disappear from the rows of an output: those that each of the three slices before still had."""

import io
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from recapture.definition.sections import Output
from recapture.quality.key_checks import VanishedKeys
from recapture.run.published import published_files
from recapture.run.staged import staged_content
from recapture.run.tables import tables_of
from recapture.run_files.computed import StagedSlice
from recapture.run_files.planned import PlannedRun
from recapture.time_model import ticks

SLICES_BEFORE = 3
"""Number of slices right before that must have a key."""
MOST_ROWS = 500_000
"""Largest number of rows of a slice of which the keys are looked at."""
_SHOWN = 20


def vanished_keys(
    run: PlannedRun, output: Output, staged: Sequence[StagedSlice]
) -> tuple[list[VanishedKeys], str | None]:
    """Return the keys that disappear in slices of an output, and why no slice could be judged, None if one could."""
    keys = run.pipeline.compiled(output).keys
    if not keys:
        return [], "the rows have no column that is a key of GROUP BY"
    if any(file.rows > MOST_ROWS for file in staged):
        return [], f"a slice has more than {MOST_ROWS:,} rows"
    first = next(iter(run.slices.values())).slice
    length = first.end - first.start
    before = [first.start - length * distance for distance in range(SLICES_BEFORE, 0, -1)]
    published = published_files(tables_of(run.pipeline).others[output.alias], before)
    earlier: deque[pa.Array] = deque(maxlen=SLICES_BEFORE)
    for start in map(ticks.to_text, before):
        if start in published and (slice_keys := _keys(published[start], keys)) is not None:
            earlier.append(slice_keys)
        else:
            earlier.clear()
    vanished: list[VanishedKeys] = []
    is_judged = False
    for file in staged:
        present = _keys(staged_content(output, file, run.id), keys)
        assert present is not None, "the rows of a run have the keys of its query"
        if len(earlier) == SLICES_BEFORE:
            is_judged = True
            vanished += _vanished(file.slice_start, earlier, present)
        earlier.append(present)
    return vanished, None if is_judged else f"fewer than {SLICES_BEFORE} slices right before are published"


def _vanished(start: str, earlier: Iterable[pa.Array], present: pa.Array) -> Iterator[VanishedKeys]:
    """Yield the keys that all of `earlier` have, and that are not present in a slice."""
    first, *others = earlier
    for other in others:
        first = first.filter(pc.is_in(first, value_set=other))
    gone = first.filter(pc.invert(pc.is_in(first, value_set=present)))
    if len(gone):
        yield VanishedKeys(start, tuple(gone.sort()[:_SHOWN].to_pylist()), len(gone))


def _keys(content: bytes, columns: Sequence[str]) -> pa.Array | None:
    """Return the distinct keys of the rows in a Parquet file, each as one string; None if it lacks a column of them."""
    with pq.ParquetFile(io.BytesIO(content)) as file:
        if not set(columns).issubset(file.schema_arrow.names):
            return None
        table = file.read(list(columns))
    parts = [pc.cast(table[column], pa.string()) for column in columns]
    joined = pc.binary_join_element_wise(*parts, ", ", null_handling="replace", null_replacement="NULL")
    return pc.unique(joined)
