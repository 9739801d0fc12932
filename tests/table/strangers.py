"""Other programs that write to a Delta table: delta-rs's own API, and commits as Databricks writes them."""

import base64
import json
import shutil
import struct
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Field, QueryBuilder, write_deltalake
from deltalake.schema import PrimitiveType

TEN = "slice_start = '2024-03-01 10:00:00'"
"""Predicate of the slice that strangers change."""
OF_A_DEVICE = f"{TEN} AND deviceId = 'device-0-1'"
"""Predicate of some of its rows."""
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def opened(table: Path) -> DeltaTable:
    return DeltaTable(str(table))


def rows_of_ten(table: Path, limit: int = 1000) -> pa.Table:
    """Return the first rows of the slice as a reader sees them."""
    reader = QueryBuilder().register("t", opened(table))
    return pa.table(reader.execute(f"SELECT * FROM t WHERE {TEN} LIMIT {limit}").read_all())


def file_of_ten(table: Path) -> Path:
    """Return the only file of the slice."""
    actions = pa.table(opened(table).get_add_actions(flatten=True)).to_pylist()
    (path,) = (action["path"] for action in actions if "20240301T100000Z" in action["path"])
    return table / path


def append(table: Path, slice_start: str | None = "2024-03-01 10:00:00") -> None:
    """Append copies of two rows to a slice, or to what is no slice."""
    rows = rows_of_ten(table, 2)
    value = None if slice_start is None else datetime.fromisoformat(f"{slice_start}+00:00")
    starts = pa.array([value] * rows.num_rows, pa.timestamp("us", tz="UTC"))
    rows = rows.set_column(rows.column_names.index("slice_start"), "slice_start", starts)
    write_deltalake(str(table), rows, mode="append")


def compact(table: Path) -> None:
    append(table)
    assert opened(table).optimize.compact()["numFilesRemoved"] == 2


def delete_rows(table: Path) -> None:
    assert opened(table).delete(OF_A_DEVICE)["num_copied_rows"] > 0


def damage(table: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the bytes of the only file of the slice."""
    file = file_of_ten(table)
    file.write_bytes(change(file.read_bytes()))


def checkpoint_and_clean(table: Path) -> None:
    opened(table).create_checkpoint()
    opened(table).cleanup_metadata()


def vacuum(table: Path) -> None:
    """Delete every file that the newest version does not name, however young."""
    opened(table).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)


def set_property(table: Path, name: str, value: str) -> None:
    opened(table).alter.set_table_properties({name: value}, raise_if_not_exists=False)


def add_column(table: Path) -> None:
    opened(table).alter.add_columns([Field("more", PrimitiveType("string"))])


def commit(table: Path, *actions: dict[str, Any]) -> None:
    """Commit actions as another program would, next to what the log has."""
    log = table / "_delta_log"
    version = 1 + max(int(path.stem) for path in log.glob("*.json"))
    written_by = {"commitInfo": {"operation": "WRITE", "engineInfo": "Databricks-Runtime/15.4"}}
    lines = [json.dumps(action) + "\n" for action in (written_by, *actions)]
    (log / f"{version:020}.json").write_text("".join(lines))


def protocol(*features: str, reader_features: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the action that gives a table these features."""
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    return {"protocol": versions | {"readerFeatures": [*reader_features], "writerFeatures": [*features]}}


def metadata(table: Path) -> dict[str, Any]:
    """Return the newest metaData of a table's log."""
    actions = [action for actions in actions_of(table) for action in actions]
    newest: dict[str, Any] = [action["metaData"] for action in actions if "metaData" in action][-1]
    return newest


def _added_path(action: dict[str, Any]) -> str | None:
    added: dict[str, str] = action.get("add", {})
    return added.get("path")


def actions_of(table: Path) -> list[list[dict[str, Any]]]:
    """Return the actions of each commit in the table's log."""
    logs = sorted((table / "_delta_log").glob("*.json"))
    return [[json.loads(line) for line in log.read_text().splitlines()] for log in logs]


def require_protocol(table: Path) -> None:
    """Assert that no commit adds and removes the same file, which Delta does not allow: readers disagree about it."""
    for actions in actions_of(table):
        changes = [
            (kind, action[kind]["path"], json.dumps(action[kind].get("deletionVector")))
            for action in actions
            for kind in ("add", "remove")
            if kind in action
        ]
        files = [file for _, *file in changes]
        assert all(files.count(file) == 1 for file in files), changes


def delete_with_vector(table: Path, rows: tuple[int, ...] = (0, 3), path: str | None = None) -> None:
    """Delete rows as Databricks does by default: the file stays, and a deletion vector hides the rows.

    `path` is that of a file as the log has it; None for the only file of the slice.
    """
    path = path or str(file_of_ten(table).relative_to(table))
    added = [action["add"] for actions in actions_of(table) for action in actions if path == _added_path(action)][-1]
    kept = {name: added[name] for name in ("path", "partitionValues", "size")}
    commit(
        table,
        protocol("deletionVectors", "appendOnly", "invariants", reader_features=("deletionVectors",)),
        {"remove": {**kept, "dataChange": True, "deletionTimestamp": 1, "extendedFileMetadata": True}},
        {
            "add": {
                **kept,
                "modificationTime": added["modificationTime"],
                "dataChange": True,
                "stats": added["stats"],
                "deletionVector": _inline_vector(rows),
            }
        },
    )


def _inline_vector(rows: tuple[int, ...]) -> dict[str, Any]:
    """Return a deletion vector in the log: a RoaringBitmapArray with one array container, in Z85."""
    container = struct.pack("<HHI", 0, len(rows) - 1, 16) + struct.pack(f"<{len(rows)}H", *rows)
    bitmap = struct.pack("<II", 12346, 1) + container
    content = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    padded = content + bytes(-len(content) % 4)
    text = base64.b85encode(padded).decode().translate(str.maketrans(_B85, _Z85))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(content), "cardinality": len(rows)}


STRANGERS: dict[str, Callable[[Path], object]] = {
    "append": append,
    "compact": compact,
    "z_order": lambda table: opened(table).optimize.z_order(["deviceId"]),
    "delete_rows": delete_rows,
    "delete_slice": lambda table: opened(table).delete(TEN),
    "update": lambda table: opened(table).update({"events": "0"}, predicate=OF_A_DEVICE),
    "overwrite": lambda table: write_deltalake(str(table), rows_of_ten(table), mode="overwrite"),
    "restore": lambda table: opened(table).restore(0),
    "lose_log": lambda table: shutil.rmtree(table / "_delta_log"),
    "lose_table": shutil.rmtree,
    "delete_with_vector": delete_with_vector,
    "lose_file": lambda table: file_of_ten(table).unlink(),
    "empty_file": lambda table: damage(table, lambda content: b""),
    "truncate_file": lambda table: damage(table, lambda content: content[:-1]),
    "flip_bytes": lambda table: damage(
        table, lambda content: content[:10] + bytes(255 - byte for byte in content[10:])
    ),
    "checkpoint_and_clean": checkpoint_and_clean,
    "vacuum": vacuum,
    "lose_run_files": lambda table: shutil.rmtree(table / "_recapture"),
    "feed_changes": lambda table: set_property(table, "delta.enableChangeDataFeed", "true"),
}
"""What other programs do to a table."""
