"""Tables at another address: what is published is the same if their folders were copied."""

import shutil
from dataclasses import replace
from pathlib import Path

from recapture.table import publish
from recapture.table.delta import OpenTable
from recapture.table.publish import Tables
from tests.table.publishing import METRICS, NINE, ROWS, TEN, Place, everywhere


def test_tables_whose_folders_were_copied_hold_what_was_published_and_can_be_rolled_back(
    folder: Place, tmp_path: Path
) -> None:
    for run in ("first", "second"):
        folder.publish(run)
    names = [folder.table_url(name).rsplit("/", 1)[1] for name in folder.names]
    for name in ("publications", *names):
        shutil.copytree(tmp_path / name, tmp_path / "elsewhere" / name)
    moved = replace(folder, url=f"{folder.url}/elsewhere")
    assert moved.held() == everywhere("second")
    moved.rollback()
    assert moved.shown(ROWS) == {NINE: "first"}
    assert folder.shown(ROWS) == {NINE: "second"}


def elsewhere(place: Place) -> Tables:
    """Return the tables of a place, with the rows and their metrics at another address."""
    tables = place.tables
    moved = {
        name: replace(table, url=f"{table.url}_2") if name in (ROWS, METRICS) else table
        for name, table in tables.others.items()
    }
    return Tables(tables.publications, moved)


def test_a_new_address_of_one_output_holds_what_is_published_after_a_copy_or_the_same_run(folder: Place) -> None:
    folder.publish("run", NINE, TEN)
    tables = elsewhere(folder)
    for name in (ROWS, METRICS):
        shutil.copytree(folder.folder(name), f"{folder.folder(name)}_2")
    assert publish.bring_in_line(tables, [NINE, TEN]).changed[ROWS] == []
    shutil.rmtree(f"{folder.folder(ROWS)}_2/_delta_log")
    outcome = publish.publish(tables, {NINE: folder.publication("run")})
    assert outcome.changed[ROWS] == [NINE]
    assert set(OpenTable(tables.others[ROWS]).held()) == {NINE}
