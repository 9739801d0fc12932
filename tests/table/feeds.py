"""A table with a change data feed: its publications, and what readers see of the table and of its feed."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from recapture.storage import delta_storage_options, delta_table_uri, open_container
from recapture.table import publish
from recapture.table.delta import Table
from recapture.table.files import write_slice_file
from recapture.table.publications import SCHEMA, Publication
from recapture.table.publish import Outcome
from recapture.table.snapshot import File
from recapture.time_model import ticks
from tests.table.publishing import NINE, NOON

COLUMNS = pa.schema([("windowEnd", pa.timestamp("us", tz="UTC")), ("device", pa.string()), ("events", pa.float64())])
ROWS = "rows"
Row = tuple[Any, ...]
"""Row of a test. Its times are minutes after noon."""
Rows = Counter[tuple[str, str]]
"""Rows as readers see them, as text: the start of the slice, and the other values."""


@dataclass(frozen=True)
class Feed:
    """A pipeline with one table that matters."""

    url: str
    columns: pa.Schema = COLUMNS
    is_on: bool = True
    """Whether the pipeline turns on the feed."""

    @property
    def table_url(self) -> str:
        return f"{self.url}/rows"

    @property
    def tables(self) -> publish.Tables:
        table = Table(self.table_url, self.columns, "telemetry", change_feed=self.is_on)
        return publish.Tables(Table(f"{self.url}/publications", SCHEMA, "telemetry"), {ROWS: table})

    def publish(self, slices: Mapping[str, Sequence[Row]]) -> Outcome:
        """Publish rows of slices."""
        return publish.publish(self.tables, {start: self.publication(start, rows) for start, rows in slices.items()})

    def publication(self, start: str, rows: Sequence[Row]) -> Publication:
        """Stage rows of a slice. The run is named after the rows."""
        digest = hashlib.sha256(repr(rows).encode()).hexdigest()
        columns = zip(*rows, strict=True) if rows else [()] * len(self.columns)
        arrays = [_array(column, field.type) for column, field in zip(columns, self.columns, strict=True)]
        instant = ticks.from_datetime(datetime.fromisoformat(start))
        staged = pa.table(arrays, schema=self.columns)
        path, size = write_slice_file(open_container(self.table_url), instant, digest, staged)
        files = {ROWS: File(path, size, len(rows))}
        return Publication(digest[:8], "passed", NOON, digest, "manifest", "query", 7, 2, files)

    def rollback(self, *starts: str) -> Outcome:
        return publish.rollback(self.tables, starts or (NINE,))

    @property
    def is_created(self) -> bool:
        """Whether the table exists."""
        return DeltaTable.is_deltatable(delta_table_uri(self.table_url), delta_storage_options(self.table_url))

    def delta(self, version: int | None = None) -> DeltaTable:
        options = delta_storage_options(self.table_url)
        return DeltaTable(delta_table_uri(self.table_url), version=version, storage_options=options)

    def changes(self, version: int | None = None) -> list[tuple[Any, ...]]:
        """Return what the feed says of a version, of the newest one unless another is given.

        These are the kind of the change, the start of the slice and the values of the row.
        """
        number = self.delta().version() if version is None else version
        read = pa.table(self.delta().load_cdf(starting_version=number, ending_version=number).read_all())
        return [
            (row.pop("_change_type"), f"{row.pop('slice_start'):%Y-%m-%dT%H:%M:%SZ}", *_values(row, self.columns))
            for row in read.to_pylist()
        ]

    def shown(self, version: int | None = None) -> Rows:
        """Return the rows of a version."""
        read = pa.table(QueryBuilder().register("t", self.delta(version)).execute("SELECT * FROM t").read_all())
        return Counter(
            (f"{row.pop('slice_start'):%Y-%m-%dT%H:%M:%SZ}", repr(_values(row, self.columns)))
            for row in read.to_pylist()
        )


def _array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    is_time = pa.types.is_timestamp(type_)
    return pa.array([NOON + timedelta(minutes=value) if is_time else value for value in values], type_)


def _values(row: dict[str, Any], columns: pa.Schema) -> Row:
    values = (row[name] for name in columns.names)
    return tuple(value.minute if isinstance(value, datetime) else value for value in values)


def require_true_feed(feed: Feed, *versions: int) -> None:
    """Raise AssertionError unless the feed of each version is exactly the difference from the version before.

    Without versions, all of them are looked at: then the feed, replayed from the empty table, gives every version.
    """
    for version in versions or range(feed.delta().version() + 1):
        removed, added = Rows(), Rows()
        for kind, start, *values in feed.changes(version):
            (removed if kind in ("delete", "update_preimage") else added)[start, repr(tuple(values))] += 1
        before, after = feed.shown(version - 1) if version else Rows(), feed.shown(version)
        assert (removed, added) == (before - after, after - before), f"version {version}"


@contextmanager
def shared_comparisons(name: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield one connection for all comparisons of one thread: opening one takes longer than using it."""
    yield _connection()


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})
