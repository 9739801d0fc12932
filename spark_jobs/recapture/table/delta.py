"""Read and replace the files of a Delta table in which each slice holds at most one file.

The table's snapshot says what a slice holds. The snapshot comes from the newest checkpoint and the few commits after
it, so its cost does not grow with the number of commits.
"""

import json
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Field, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction

from recapture.errors import DefinitionError, RunError
from recapture.storage import delta_storage_options, delta_table_uri
from recapture.storage.delta import refusal_of_delta

METADATA = "recapture"
"""Key of Recapture's entry in a commit's metadata."""
SLICE_COLUMN = "slice_start"
"""Name of the partition column."""
PROPERTIES: dict[str, str | None] = {"delta.checkpointInterval": "10"}
"""Properties of a new table. To open it, one checkpoint and at most nine commits are read."""
_NO_FILES = pa.table({name: pa.array([], pa.string()) for name in ("path", SLICE_COLUMN)})


@dataclass(frozen=True)
class Table:
    """Place and schema of a Delta table."""

    url: str
    schema: pa.Schema
    """Schema of the rows, without slice_start."""
    grows: bool = False
    """Whether the table may lack columns of the schema, which an older version did not have; a commit adds them."""


@dataclass(frozen=True)
class File:
    """Parquet file of one slice."""

    path: str
    """Path relative to the table. It identifies the content, so equal paths are equal files."""
    size: int
    """Size in bytes."""
    rows: int
    values: Mapping[str, str | int | None] = field(default_factory=dict)
    """Columns of a file of one row that the table's snapshot shows, so that the file need not be read."""


class OpenTable:
    """Table as it was when it was last read. Opening it reads it. The table need not exist."""

    def __init__(self, table: Table, environment: Mapping[str, str] = os.environ) -> None:
        """Read the table with the credentials of the environment.

        Raise RunError if the storage refuses, DefinitionError if the table has other columns.
        """
        self.table = table
        self._environment = environment
        self._delta: DeltaTable | None = None
        self._files = _NO_FILES
        self._open()

    @property
    def version(self) -> int | None:
        """Return the version of the table; None if it does not exist."""
        return None if self._delta is None else self._delta.version()

    def refresh(self) -> None:
        """Read the table again. Raise RunError if the storage refuses."""
        if self._delta is None:
            self._open()
            return
        with self._refusals():
            self._delta.update_incremental()
        self._files = _files(self._delta)

    def paths(self, slice_starts: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the paths that slices hold, by slice_start; slices that hold nothing are left out."""
        is_requested = pc.is_in(self._files[SLICE_COLUMN], value_set=pa.array(sorted(slice_starts), pa.string()))
        paths: dict[str, tuple[str, ...]] = {}
        for row in self._files.select(["path", SLICE_COLUMN]).filter(is_requested).to_pylist():
            paths[row[SLICE_COLUMN]] = (*paths.get(row[SLICE_COLUMN], ()), row["path"])
        return paths

    def slices(self) -> dict[str, dict[str, Any]]:
        """Return all slices that hold a file, in order: its `path`, its `rows` and its `File.values`."""
        names = {name: name.removeprefix("min.") for name in self._files.column_names if name.startswith("min.")}
        names |= {"path": "path", "num_records": "rows"}
        return {row[SLICE_COLUMN]: {to: row.get(name) for name, to in names.items()} for row in self._files.to_pylist()}

    def commit(self, files: Mapping[str, File | None], metadata: Mapping[str, Any]) -> bool:
        """Replace what the slices hold by their files, in one commit; None empties a slice.

        Return False if the table must be read again first, because another writer committed or columns were added;
        else True. Raise RunError if the storage refuses; whether the commit took place is then unknown. The table must
        exist.
        """
        assert self._delta is not None
        try:
            with self._refusals():
                if new := _new_columns(self._delta, self.table):
                    self._delta.alter.add_columns(new)
                    return False  # the table may hold other files by now
                self._delta.create_write_transaction(
                    [_add(start, file) for start, file in files.items() if file is not None],
                    "overwrite",
                    self._delta.schema(),
                    partition_by=[SLICE_COLUMN],
                    partition_filters=[(SLICE_COLUMN, "in", [_partition_value(start) for start in files])],
                    commit_properties=CommitProperties({METADATA: json.dumps(metadata)}, max_commit_retries=0),
                )
        except CommitFailedError:
            return False
        return True

    def _open(self) -> None:
        """Read the table if it exists. Raise DefinitionError if it has other columns."""
        try:
            with self._refusals():
                self._delta = DeltaTable(
                    delta_table_uri(self.table.url),
                    storage_options=delta_storage_options(self.table.url, self._environment),
                )
        except TableNotFoundError:
            return
        _require_columns(self._delta, self.table)
        self._files = _files(self._delta)

    def create(self) -> None:
        """Create the table unless another writer has, and read it."""
        url = self.table.url
        try:
            with self._refusals():
                DeltaTable.create(
                    delta_table_uri(url),
                    _schema(self.table),
                    mode="ignore",
                    partition_by=[SLICE_COLUMN],
                    configuration=PROPERTIES,
                    storage_options=delta_storage_options(url, self._environment),
                    commit_properties=CommitProperties(max_commit_retries=0),
                )
        except (CommitFailedError, RunError):
            self._open()
            if self._delta is None:
                raise
        else:
            self._open()

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Raise RunError if the storage refuses. A lost race and a table that does not exist keep their own errors."""
        try:
            yield
        except (CommitFailedError, TableNotFoundError):
            raise
        except (DeltaError, OSError) as error:
            raise refusal_of_delta(self.table.url, error, self._environment) from error


def _files(delta: DeltaTable) -> pa.Table:
    """Return a row for each file, in the order of the slices: path, num_records, min.COLUMN, and slice_start (text)."""
    files = pa.table(delta.get_add_actions(flatten=True))
    if not files.num_rows:
        return _NO_FILES
    instants = files[f"partition.{SLICE_COLUMN}"].cast(pa.timestamp("s", tz="UTC"))
    starts = pc.strftime(instants, format="%Y-%m-%dT%H:%M:%SZ")
    return files.append_column(SLICE_COLUMN, starts).sort_by([(SLICE_COLUMN, "ascending"), ("path", "ascending")])


def _require_columns(delta: DeltaTable, table: Table) -> None:
    """Raise DefinitionError if the table has other columns than its schema."""
    actual = {field.name: _type_name(field) for field in delta.schema().fields}
    expected = {field.name: _type_name(field) for field in _schema(table).fields}
    if table.grows:
        expected = {name: type_ for name, type_ in expected.items() if name in actual}
    if actual == expected:
        return
    differing = [
        f"{name} is {actual.get(name, 'absent')} in the table and {expected.get(name, 'absent')} in the rows"
        for name in [*expected, *(name for name in actual if name not in expected)]
        if actual.get(name) != expected.get(name)
    ]
    raise DefinitionError(
        f"the columns of table {table.url} differ from those of the rows to publish: {'; '.join(differing)}; "
        "publish to a new table"
    )


def _new_columns(delta: DeltaTable, table: Table) -> list[Field]:
    """Return the columns of the schema that the table lacks, if it may."""
    actual = {field.name for field in delta.schema().fields}
    return [field for field in _schema(table).fields if field.name not in actual] if table.grows else []


def _schema(table: Table) -> Schema:
    """Return the schema of the Delta table, with slice_start."""
    return Schema.from_arrow(table.schema.append(pa.field(SLICE_COLUMN, pa.timestamp("us", tz="UTC"))))


def _type_name(field: Field) -> str:
    return field.type.type if isinstance(field.type, PrimitiveType) else str(field.type)


def _add(slice_start: str, file: File) -> AddAction:
    """Return the action that adds a slice's file, with the file's values as its statistics."""
    values = {name: value for name, value in file.values.items() if value is not None}
    stats: dict[str, Any] = {"numRecords": file.rows}
    if file.values:
        nulls = {name: int(value is None) for name, value in file.values.items()}
        stats |= {"minValues": values, "maxValues": values, "nullCount": nulls}
    return AddAction(
        path=file.path,
        size=file.size,
        partition_values={SLICE_COLUMN: _partition_value(slice_start)},
        modification_time=int(time.time() * 1000),
        data_change=True,
        stats=json.dumps(stats),
    )


def _partition_value(slice_start: str) -> str:
    """Return the value of a timestamp partition as Delta writes it: 2026-03-01 10:00:00."""
    return slice_start.replace("T", " ").removesuffix("Z")
