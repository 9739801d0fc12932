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


def rows_of(place: Place) -> Path:
    return Path(place.table_url(ROWS).removeprefix("file://"))


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


def added_file(table: Path) -> None:
    add_file(table)


def added_file_with_deletions(table: Path) -> None:
    strangers.delete_with_vector(table, (0,), add_file(table))


def added_file_next_to_deletions(table: Path) -> None:
    strangers.delete_with_vector(table, (0,), ours(table)["path"])
    add_file(table)


def deletions(table: Path) -> None:
    strangers.delete_with_vector(table, (0,), ours(table)["path"])


def deletions_twice(table: Path) -> None:
    deletions(table)
    add_file(table)
    strangers.delete_with_vector(table, (1,), f"{FOLDER}/part-0.parquet".replace("%", "%25"))


def wrong_size(table: Path) -> None:
    strangers.commit(table, {"add": {**ours(table), "size": 7}})


def wrong_count(table: Path) -> None:
    strangers.commit(table, {"add": {**ours(table), "stats": json.dumps({"numRecords": 2})}})


@pytest.mark.parametrize(
    "stranger",
    [
        *(added_file, added_file_with_deletions, added_file_next_to_deletions, deletions, deletions_twice),
        *(wrong_size, wrong_count),
    ],
)
def test_the_same_publication_restores_a_slice_without_adding_and_removing_a_file_in_one_commit(
    folder: Place, stranger: Callable[[Path], None]
) -> None:
    table, before = rows_of(folder), OpenTable(folder.tables.others[ROWS]).held()
    stranger(table)
    assert OpenTable(folder.tables.others[ROWS]).held() != before
    outcome = folder.publish("run", NINE, TEN)
    assert outcome.changed[ROWS] == outcome.repaired == [NINE]
    assert OpenTable(folder.tables.others[ROWS]).held() == before
    assert folder.shown(ROWS) == {NINE: "run", TEN: "run"}
    strangers.require_protocol(table)


@pytest.mark.parametrize("stranger", [added_file, added_file_with_deletions, deletions])
def test_another_publication_and_a_rollback_replace_whatever_a_slice_holds(
    folder: Place, stranger: Callable[[Path], None]
) -> None:
    stranger(rows_of(folder))
    folder.publish("second")
    assert folder.shown(ROWS) == {NINE: "second", TEN: "run"}
    folder.rollback()
    assert folder.shown(ROWS) == {NINE: "run", TEN: "run"}
    assert folder.held() == everywhere("run")
    strangers.require_protocol(rows_of(folder))


def test_a_file_without_a_count_of_rows_is_the_same_file(folder: Place) -> None:
    """Some writers leave the statistics out of their checkpoints."""
    added = {name: value for name, value in ours(rows_of(folder)).items() if name != "stats"}
    strangers.commit(rows_of(folder), {"add": added})
    assert folder.publish("run", NINE, TEN).changed[ROWS] == []
