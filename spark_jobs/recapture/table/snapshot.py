"""The files that the slices of a Delta table hold, as the table's snapshot shows them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from recapture.table.schema import SLICE_COLUMN

_SHOWN = {
    "path": pa.string(),
    "size_bytes": pa.int64(),
    "num_records": pa.int64(),
    "has_deletions": pa.bool_(),
    "logged_path": pa.string(),
}
"""Columns of a snapshot that say what a slice holds, and their types."""
_FEW = 64
"""Up to so many files, Python finds those of slices faster than Arrow does."""
_NO_FILES = pa.schema([*_SHOWN.items(), (SLICE_COLUMN, pa.string())])


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


@dataclass(frozen=True)
class HeldFile:
    """File of a slice as the table's snapshot shows it. Another program may have written it."""

    path: str
    """Path relative to the table, decoded."""
    size: int
    """Size in bytes."""
    rows: int | None
    """Number of rows, including deleted ones; None if the writer did not count them."""
    has_deletions: bool = False
    """Whether a deletion vector hides some of the rows."""
    logged_path: str = field(default="", compare=False)
    """Path as the log has it, with escaped characters."""

    def is_file(self, file: File) -> bool:
        """Return whether this is the file, with all its rows."""
        same = (self.path, self.size) == (file.path, file.size) and self.rows in (None, file.rows)
        return same and not self.has_deletions


@dataclass(frozen=True)
class Snapshot:
    """What the slices of a table hold in one version."""

    version: int | None = None
    """None if the table does not exist."""
    _files: pa.Table = field(default_factory=_NO_FILES.empty_table)
    """Rows of `_files_of`."""

    @classmethod
    def of(cls, delta: DeltaTable) -> Self:
        """Return the snapshot of the version that was read."""
        return cls(delta.version(), _files_of(delta))

    @property
    def starts(self) -> list[str]:
        """Return the slices that hold a file."""
        starts: list[str] = self._files[SLICE_COLUMN].unique().to_pylist()
        return starts

    def held(self, slice_starts: Collection[str] | None = None) -> dict[str, tuple[HeldFile, ...]]:
        """Return the files that slices hold, by slice_start; see `OpenTable.held`."""
        files = self._files.select([SLICE_COLUMN, *_SHOWN])
        requested = None if slice_starts is None else set(slice_starts)
        if requested is not None and len(files) > _FEW:
            files = files.filter(pc.is_in(files[SLICE_COLUMN], value_set=pa.array(sorted(requested), pa.string())))
        held: dict[str, tuple[HeldFile, ...]] = {}
        for start, *shown in zip(*(column.to_pylist() for column in files.columns), strict=True):
            if requested is None or start in requested:
                held[start] = (*held.get(start, ()), HeldFile(*shown))
        return held

    def slices(self) -> dict[str, dict[str, Any]]:
        """Return all slices that hold a file, with what is shown of it; see `OpenTable.slices`."""
        names = {name: name.removeprefix("min.") for name in self._files.column_names if name.startswith("min.")}
        names |= {"path": "path", "num_records": "rows"}
        columns = [self._files[name].to_pylist() for name in (SLICE_COLUMN, *names)]
        return {start: dict(zip(names.values(), row, strict=True)) for start, *row in zip(*columns, strict=True)}

    def values(self, columns: Iterable[str]) -> Iterator[tuple[Any, ...]]:
        """Yield slice_start and the values of these columns; see `OpenTable.shown_values`."""
        shown = set(self._files.column_names)
        nothing = pa.nulls(self._files.num_rows)
        values = (self._files[name] if name in shown else nothing for name in map("min.{}".format, columns))
        return zip(*(column.to_pylist() for column in (self._files[SLICE_COLUMN], *values)), strict=True)


def _files_of(delta: DeltaTable) -> pa.Table:
    """Return a row for each file, in the order of the slices.

    The columns are those of _SHOWN, min.COLUMN and slice_start (a string). Another program may have written a
    slice_start that is not the start of a slice, or null, which is the string "null".
    """
    files = pa.table(delta.get_add_actions(flatten=True))
    if not files.num_rows:
        return _NO_FILES.empty_table()
    instants = files[f"partition.{SLICE_COLUMN}"].cast(pa.timestamp("us", tz="UTC"))
    starts = pc.replace_substring(pc.strftime(instants, format="%Y-%m-%dT%H:%M:%SZ"), ".000000Z", "Z")
    starts = pc.fill_null(starts, "null")
    logged_paths, with_deletions = files["path"].cast(pa.string()), _with_deletions(delta)
    decoded = [unquote(path) for path in logged_paths.to_pylist()]
    paths, has_deletions = pa.array(decoded), pa.array([path in with_deletions for path in decoded])
    smallest = {name: files[name] for name in files.column_names if name.startswith("min.")}
    shown = (paths, files["size_bytes"], files["num_records"], has_deletions, logged_paths)
    columns = {**dict(zip(_SHOWN, shown, strict=True)), **smallest, SLICE_COLUMN: starts}
    return pa.table(columns).sort_by([(SLICE_COLUMN, "ascending"), ("path", "ascending")])


def _with_deletions(delta: DeltaTable) -> set[str]:
    """Return the decoded paths of the files that have a deletion vector."""
    if "deletionVectors" not in (delta.protocol().reader_features or ()):
        return set()
    uris = pa.table(delta.deletion_vectors().read_all())["filepath"].to_pylist()
    return {unquote(uri.removeprefix(delta.table_uri)).lstrip("/") for uri in uris}
