"""The files of a live job's output hold its rows, in the order in which it wrote them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.live_job.case import draw, live_rows
from tests.live_job.faults import RowOrder, inject
from tests.live_job.files import Format, row_of, write_live


def read_delta(folder: Path) -> pl.DataFrame:
    return pl.DataFrame(pa.table(DeltaTable(folder).to_pyarrow_table()))


READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    "json": pl.read_ndjson,
    "csv": pl.read_csv,
    "parquet": pl.read_parquet,
    "delta": read_delta,
}


@pytest.mark.parametrize("form", get_args(Format))
@pytest.mark.parametrize("is_shuffled", [False, True])
def test_the_files_hold_the_rows(tmp_path: Path, form: Format, is_shuffled: bool) -> None:
    case = draw(3, "tumbling")
    rows = live_rows(inject(case, [RowOrder(1)]) if is_shuffled else case)
    write_live(tmp_path, rows, form)
    files = [tmp_path] if form == "delta" else sorted(tmp_path.rglob(f"*.{form}"), key=lambda path: path.name)
    assert [row_of(record) for path in files for record in records(READERS[form](path))] == rows


def records(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the records of a file; printed times become times."""
    if frame["windowEnd"].dtype == pl.String:
        frame = frame.with_columns(
            pl.col("windowEnd").str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="us", time_zone="UTC")
        )
    return frame.to_dicts()
