"""Runs of sorted rows, merged in a bounded memory: the file has the same bytes as that of all rows at once."""

import itertools
import math
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from recapture.execute.sorted_runs import Run, merged, write_run
from recapture.ordering.row_order import sorted_rows
from recapture.storage import open_container
from recapture.table.files import write_slice_file, write_sorted_slice_file

SCHEMA = pa.schema([("s", pa.string()), ("f", pa.float64()), ("n", pa.int64()), ("b", pa.bool_())])
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, "", "a", "ä", "b"]),
        st.sampled_from([None, 0.0, -0.0, math.nan, -math.nan, -math.inf, 1.5]),
        st.none() | st.integers(-3, 3),
        st.sampled_from([None, False, True]),
    ),
    max_size=60,
)


def runs_of(parts: list[pa.Table], folder: Path) -> list[Run]:
    return [write_run(folder / f"{number}.arrow", part, 0) for number, part in enumerate(parts) if len(part)]


@example([(None, None, None, None)] * 2 + [("ä", None, 0, None)] * 2, [3], 1, 1)
@given(ROWS, st.lists(st.integers(0, 60), max_size=4), st.integers(1, 20), st.integers(1, 7))
def test_runs_are_merged_as_all_rows_are_sorted(
    rows: list[tuple[object, ...]], cuts: list[int], most: int, step: int
) -> None:
    columns = zip(*rows, strict=True) if rows else [[]] * 4
    whole = pa.table([pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], SCHEMA)
    bounds = [0, *sorted(cuts), len(whole)]
    parts = [whole.slice(start, max(end - start, 0)) for start, end in itertools.pairwise(bounds)]
    with TemporaryDirectory() as folder:
        runs = runs_of(parts, Path(folder))
        tables = [table.combine_chunks() for table in merged(runs, most, step)] if runs else []
    together = pa.concat_tables([SCHEMA.empty_table(), *tables]).combine_chunks()
    # By representation: -0.0 and NaN must be in the same places.
    assert repr(together.to_pylist()) == repr(sorted_rows(whole).to_pylist())


def test_a_merged_file_has_the_same_bytes(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    count = 2_300_000
    devices = pa.array([f"device-{number}" for number in range(1000)]).take(pa.array(random.integers(0, 1000, count)))
    whole = pa.table({"d": devices, "x": random.normal(20, 5, count).round(2), "n": random.integers(0, 9, count)})
    table = open_container((tmp_path / "table").as_uri())
    expected = write_slice_file(table, 0, "0" * 64, sorted_rows(whole))
    runs = runs_of([whole.slice(start, 500_000) for start in range(0, count, 500_000)], tmp_path)
    rows = merged(runs, 1 << 18)
    assert write_sorted_slice_file(table, 0, "0" * 64, whole.schema, rows, tmp_path / "scratch") == expected
