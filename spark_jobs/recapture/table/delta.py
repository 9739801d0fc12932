"""Read and replace the files of a Delta table in which each slice holds at most one file.

The table's snapshot says what a slice holds. The snapshot comes from the newest checkpoint and the few commits after
it, so its cost does not grow with the number of commits.
"""

import json
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
"""The key of our entry in a commit's metadata."""
SLICE = "slice_start"
PROPERTIES: dict[str, str | None] = {"delta.checkpointInterval": "10"}
"""Reading a table costs one checkpoint and at most nine commits."""
_NO_FILES = pa.table({name: pa.array([], pa.string()) for name in ("path", SLICE)})


@dataclass(frozen=True)
class Table:
    """Where a Delta table is, and its schema."""

    url: str
    schema: pa.Schema
    """Without slice_start."""


@dataclass(frozen=True)
class File:
    """The Parquet file of one slice."""

    path: str
    """Relative to the table; it names the content, so equal paths are equal files."""
    size: int
    """Bytes."""
    rows: int
    values: Mapping[str, str | int | None] = field(default_factory=dict)
    """The columns of a file of one row that the table's snapshot shows without reading the file."""


class OpenTable:
    """A table as it was when it was last read. Opening it reads it; it need not exist."""

    def __init__(self, table: Table) -> None:
        """Raises RunError if the storage refuses, DefinitionError if the table has other columns."""
        self.table = table
        self._delta: DeltaTable | None = None
        self._files = _NO_FILES
        self._open()

    @property
    def version(self) -> int | None:
        """None where there is no table."""
        return None if self._delta is None else self._delta.version()

    def refresh(self) -> None:
        """Read the table again. Raises RunError if the storage refuses."""
        if self._delta is None:
            self._open()
            return
        with _refusals(self.table.url):
            self._delta.update_incremental()
        self._files = _files(self._delta)

    def paths(self, slice_starts: Collection[str]) -> dict[str, tuple[str, ...]]:
        """Return the paths that slices hold, by slice_start; slices that hold nothing are left out."""
        wanted = pc.is_in(self._files[SLICE], value_set=pa.array(sorted(slice_starts), pa.string()))
        held: dict[str, tuple[str, ...]] = {}
        for row in self._files.select(["path", SLICE]).filter(wanted).to_pylist():
            held[row[SLICE]] = (*held.get(row[SLICE], ()), row["path"])
        return held

    def slices(self) -> dict[str, dict[str, Any]]:
        """Return all slices that hold a file, in order: its `path`, its `rows` and its `File.values`."""
        names = {name: name.removeprefix("min.") for name in self._files.column_names if name.startswith("min.")}
        names |= {"path": "path", "num_records": "rows"}
        return {row[SLICE]: {to: row.get(name) for name, to in names.items()} for row in self._files.to_pylist()}

    def commit(self, files: Mapping[str, File | None], metadata: Mapping[str, Any]) -> bool:
        """Let each slice hold its file and nothing else, in one commit; None empties a slice.

        Returns False if another writer committed since the table was read. Raises RunError if the storage refuses;
        whether the commit took place is then unknown. The table must exist.
        """
        assert self._delta is not None
        try:
            with _refusals(self.table.url):
                self._delta.create_write_transaction(
                    [_add(start, file) for start, file in files.items() if file is not None],
                    "overwrite",
                    self._delta.schema(),
                    partition_by=[SLICE],
                    partition_filters=[(SLICE, "in", [_partition_value(start) for start in files])],
                    commit_properties=CommitProperties({METADATA: json.dumps(metadata)}, max_commit_retries=0),
                )
        except CommitFailedError:
            return False
        return True

    def _open(self) -> None:
        try:
            with _refusals(self.table.url):
                self._delta = DeltaTable(
                    delta_table_uri(self.table.url), storage_options=delta_storage_options(self.table.url)
                )
        except TableNotFoundError:
            return
        _require_columns(self._delta, self.table)
        self._files = _files(self._delta)

    def create(self) -> None:
        """Create the table unless another writer has, and read it."""
        url = self.table.url
        try:
            with _refusals(url):
                DeltaTable.create(
                    delta_table_uri(url),
                    _schema(self.table),
                    mode="ignore",
                    partition_by=[SLICE],
                    configuration=PROPERTIES,
                    storage_options=delta_storage_options(url),
                    commit_properties=CommitProperties(max_commit_retries=0),
                )
        except (CommitFailedError, RunError):
            self._open()
            if self._delta is None:
                raise
        else:
            self._open()


@contextmanager
def _refusals(url: str) -> Iterator[None]:
    """Raise RunError for whatever the storage refuses, but for a lost race and a table that does not exist."""
    try:
        yield
    except (CommitFailedError, TableNotFoundError):
        raise
    except (DeltaError, OSError) as error:
        raise refusal_of_delta(url, error) from error


def _files(delta: DeltaTable) -> pa.Table:
    """Return a row for each file, in the order of the slices: path, num_records, min.COLUMN, and slice_start (text)."""
    files = pa.table(delta.get_add_actions(flatten=True))
    if not files.num_rows:
        return _NO_FILES
    instants = files[f"partition.{SLICE}"].cast(pa.timestamp("s", tz="UTC"))
    starts = pc.strftime(instants, format="%Y-%m-%dT%H:%M:%SZ")
    return files.append_column(SLICE, starts).sort_by([(SLICE, "ascending"), ("path", "ascending")])


def metadata_of(url: str, commits: int) -> list[dict[str, Any]]:
    """Return our entries in the metadata of a table's newest commits, newest first."""
    opened = DeltaTable(delta_table_uri(url), storage_options=delta_storage_options(url))
    return [json.loads(entry[METADATA]) for entry in opened.history(commits) if METADATA in entry]


def _require_columns(found: DeltaTable, table: Table) -> None:
    has = {field.name: _type_name(field) for field in found.schema().fields}
    wants = {field.name: _type_name(field) for field in _schema(table).fields}
    if has == wants:
        return
    differing = [
        f"{name} is {has.get(name, 'absent')} there and {wants.get(name, 'absent')} here"
        for name in [*wants, *(name for name in has if name not in wants)]
        if has.get(name) != wants.get(name)
    ]
    raise DefinitionError(
        f"the table {table.url} has other columns than what is to be published: {'; '.join(differing)}; "
        "publish to a new table"
    )


def _schema(table: Table) -> Schema:
    return Schema.from_arrow(table.schema.append(pa.field(SLICE, pa.timestamp("us", tz="UTC"))))


def _type_name(field: Field) -> str:
    return field.type.type if isinstance(field.type, PrimitiveType) else str(field.type)


def _add(slice_start: str, file: File) -> AddAction:
    known = {name: value for name, value in file.values.items() if value is not None}
    stats: dict[str, Any] = {"numRecords": file.rows}
    if file.values:
        nulls = {name: int(value is None) for name, value in file.values.items()}
        stats |= {"minValues": known, "maxValues": known, "nullCount": nulls}
    return AddAction(
        path=file.path,
        size=file.size,
        partition_values={SLICE: _partition_value(slice_start)},
        modification_time=int(time.time() * 1000),
        data_change=True,
        stats=json.dumps(stats),
    )


def _partition_value(slice_start: str) -> str:
    """Spell a timestamp partition as Delta does: 2026-03-01 10:00:00."""
    return slice_start.replace("T", " ").removesuffix("Z")
