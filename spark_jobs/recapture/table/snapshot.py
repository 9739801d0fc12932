"""Read from the snapshot of a Delta table which files its slices hold."""

from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from recapture.table.schema import SLICE_COLUMN

SHOWN = {
    "path": pa.string(),
    "size_bytes": pa.int64(),
    "num_records": pa.int64(),
    "has_deletions": pa.bool_(),
    "logged_path": pa.string(),
}
"""Columns of a snapshot that say what a slice holds, and their types."""
NO_FILES = pa.schema([*SHOWN.items(), (SLICE_COLUMN, pa.string())]).empty_table()


def files_of(delta: DeltaTable) -> pa.Table:
    """Return a row for each file, in the order of the slices.

    The columns are those of SHOWN, min.COLUMN and slice_start (a string). Another program may have written a
    slice_start that is not the start of a slice, or null, which is the string "null".
    """
    files = pa.table(delta.get_add_actions(flatten=True))
    if not files.num_rows:
        return NO_FILES
    instants = files[f"partition.{SLICE_COLUMN}"].cast(pa.timestamp("us", tz="UTC"))
    starts = pc.replace_substring(pc.strftime(instants, format="%Y-%m-%dT%H:%M:%SZ"), ".000000Z", "Z")
    paths = pa.array([unquote(path) for path in files["path"].to_pylist()], pa.string())
    starts = pc.fill_null(starts, "null")
    has_deletions = pc.is_in(paths, value_set=pa.array(_with_deletions(delta), pa.string()))
    smallest = {name: files[name] for name in files.column_names if name.startswith("min.")}
    shown = (paths, files["size_bytes"], files["num_records"], has_deletions, files["path"].cast(pa.string()))
    columns = {**dict(zip(SHOWN, shown, strict=True)), **smallest, SLICE_COLUMN: starts}
    return pa.table(columns).sort_by([(SLICE_COLUMN, "ascending"), ("path", "ascending")])


def _with_deletions(delta: DeltaTable) -> list[str]:
    """Return the decoded paths of the files that have a deletion vector."""
    if "deletionVectors" not in (delta.protocol().reader_features or ()):
        return []
    uris = pa.table(delta.deletion_vectors().read_all())["filepath"].to_pylist()
    return [unquote(uri.removeprefix(delta.table_uri)).lstrip("/") for uri in uris]
