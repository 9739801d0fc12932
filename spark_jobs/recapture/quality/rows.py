"""The rows that an audit judges: Parquet files on the local disk, read as pandas frames of few columns or few rows.

A frame may hold only a part of the rows. Its column types and index numbers are still those of one frame with all rows.
Times without a zone are UTC.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    import pandas as pd

MOST_KEYS = 4
"""Largest number of columns that may identify a row."""
FRAME_ROWS = 250_000
"""Number of rows in a partial frame. Great Expectations judges some conditions one Python object at a time."""


@dataclass(frozen=True)
class SliceFile:
    """Rows of one slice: the Parquet file, and the start of the slice (aware)."""

    path: Path
    slice_start: datetime


@dataclass(frozen=True)
class Rows:
    """Rows of an output, with the columns of its files and then `slice_column`."""

    schema: pa.Schema
    slice_column: str
    files: Sequence[SliceFile]
    frame_rows: int = FRAME_ROWS
    history: Sequence[SliceFile] = ()
    """Published files of earlier slices, in the order of the slices."""

    def with_history(self, columns: Collection[str]) -> Rows:
        """Return the rows of the earlier slices, and then these.

        A slice that lacks one of the columns was computed with another query: its rows cannot be compared.
        """
        needed = {*columns} - {self.slice_column}
        history = [file for file in self.history if needed.issubset(pq.read_schema(file.path).names)]
        return replace(self, files=(*history, *self.files), history=())

    @property
    def columns(self) -> list[str]:
        """Names of all columns, `slice_column` last."""
        return [*self.schema.names, self.slice_column]

    @cached_property
    def count(self) -> int:
        """Number of rows."""
        return sum(pq.read_metadata(file.path).num_rows for file in self.files)

    def empty_frame(self) -> pd.DataFrame:
        """Return a frame with all columns and no rows."""
        return self._frame(self._schema(self.columns).empty_table(), 0)

    def whole(self, columns: Collection[str]) -> pd.DataFrame:
        """Return a frame with all rows. Equal strings share one Python object."""
        import pandas as pd

        index = pd.RangeIndex(self.count)
        return pd.DataFrame({name: self._column(name) for name in self._known(columns)}, index=index, copy=False)

    def frames(self, columns: Collection[str]) -> Iterator[pd.DataFrame]:
        """Yield all rows in order, in frames of about `frame_rows`."""
        known, start = self._known(columns), 0
        if not known:
            yield self.whole(())
        for table in self._tables(known) if known else ():
            yield self._frame(table, start)
            start += table.num_rows

    def frames_by_key(self, columns: Collection[str], key: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield all rows in frames of about `frame_rows`. Rows with equal values of `key` are in the same frame."""
        count = -(-self.count // self.frame_rows)
        if count < 2 or not key:
            yield from self.frames(columns)
            return
        frame_of = np.concatenate([_bucket(frame, count) for frame in self.frames(key)])
        for number in range(count):
            tables, start = [], 0
            for table in self._tables(self._known(columns)):
                tables.append(table.filter(pa.array(frame_of[start : start + table.num_rows] == number)))
                start += table.num_rows
            frame = self._frame(pa.concat_tables(tables), 0)
            frame.index = np.flatnonzero(frame_of == number)
            yield frame

    @property
    def key_columns(self) -> list[str]:
        """Columns that may identify a row: those of times and strings."""
        is_key = (pa.types.is_timestamp, pa.types.is_string)
        return [field.name for field in self.schema if any(check(field.type) for check in is_key)][:MOST_KEYS]

    def at(self, places: Sequence[int], columns: Collection[str]) -> list[dict[str, Any]]:
        """Return the rows with these places among all rows, in this order; a place that there is not is left out."""
        known, start = self._known(columns), 0
        rows: dict[int, dict[str, Any]] = {}
        for table in self._tables(known) if places else ():
            for place in places:
                if start <= place < start + table.num_rows:
                    (rows[place],) = table.slice(place - start, 1).to_pylist()
            start += table.num_rows
        return [rows[place] for place in places if place in rows]

    def _known(self, columns: Collection[str]) -> list[str]:
        return [name for name in self.columns if name in columns]

    def _schema(self, columns: Sequence[str]) -> pa.Schema:
        slice_field = pa.field(self.slice_column, pa.timestamp("us", tz="UTC"))
        return pa.schema([slice_field if name == self.slice_column else self.schema.field(name) for name in columns])

    def _tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield tables of `frame_rows` rows; the last one may have fewer."""
        pending: list[pa.RecordBatch] = []
        rows = 0
        for batch in self._batches(columns):
            while rows + batch.num_rows >= self.frame_rows:
                head = self.frame_rows - rows
                yield pa.Table.from_batches([*pending, batch.slice(0, head)])
                batch, pending, rows = batch.slice(head), [], 0
            if batch.num_rows:
                pending.append(batch)
                rows += batch.num_rows
        if rows:
            yield pa.Table.from_batches(pending)

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        schema = self._schema(columns)
        stored = [name for name in columns if name != self.slice_column]
        for file in self.files:
            start = pa.scalar(file.slice_start, pa.timestamp("us", tz="UTC"))
            with pq.ParquetFile(file.path) as parquet:
                for batch in parquet.iter_batches(self.frame_rows, columns=stored):
                    starts = pa.repeat(start, batch.num_rows)
                    values = [starts if name == self.slice_column else batch.column(name) for name in columns]
                    yield pa.record_batch(values, schema=schema)

    @cached_property
    def _with_nulls(self) -> frozenset[str]:
        """Names of the integer and boolean columns with nulls, which have another type in pandas."""
        plain = (pa.types.is_integer, pa.types.is_boolean)
        names = [field.name for field in self.schema if any(is_plain(field.type) for is_plain in plain)]
        return frozenset().union(*(_with_nulls_in(file.path, names) for file in self.files if names))

    def _frame(self, table: pa.Table, start: int) -> pd.DataFrame:
        """Return a table as a frame whose index begins at `start`."""
        import pandas as pd

        frame = table.to_pandas()
        frame.index = pd.RangeIndex(start, start + table.num_rows)
        for name in frame.select_dtypes("datetime"):
            frame[name] = frame[name].dt.tz_localize("UTC")
        for name in self._with_nulls.intersection(table.column_names):
            whole_number = pa.types.is_integer(table.schema.field(name).type)
            frame[name] = frame[name].astype("float64" if whole_number else object)
        return frame

    def _column(self, name: str) -> pd.Series:
        """Return a column of all rows, with its values in memory only once."""
        import pandas as pd

        dtype = self._frame(self._schema([name]).empty_table(), 0)[name].dtype
        has_zone = isinstance(dtype, pd.DatetimeTZDtype)
        values = np.empty(self.count, f"datetime64[{dtype.unit}]" if has_zone else dtype)
        shared: dict[object, object] = {}
        index = pd.RangeIndex(self.count)
        start = 0
        for table in self._tables([name]):
            column = self._frame(table, start)[name]
            if pa.types.is_string(table.schema.field(name).type):
                column = _shared(table.column(name), shared)
            values[start : start + table.num_rows] = column.to_numpy(values.dtype)
            start += table.num_rows
        series = pd.Series(values, index, copy=False)
        return series.dt.tz_localize("UTC") if has_zone else series


def _with_nulls_in(path: Path, names: Collection[str]) -> set[str]:
    """Return the columns of a file that have nulls, among these. Those without statistics are read."""
    with pq.ParquetFile(path) as file:
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
        chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
        statistics_by_name = [
            (chunk.path_in_schema, chunk.statistics) for chunk in chunks if chunk.path_in_schema in names
        ]
        unknown = [
            name for name, statistics in statistics_by_name if statistics is None or not statistics.has_null_count
        ]
        with_nulls = {name for name, statistics in statistics_by_name if name not in unknown and statistics.null_count}
        for batch in file.iter_batches(columns=[*set(unknown)]) if unknown else ():
            with_nulls.update(name for name in unknown if batch.column(name).null_count)
    return with_nulls


def _shared(column: pa.ChunkedArray, known: dict[object, object]) -> pd.Series:
    """Return texts as Python objects, one object for equal texts; add the new ones to `known`."""
    import pandas as pd

    encoded = column.combine_chunks().dictionary_encode()
    texts = np.array([known.setdefault(text, text) for text in encoded.dictionary.to_pylist()] + [None], object)
    codes = pc.fill_null(encoded.indices, len(texts) - 1).to_numpy()
    return pd.Series(texts[codes], dtype=object)


def _bucket(frame: pd.DataFrame, count: int) -> np.ndarray:
    """Return a number below `count` for each row. Rows that pandas considers equal have the same number."""
    import pandas as pd

    for name in frame.select_dtypes("float"):
        frame[name] = (frame[name] + 0.0).where(frame[name].notna())
    return (pd.util.hash_pandas_object(frame, index=False).to_numpy() % count).astype(np.uint32)
