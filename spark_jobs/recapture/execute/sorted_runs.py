"""Sorted rows in files, and their merge in a bounded memory: as `sorted_rows` sorts all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recapture.ordering.row_order import in_row_order, row_order, sorted_rows

Int64s = NDArray[np.int64]

MERGED_AT_ONCE = 1 << 20
"""Approximate number of rows that a merge holds."""
_BATCH_ROWS = 1 << 16
_STEP = 1 << 12
"""Distance of the rows of a run that are compared first, to find which parts of the runs belong together."""
_PLACE = "@place"


@dataclass(frozen=True)
class Run:
    """Sorted rows in an Arrow file."""

    path: Path
    rows: int
    unanchored: int
    """Number of its rows that belong to sessions cut by the rule for sparse streams."""


def write_run(path: Path, rows: pa.Table, unanchored: int) -> Run:
    """Sort rows and write them."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(sorted_rows(rows), max_chunksize=_BATCH_ROWS)
    return Run(path, len(rows), unanchored)


def batches_of(run: Run) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a run in batches."""
    with pa.memory_map(str(run.path)) as file:
        reader = pa.ipc.open_file(file)
        for place in range(reader.num_record_batches):
            yield reader.get_batch(place)


def merged(runs: Sequence[Run], most: int = MERGED_AT_ONCE, step: int = _STEP) -> Iterator[pa.Table]:
    """Yield the rows of all runs, sorted, in tables of about `most` rows; memory holds `step` rows of each run, too."""
    maps = [pa.memory_map(str(run.path)) for run in runs]
    try:
        tables = [pa.ipc.open_file(file).read_all() for file in maps]
        yield from tables if len(tables) == 1 else _merged(tables, most, step)
    finally:
        for file in maps:
            file.close()


def _merged(runs: Sequence[pa.Table], most: int, step: int) -> Iterator[pa.Table]:
    """Yield the rows of sorted tables.

    Every `step`th row of each run is sorted first. What is not greater than one of these rows lies, in each run, before
    the run's next such row: it is sorted together, and the rest waits for the next round.
    """
    places = [np.arange(step - 1, len(run), step) for run in runs]
    samples = pa.concat_tables([run.take(pa.array(rows)) for run, rows in zip(runs, places, strict=True)])
    numbers = np.repeat(np.arange(len(runs)), [len(rows) for rows in places])[row_order(samples)]
    first_places = np.cumsum([0, *map(len, runs)])
    loaded, passed = np.zeros(len(runs), np.int64), np.zeros(len(runs), np.int64)
    lengths = np.diff(first_places)
    waiting = _placed(runs[0].slice(0, 0), 0)
    for start in range(0, len(numbers), max(1, most // step)):
        round_ = numbers[start : start + max(1, most // step)]
        passed += np.bincount(round_, minlength=len(runs))
        until = np.minimum(lengths, (passed + 1) * step)
        rows = _sorted(waiting, runs, loaded, until, first_places)
        last = int(round_[-1])
        place = first_places[last] + passed[last] * step - 1
        # Equal rows have no order of their own: the round before may have had this one.
        end = int(np.flatnonzero(rows[_PLACE].to_numpy() == place).max(initial=-1)) + 1
        yield rows.slice(0, end).drop_columns(_PLACE)
        waiting, loaded = rows.slice(end).combine_chunks(), until
    yield _sorted(waiting, runs, loaded, lengths, first_places).drop_columns(_PLACE)


def _sorted(
    waiting: pa.Table,
    runs: Sequence[pa.Table],
    loaded: Int64s,
    until: Int64s,
    first_places: Int64s,
) -> pa.Table:
    """Return rows that wait and the next rows of each run, sorted."""
    new = [
        _placed(run.slice(first, last - first), place + first)
        for run, first, last, place in zip(runs, loaded, until, first_places[:-1], strict=True)
    ]
    rows = pa.concat_tables([waiting, *new])
    return in_row_order(rows, row_order(rows.drop_columns(_PLACE)))


def _placed(rows: pa.Table, first: int) -> pa.Table:
    return rows.append_column(_PLACE, pa.array(np.arange(first, first + len(rows))))
