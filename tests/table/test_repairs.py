"""Slices that hold what no other writer of Recapture leaves: the next publication restores them, by Delta's rules."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recapture.table.delta import OpenTable
from tests.table import strangers
from tests.table.publishing import NINE, ROWS, TEN, Place, everywhere

FOLDER = "slice_start=2024-03-01%2009%3A00%3A00"
"""Folder of a stranger's files in the slice, as delta-rs and Spark name it."""


@pytest.fixture
def folder(tmp_path: Path) -> Place:
    place = Place(tmp_path.as_uri())
    place.publish("run", NINE, TEN)
    return place


def ours(table: Path) -> dict[str, Any]:
    """Return the action that added our file of nine o'clock."""
    added = [action["add"] for actions in strangers.actions_of(table) for action in actions if "add" in action]
    action, *_ = (action for action in added if "T090000Z" in action["path"])
    return {name: value for name, value in action.items() if value is not None}


def add_file(table: Path) -> str:
    """Add a file of a stranger to nine o'clock, and return its path in the log."""
    path = table / FOLDER / "part-0.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"run": ["theirs", "theirs too"]}), path)
    encoded = f"{FOLDER}/part-0.parquet".replace("%", "%25")
    statistics = json.dumps({"numRecords": 2})
    added = {**ours(table), "path": encoded, "size": path.stat().st_size, "stats": statistics}
    strangers.commit(table, {"add": added})
    return encoded


def delete(table: Path, row: int = 0, path: str | None = None) -> None:
    """Hide a row of a file, of ours unless another path is given."""
    strangers.delete_with_vector(table, (row,), path or ours(table)["path"])


STRANGERS: dict[str, list[Callable[[Path], object]]] = {
    "added file": [add_file],
    "added file with deletions": [lambda table: delete(table, path=add_file(table))],
    "added file next to deletions": [delete, add_file],
    "deletions": [delete],
    "deletions twice": [delete, lambda table: delete(table, 1, add_file(table))],
    "wrong size": [lambda table: strangers.commit(table, {"add": {**ours(table), "size": 7}})],
    "wrong count": [lambda table: strangers.commit(table, {"add": {**ours(table), "stats": '{"numRecords": 2}'}})],
}
"""What other programs did to a table, step by step."""


def let(stranger: str, table: Path) -> None:
    for step in STRANGERS[stranger]:
        step(table)


@pytest.mark.parametrize("stranger", STRANGERS)
def test_the_same_publication_restores_a_slice_without_adding_and_removing_a_file_in_one_commit(
    folder: Place, stranger: str
) -> None:
    table, before = folder.folder(), OpenTable(folder.tables.others[ROWS]).held()
    let(stranger, table)
    assert OpenTable(folder.tables.others[ROWS]).held() != before
    outcome = folder.publish("run", NINE, TEN)
    assert outcome.changed[ROWS] == outcome.repaired == [NINE]
    assert OpenTable(folder.tables.others[ROWS]).held() == before
    assert folder.shown(ROWS) == {NINE: "run", TEN: "run"}
    strangers.require_protocol(table)


@pytest.mark.parametrize("stranger", ["added file", "added file with deletions", "deletions"])
def test_another_publication_and_a_rollback_replace_whatever_a_slice_holds(folder: Place, stranger: str) -> None:
    let(stranger, folder.folder())
    folder.publish("second")
    assert folder.shown(ROWS) == {NINE: "second", TEN: "run"}
    folder.rollback()
    assert folder.shown(ROWS) == {NINE: "run", TEN: "run"}
    assert folder.held() == everywhere("run")
    strangers.require_protocol(folder.folder())


def test_a_file_without_a_count_of_rows_is_the_same_file(folder: Place) -> None:
    """Some writers leave the statistics out of their checkpoints."""
    added = {name: value for name, value in ours(folder.folder()).items() if name != "stats"}
    strangers.commit(folder.folder(), {"add": added})
    assert folder.publish("run", NINE, TEN).changed[ROWS] == []
