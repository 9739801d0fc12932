"""Read the output of a live job: a Delta table, or Parquet, JSON and CSV files in a container or a folder."""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

from recapture.errors import DamagedBlobError, DefinitionError, PermanentError, RunError
from recapture.model import AsaType, OutputColumn
from recapture.storage import Blob, Container, delta_storage_options, delta_table_uri, in_parallel, open_container
from recapture.storage.delta import refusal_of_delta
from recapture.table.row_changes import quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LIVE_ROWS = "live_rows"
"""Table of the rows of the live job."""
SLICE = "_slice"
"""Column with the number of a row's slice: its end divided by the length of a slice, since 1970."""
TYPES = {
    AsaType.BIGINT: "BIGINT",
    AsaType.FLOAT: "DOUBLE",
    AsaType.STRING: "VARCHAR",
    AsaType.DATETIME: "TIMESTAMP WITH TIME ZONE",
    AsaType.BIT: "BOOLEAN",
    AsaType.RECORD: "VARCHAR",
    AsaType.ARRAY: "VARCHAR",
}
"""Types of DuckDB in which values are compared."""
_AS_WRITTEN = "live_as_written"
"""Table of the rows of some files of the live job, with their names and types."""
_FILE = "_recapture_file"
_WITHOUT_ROWS = f"(SELECT '' AS {_FILE} WHERE false)"
"""Table expression of files without rows."""
_BATCH_BYTES = 64 * 1024 * 1024
"""Size of the files, in bytes, that are read together, unless one file is larger."""
_FORMATS = {".parquet": "parquet", ".json": "json", ".jsonl": "json", ".csv": "csv"}


@dataclass(frozen=True)
class Layout:
    """What is compared: columns with their names in the live job's output, and where rows lie in time."""

    columns: tuple[OutputColumn, ...]
    """Published columns."""
    live_names: Mapping[str, str]
    """Names of columns in the output of the live job, by our names, where they differ."""
    time: str
    """Column of the end of a row's window."""
    start: datetime
    """Start of the range, exclusive."""
    end: datetime
    """End of the range, inclusive."""
    slice_seconds: int

    @property
    def slice_number(self) -> str:
        """Number of a row's slice, in SQL."""
        return f"(epoch_us({quoted(self.time)}) - 1) // {self.slice_seconds * 1_000_000}"

    @property
    def in_range(self) -> str:
        """Condition of SQL for a row of the range."""
        time = quoted(self.time)
        return f"{time} > '{self.start.isoformat()}'::TIMESTAMPTZ AND {time} <= '{self.end.isoformat()}'::TIMESTAMPTZ"


@dataclass(frozen=True)
class Live:
    """What was read of the output of a live job."""

    rows: int
    """Number of rows in the range."""
    files: int
    missing: tuple[str, ...]
    """Published columns that the output lacks; none if it has no column at all, as empty files."""
    warnings: tuple[str, ...]


def read_live(connection: "DuckDBPyConnection", address: str, layout: Layout, folder: Path) -> Live:
    """Fill LIVE_ROWS with the rows of the range: the compared columns, with our names and types, and SLICE.

    Raise DefinitionError if nothing can be read there, if the column of the time is missing, or for a value of another
    type.
    """
    import duckdb

    connection.execute(f"DROP TABLE IF EXISTS {LIVE_ROWS}")
    seen: dict[str, str] = {}
    warnings: list[str] = []
    files = without_time = 0
    for names_of_files, source in _sources(connection, address, folder, warnings):
        files += len(names_of_files)
        try:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {_AS_WRITTEN} AS SELECT * FROM {source}")
        except duckdb.InvalidInputException as error:
            raise _unreadable(address, names_of_files, error) from error
        described = connection.sql(f"DESCRIBE {_AS_WRITTEN}").fetchall()
        names = {column.lower(): column for column, *_ in described if column != _FILE}
        seen |= names
        without_time += _insert(connection, names_of_files, names, layout)
    connection.execute(f"DROP TABLE IF EXISTS {_AS_WRITTEN}")
    if not files:
        raise DefinitionError(
            f"{address} has no Delta table and no .parquet, .json, .jsonl or .csv file: give the folder of the live "
            "job's output"
        )
    missing = tuple(
        column.name for column in layout.columns if seen and _live_name(column.name, layout).lower() not in seen
    )
    if layout.time in missing:
        raise DefinitionError(
            f"the files in {address} have no column {_live_name(layout.time, layout)}: name it with --columns "
            f"LIVE={layout.time}"
        )
    if without_time:
        warnings.append(
            f"{without_time:,} rows in {address} have no {_live_name(layout.time, layout)}, so they are not compared"
        )
    (rows,) = connection.sql(f"SELECT count(*) FROM {LIVE_ROWS}").fetchall()[0]
    return Live(rows, files, missing, tuple(warnings))


def _unreadable(address: str, files: Sequence[str], error: Exception) -> RunError:
    """Return the error for files, or for a Delta table, that DuckDB cannot read."""
    if files == [address]:
        refusal = refusal_of_delta(address, error)
        return RunError(f"{refusal}; if it was moved, replaced or vacuumed meanwhile, run the command again")
    text = str(error).partition("\n")[0]
    number = re.search(r"/live/(\d+)", text)
    file = files[int(number[1])] if number else f"a file such as {files[0]}"
    return RunError(f"{file} in {address} cannot be read: {text}; let the live job write it again, or remove it")


def _sources(
    connection: "DuckDBPyConnection", address: str, folder: Path, warnings: list[str]
) -> Iterator[tuple[list[str], str]]:
    """Yield the files in batches of one format, or the table: their names, and a table expression of SQL.

    The expression has the column _FILE, whose values are paths that end in the number of the file in the batch. A batch
    costs little more than a file, so that many small files take no longer than few large ones. Add warnings.
    """
    options = delta_storage_options(address)
    try:
        if DeltaTable.is_deltatable(delta_table_uri(address), options):
            reader = QueryBuilder().register("live", DeltaTable(delta_table_uri(address), storage_options=options))
            connection.register("delta_rows", pa.RecordBatchReader.from_stream(reader.execute("SELECT * FROM live")))
            yield [address], f"(SELECT *, '0' AS {_FILE} FROM delta_rows)"
            return
    except DeltaError as error:
        raise refusal_of_delta(address, error) from error
    container = open_container(address)
    others = []
    batches: dict[str, list[Blob]] = {}
    for blob in container.list():
        parts = PurePosixPath(blob.name)
        suffixes = [suffix.lower() for suffix in parts.suffixes if suffix.lower() != ".gz"]
        kind = _FORMATS.get(suffixes[-1]) if suffixes else None
        if kind is None or any(part.startswith(("_", ".")) for part in parts.parts):
            others.append(blob.name)
            continue
        if not blob.size:
            yield [blob.name], _WITHOUT_ROWS
            continue
        batch = batches.setdefault(kind, [])
        if batch and sum(other.size for other in batch) + blob.size > _BATCH_BYTES:
            yield _batch(connection, container, kind, batch, folder)
            batch.clear()
        batch.append(blob)
    for kind, batch in batches.items():
        yield _batch(connection, container, kind, batch, folder)
    if others:
        warnings.append(f"{len(others):,} files in {address} were not read, such as {others[0]}")


def _batch(
    connection: "DuckDBPyConnection", container: Container, kind: str, blobs: Sequence[Blob], folder: Path
) -> tuple[list[str], str]:
    """Download files of a format in place of those before, and return their names and the table expression."""
    place = folder / "live"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()

    def download(numbered: tuple[int, Blob]) -> str:
        number, blob = numbered
        path = place / f"{number}{'.gz' if blob.name.lower().endswith('.gz') else ''}"
        path.write_bytes(content_of(container, blob))
        return str(path)

    paths = in_parallel(download, enumerate(blobs))
    return [blob.name for blob in blobs], _reader(connection, kind, f"[{', '.join(map(_text, paths))}]")


def content_of(container: Container, blob: Blob) -> bytes:
    """Return the content of a file. Raise RunError if it is not the one that was listed, or is damaged."""
    file = f"{blob.name} in {container.url}"
    try:
        return container.read(blob)
    except DamagedBlobError as error:
        raise RunError(f"{file} is damaged: {error.reason}; let the live job write it again") from error
    except PermanentError as error:
        raise RunError(
            f"{file} was changed, moved or deleted while the live job's output was read: run the same command again, "
            "with the address where the output is now"
        ) from error


def _reader(connection: "DuckDBPyConnection", kind: str, paths: str) -> str:
    """Return the table expression of files. The values of JSON and CSV are strings."""
    together = f"{paths}, union_by_name = true, filename = '{_FILE}'"
    if kind == "parquet":
        return f"read_parquet({together})"
    if kind == "csv":
        return f"read_csv({together}, all_varchar = true, header = true)"
    keys = f"SELECT DISTINCT unnest(json_keys(json)) AS name FROM read_json_objects({paths}) ORDER BY name DESC"
    spellings: dict[str, list[str]] = {}
    for (name,) in connection.sql(keys).fetchall():
        spellings.setdefault(name.lower(), []).append(name)
    if not spellings:
        return _WITHOUT_ROWS
    columns = (
        f"coalesce({', '.join(f'json_extract_string(json, {_text(_pointer(name))})' for name in names)}, NULL) AS "
        f"{quoted(names[0])}"
        for names in spellings.values()
    )
    return f"(SELECT {', '.join(columns)}, {_FILE} FROM read_json_objects({paths}, filename = '{_FILE}'))"


def _pointer(name: str) -> str:
    """Return the JSON pointer of a key."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _insert(connection: "DuckDBPyConnection", files: Sequence[str], names: Mapping[str, str], layout: Layout) -> int:
    """Add the rows of a batch that are in the range, and return the number of rows that have no time.

    Raise DefinitionError for a value of another type.
    """
    written = {column: names.get(_live_name(column.name, layout).lower()) for column in layout.columns}
    selected = ", ".join(f"{_cast(column, written[column])} AS {quoted(column.name)}" for column in layout.columns)
    for column, live_name in written.items():
        if live_name is not None:
            _require_type(connection, files, column, live_name)
    rows = (
        f"SELECT *, {layout.slice_number} AS {SLICE} FROM (SELECT {selected} FROM {_AS_WRITTEN}) "
        f"WHERE {layout.in_range}"
    )
    connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS {LIVE_ROWS} AS SELECT * FROM ({rows}) LIMIT 0")
    connection.execute(f"INSERT INTO {LIVE_ROWS} {rows}")
    time = names.get(_live_name(layout.time, layout).lower())
    without = f"SELECT count(*) FROM {_AS_WRITTEN} WHERE {f'{quoted(time)} IS NULL' if time else 'true'}"
    (number,) = connection.sql(without).fetchall()[0]
    return int(number)


def _cast(column: OutputColumn, live_name: str | None) -> str:
    """Return a column of the live job's output with our type."""
    value = "NULL" if live_name is None else quoted(live_name)
    return normal(column, f"TRY_CAST({value} AS {TYPES[column.type]})")


def normal(column: OutputColumn, value: str) -> str:
    """Return the SQL of a value in a form that is equal for equal values: JSON without blanks."""
    if column.type in (AsaType.RECORD, AsaType.ARRAY):
        return f"CASE WHEN json_valid({value}) THEN json({value})::VARCHAR ELSE {value} END"
    return value


def _require_type(connection: "DuckDBPyConnection", files: Sequence[str], column: OutputColumn, live_name: str) -> None:
    """Raise DefinitionError if a value of a batch cannot be read as the type of our column."""
    value, cast = quoted(live_name), f"TRY_CAST({quoted(live_name)} AS {TYPES[column.type]})"
    wrong = f"{cast} IS NULL"
    if column.type is AsaType.BIGINT:
        wrong += f" OR {cast}::DOUBLE IS DISTINCT FROM TRY_CAST({value} AS DOUBLE)"
    query = f"SELECT {value}::VARCHAR, {_FILE} FROM {_AS_WRITTEN} WHERE {value} IS NOT NULL AND ({wrong}) LIMIT 1"
    for found, path in connection.sql(query).fetchall():
        file = files[int(PurePosixPath(path).name.partition(".")[0])]
        raise DefinitionError(
            f"{file}: column {live_name} has the value {found!r}, but {column.name} is {column.type}: correct "
            "--columns or the file"
        )


def _live_name(name: str, layout: Layout) -> str:
    return layout.live_names.get(name, name)


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def parse_columns(text: str | None, columns: Sequence[OutputColumn]) -> dict[str, str]:
    """Return the names in LIVE=OURS,… by our names, and those that the query has where a table cannot have them.

    Raise DefinitionError for another form or an unknown column.
    """
    ours = {column.name.lower(): column.name for column in columns}
    names = {column.name: column.written for column in columns if column.written is not None}
    for pair in (text or "").split(",") if text else []:
        live, separator, own = (part.strip() for part in pair.partition("="))
        if not (live and separator and own):
            raise DefinitionError(f"--columns {text}: write LIVE=OURS, with commas between the columns")
        if own.lower() not in ours:
            raise DefinitionError(f"--columns {text}: the output has no column {own}, only {', '.join(ours.values())}")
        names[ours[own.lower()]] = live
    return names
