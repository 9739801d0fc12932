"""Compare the files that slices of an output hold with other files of the same slices, one slice after another."""

import hashlib
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from recapture.errors import RunError
from recapture.model import AsaType
from recapture.quality.sentences import value_text
from recapture.storage import in_parallel, open_container
from recapture.storage.scratch import scratch_folder
from recapture.table.files import read_slice_file
from recapture.table.row_changes import comparisons
from recapture.table.snapshot import File
from recapture.table.unchanged import is_equal
from recapture.tools.diff.rows import ColumnChanges, ColumnTypes, Row, RowDifference, row_difference

MAX_EXAMPLES = 20
"""Largest number of rows that are shown of an output."""
MAX_BYTES_AT_ONCE = 64 << 20
"""Size of the files of several slices, in bytes, that are fetched together."""
_TYPE_NAMES: dict[str, str] = {
    "BIGINT": AsaType.BIGINT,
    "DOUBLE": AsaType.FLOAT,
    "VARCHAR": AsaType.STRING,
    "BOOLEAN": AsaType.BIT,
    "TIMESTAMP WITH TIME ZONE": AsaType.DATETIME,
}
"""ASA's names of the types that DuckDB reads from published files."""


@dataclass(frozen=True)
class StoredFile:
    """The Parquet file of a slice, in the folder of a table."""

    table: str
    """Address of the table."""
    file: File

    def content(self) -> bytes | None:
        """Return the content; None if the file is gone, damaged or not Parquet."""
        content = read_slice_file(open_container(self.table), self.file.path)
        try:
            if content is not None:
                pq.read_metadata(io.BytesIO(content))
        except (pa.ArrowException, OSError):
            return None
        return content


@dataclass(frozen=True)
class SliceFiles:
    """The files of a slice on both sides; None on a side that does not have the slice."""

    start: str
    """Start of the slice, ISO 8601."""
    before: StoredFile | None
    after: StoredFile | None

    @property
    def are_equal(self) -> bool:
        """Whether both files have the same bytes, judging by their names."""
        before, after = self.before, self.after
        return before is not None and after is not None and (before == after or is_equal(before.file, after.file))

    @property
    def size(self) -> int:
        """Size of the files in bytes."""
        return sum(side.file.size for side in (self.before, self.after) if side is not None)


@dataclass
class OutputDifference:
    """How the rows of an output differ in several slices."""

    alias: str
    key: tuple[str, ...]
    """Columns that identify a row; the times and strings of the rows if there are none."""
    equal: int = 0
    """Number of slices with equal rows."""
    new: int = 0
    """Number of slices that only the rows after have."""
    new_rows: int = 0
    """Number of the rows of these slices."""
    absent: int = 0
    """Number of slices that neither side has."""
    missing: list[str] = field(default_factory=list)
    """Slices that only the rows before have, by slice_start."""
    unreadable: list[str] = field(default_factory=list)
    """Slices with a file that is gone or damaged, by slice_start."""
    different: dict[str, RowDifference] = field(default_factory=dict)
    """Differences by slice_start, without examples."""
    rows_before: int = 0
    """Number of rows of all compared slices."""
    rows_after: int = 0
    pairs: list[tuple[str, Row | None, Row | None]] = field(default_factory=list)
    """The first changed rows, each with slice_start, and before and after."""
    unpaired: list[tuple[str, Row | None, Row | None]] = field(default_factory=list)
    """The first rows that only one side has, in the same form."""

    @property
    def is_empty(self) -> bool:
        """Whether every slice was compared, and all are equal."""
        return not (self.new or self.missing or self.unreadable or self.different)

    def add(self, start: str, difference: RowDifference) -> None:
        """Add the difference of a slice."""
        self.rows_before += difference.before
        self.rows_after += difference.after
        if difference.is_empty:
            self.equal += 1
            return
        for mine, rows in ((self.pairs, difference.pairs), (self.unpaired, difference.unpaired)):
            mine += [(start, *row) for row in rows[: MAX_EXAMPLES - len(mine)]]
        difference.pairs, difference.unpaired = [], []
        self.different[start] = difference

    def document(self) -> dict[str, Any]:
        """Return the difference in JSON types."""
        differences = self.different.values()
        counts = ("only_before", "only_after", "changed")
        return {
            "alias": self.alias,
            "key": list(self.key),
            "equal": self.is_empty,
            "slices": {
                "equal": self.equal,
                "different": len(self.different),
                "new": self.new,
                "absent": self.absent,
                "missing": len(self.missing),
                "unreadable": len(self.unreadable),
            },
            "rows": {
                "before": self.rows_before,
                "after": self.rows_after,
                **{name: sum(getattr(difference, name) for difference in differences) for name in counts},
                "new": self.new_rows,
            },
            "columns": [_column(name, changes) for name, changes in self._columns().items()],
            "types": self._types(),
            "by_slice": [
                {"slice_start": start, "before": difference.before, "after": difference.after}
                | {name: getattr(difference, name) for name in counts}
                for start, difference in self.different.items()
            ],
            "missing": self.missing,
            "unreadable": self.unreadable,
            **self._examples(),
        }

    def _columns(self) -> dict[str, ColumnChanges]:
        columns: dict[str, ColumnChanges] = {}
        for difference in self.different.values():
            for name, changes in difference.columns.items():
                columns.setdefault(name, ColumnChanges()).add(changes)
        return columns

    def _types(self) -> list[dict[str, Any]]:
        """Return the columns that differ themselves, each with the number of its slices."""
        counts: dict[ColumnTypes, int] = {}
        for difference in self.different.values():
            for types in difference.types:
                counts[types] = counts.get(types, 0) + 1
        return [
            {"name": types.name, "before": _type_name(types.before), "after": _type_name(types.after)}
            | {"compared": types.compared, "slices": count}
            for types, count in counts.items()
        ]

    def _examples(self) -> dict[str, Any]:
        """Return rows that differ as texts, and the names of their columns, those of the key first."""
        rows = [*self.pairs, *self.unpaired][:MAX_EXAMPLES]
        names = dict.fromkeys(name for _, *sides in rows for side in sides if side is not None for name in side)
        examples = []
        for start, before, after in rows:
            digits = 7 if _texts(before, names, 7) != _texts(after, names, 7) else 17
            sides = {"before": _texts(before, names, digits), "after": _texts(after, names, digits)}
            examples.append({"slice_start": start, **sides})
        return {"example_columns": list(names), "examples": examples}


def output_difference(name: str, alias: str, key: tuple[str, ...], slices: Iterable[SliceFiles]) -> OutputDifference:
    """Return how the rows of an output differ in these slices. Raise RunError if this machine cannot compare them.

    `name` is that of the temporary folders. Files with equal bytes are not read.
    """
    result = OutputDifference(alias, key)
    compared = []
    for files in slices:
        if files.before is None and files.after is None:
            result.absent += 1
        elif files.before is None:
            assert files.after is not None
            result.new += 1
            result.new_rows += files.after.file.rows
        elif files.after is None:
            result.missing.append(files.start)
        elif files.are_equal:
            rows = files.before.file.rows
            result.add(files.start, RowDifference(rows, rows))
        else:
            compared.append(files)
    if compared:
        _compare(result, hashlib.sha256(name.encode()).hexdigest()[:12], compared)
    return result


def _compare(result: OutputDifference, name: str, slices: Iterable[SliceFiles]) -> None:
    """Add the differences of slices whose files differ."""
    import duckdb

    with comparisons(f"diff-{name}") as connection, scratch_folder(f"diff-{name}") as folder:
        connection.execute("SET TimeZone = 'UTC'")
        for group in _groups(slices):
            for files, paths in _fetched(group, folder):
                if paths is None:
                    result.unreadable.append(files.start)
                    continue
                before, after = (f"SELECT * FROM read_parquet('{_escaped(path)}')" for path in paths)
                try:
                    difference = row_difference(connection, before, after, result.key, MAX_EXAMPLES)
                except duckdb.Error as error:
                    reason = str(error).partition("\n")[0]
                    raise RunError(
                        f"cannot compare the rows of slice {files.start}: {reason}; free memory, or space for "
                        "temporary files (TMPDIR)"
                    ) from error
                result.add(files.start, difference)
                for path in paths:
                    path.unlink()


def _groups(slices: Iterable[SliceFiles]) -> Iterator[list[SliceFiles]]:
    """Yield the slices in groups whose files are small enough to be in memory together."""
    group: list[SliceFiles] = []
    size = 0
    for files in slices:
        if group and size + files.size > MAX_BYTES_AT_ONCE:
            yield group
            group, size = [], 0
        group.append(files)
        size += files.size
    if group:
        yield group


def _fetched(group: list[SliceFiles], folder: Path) -> Iterator[tuple[SliceFiles, tuple[Path, Path] | None]]:
    """Yield slices with local copies of their files, before and after; None if one cannot be read."""

    def fetch(numbered: tuple[int, StoredFile]) -> Path | None:
        number, stored = numbered
        content = stored.content()
        if content is None:
            return None
        path = folder / f"{number}.parquet"
        path.write_bytes(content)
        return path

    stored = [side for files in group for side in (files.before, files.after) if side is not None]
    paths = in_parallel(fetch, enumerate(stored))
    for number, files in enumerate(group):
        before, after = paths[2 * number], paths[2 * number + 1]
        yield files, None if before is None or after is None else (before, after)


def _column(name: str, changes: ColumnChanges) -> dict[str, Any]:
    return {
        "name": name,
        "changed": changes.changed,
        "largest_difference": changes.largest,
        "mean_difference": changes.mean,
        "sum_before": changes.sum_before,
        "sum_after": changes.sum_after,
    }


def _texts(row: Row | None, names: Iterable[str], digits: int) -> list[str] | None:
    return None if row is None else [value_text(row[name], digits) if name in row else "" for name in names]


def _type_name(name: str | None) -> str | None:
    return None if name is None else _TYPE_NAMES.get(name, name.lower())


def _escaped(path: Path) -> str:
    return str(path).replace("'", "''")
