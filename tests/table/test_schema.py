"""A changed query and the columns of its tables: what a table gains and keeps, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, QueryBuilder, Schema
from deltalake.schema import PrimitiveType

from recapture.errors import DefinitionError, InterruptedRunError, PermanentError
from recapture.model import AsaType, OutputColumn, published_schema
from recapture.table import publish
from recapture.table.delta import OpenTable, Table
from recapture.table.faults import lagging_slices
from recapture.table.publications import shown_entries
from recapture.table.schema import added, obstacles, schema_of
from tests.table import strangers
from tests.table.publishing import ELEVEN, METRICS, NINE, QUARANTINE, ROWS, TEN, Place, everywhere, together

STORED = Schema([*(Field(name, PrimitiveType(type_)) for name, type_ in (("key", "string"), ("n", "long")))])
WITH_SLICE = Schema([*STORED.fields, Field("slice_start", PrimitiveType("timestamp"))])


def rows_of(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([*columns.items()])


def found(rows: pa.Schema, *more: Field, **options: Any) -> list[str]:
    return list(obstacles(Schema([*WITH_SLICE.fields, *more]), ["slice_start"], rows, **options))


def test_the_comment_of_a_column_has_the_name_that_a_table_cannot_have() -> None:
    columns = [OutputColumn("the_key", AsaType.STRING, "the key"), OutputColumn("n", AsaType.BIGINT)]
    comments = {field.name: field.metadata.get("comment") for field in schema_of(published_schema(columns)).fields}
    assert comments == {"the_key": "the key", "n": None, "slice_start": None}


def test_a_table_gains_the_columns_that_it_lacks_in_the_order_of_the_query() -> None:
    rows = rows_of(key=pa.string(), peak=pa.float64(), n=pa.int64(), last=pa.timestamp("us", tz="UTC"))
    assert [(column.name, column.type.type) for column in added(WITH_SLICE, rows)] == [
        ("peak", "double"),
        ("last", "timestamp"),
    ]
    assert all(column.nullable for column in added(WITH_SLICE, rows))
    assert found(rows) == []


def test_a_column_that_the_rows_lack_is_no_obstacle() -> None:
    assert added(WITH_SLICE, rows_of(n=pa.int64())) == []
    assert found(rows_of(n=pa.int64())) == []


@pytest.mark.parametrize(
    ("rows", "obstacle"),
    [
        (rows_of(n=pa.float64()), "n is long in the table and double in the rows"),
        (rows_of(key=pa.bool_()), "key is string in the table and boolean in the rows"),
        (rows_of(Key=pa.string()), "Key is key in the table, and Delta ignores letter case: write key in the query"),
    ],
)
def test_another_type_and_another_letter_case_are_obstacles(rows: pa.Schema, obstacle: str) -> None:
    assert found(rows) == [obstacle]


@pytest.mark.parametrize(("narrow", "wide"), [("integer", pa.int64()), ("float", pa.float64()), ("double", pa.int64())])
def test_a_wider_and_a_narrower_type_are_obstacles(narrow: str, wide: pa.DataType) -> None:
    (obstacle,) = found(rows_of(x=wide), Field("x", PrimitiveType(narrow)))
    assert obstacle.startswith(f"x is {narrow} in the table and ")


@pytest.mark.parametrize("rows", [rows_of(key=pa.string()), rows_of(must=pa.string())])
def test_a_column_that_must_have_a_value_is_an_obstacle(rows: pa.Schema) -> None:
    assert found(rows, Field("must", PrimitiveType("string"), nullable=False)) == [
        "must is NOT NULL in the table, but rows may have no value: drop this constraint"
    ]


def test_a_column_that_is_generated_from_others_is_an_obstacle_unless_the_rows_have_it() -> None:
    day = Field("day", PrimitiveType("string"), metadata={"delta.generationExpression": "CAST(n AS STRING)"})
    (obstacle,) = found(rows_of(n=pa.int64()), day)
    assert obstacle == "day is generated from other columns, but the rows have no such column"
    assert found(rows_of(n=pa.int64(), day=pa.string()), day) == []


@pytest.mark.parametrize(("partition", "words"), [(["key"], "by key"), (["slice_start", "key"], "by slice_start, key")])
def test_other_partitions_are_an_obstacle(partition: list[str], words: str) -> None:
    assert list(obstacles(WITH_SLICE, partition, rows_of(n=pa.int64()))) == [
        f"the table is partitioned {words}, not by slice_start"
    ]


def test_a_table_that_maps_its_columns_gains_none() -> None:
    assert found(rows_of(n=pa.int64()), is_mapped=True) == []
    (obstacle,) = found(rows_of(n=pa.int64(), peak=pa.float64()), is_mapped=True)
    assert obstacle.endswith("so Recapture cannot add peak")


def read(place: Place, name: str = ROWS) -> list[dict[str, Any]]:
    """Return the rows of a table in the order of the slices. DuckDB must find the same in the files that it names."""
    opened = DeltaTable(str(place.folder(name)))
    reader = QueryBuilder().register("t", opened).execute("SELECT * FROM t ORDER BY slice_start")
    rows = pa.table(reader.read_all()).drop_columns("slice_start")
    with duckdb.connect() as connection:
        files = connection.read_parquet(sorted(opened.file_uris()), union_by_name=True, hive_partitioning=False)
        assert files.to_arrow_table().to_pylist() == rows.select(files.columns).to_pylist()
        assert all(set(rows[name].to_pylist()) == {None} for name in rows.column_names if name not in files.columns)
    return [*rows.to_pylist()]


def test_a_query_that_gains_a_column_is_published_next_to_its_old_slices(place: Place) -> None:
    place.publish("first", NINE, TEN)
    replace(place, more={"peak": 1.5}).publish("second", TEN)
    assert place.held(NINE) == everywhere("first")
    assert place.held(TEN) == everywhere("second")


def test_old_slices_hold_null_in_a_new_column_and_new_slices_in_a_lost_one(folder: Place) -> None:
    replace(folder, more={"low": 7}).publish("first", NINE, TEN)
    replace(folder, more={"peak": 1.5}).publish("second", TEN)
    for name in (ROWS, METRICS, QUARANTINE):
        assert read(folder, name) == [
            {"run": "first", "low": 7, "peak": None},
            {"run": "second", "low": None, "peak": 1.5},
        ]


def test_a_lost_column_that_returns_is_the_column_of_before(folder: Place) -> None:
    narrow, wide = folder, replace(folder, more={"low": 7})
    for number, place in enumerate((wide, narrow, wide)):
        place.publish(f"run {number}", (NINE, TEN, ELEVEN)[number])
    assert [row["low"] for row in read(folder)] == [7, None, 7]


def test_a_rollback_over_a_change_of_columns_restores_the_rows_and_keeps_the_columns(folder: Place) -> None:
    wide = replace(folder, more={"peak": 1.5})
    folder.publish("first", NINE, TEN)
    wide.publish("second", NINE, TEN)
    wide.rollback(NINE)
    assert read(folder) == [{"run": "first", "peak": None}, {"run": "second", "peak": 1.5}]
    folder.rollback(TEN)
    assert read(folder) == [{"run": "first", "peak": None}] * 2


def test_a_rollback_with_a_query_of_other_types_works(folder: Place) -> None:
    replace(folder, more={"n": 1}).publish("first")
    replace(folder, more={"n": 2}).publish("second")
    replace(folder, more={"n": 0.5}).rollback()
    assert read(folder) == [{"run": "first", "n": 1}]


def test_a_rollback_gives_a_table_that_was_made_anew_the_columns_of_the_files_that_come_back(folder: Place) -> None:
    wide = replace(folder, more={"peak": 1.5})
    for run in ("first", "second"):
        wide.publish(run, NINE, TEN)
    strangers.STRANGERS["lose_log"](folder.folder(ROWS))
    folder.rollback(NINE)
    assert read(folder) == [{"run": "first", "peak": 1.5}]
    publish.bring_in_line(folder.tables, [TEN])
    assert read(folder) == [{"run": "first", "peak": 1.5}, {"run": "second", "peak": 1.5}]


def test_a_rollback_does_not_put_files_into_a_table_that_holds_another_type(folder: Place) -> None:
    for run in ("first", "second"):
        replace(folder, more={"n": 1}).publish(run, NINE, TEN)
    for name in folder.names:
        strangers.STRANGERS["lose_log"](folder.folder(name))
    other = replace(folder, more={"n": 0.5})
    other.publish("third", TEN)
    with pytest.raises(DefinitionError, match="n is double in the table and long in the rows"):
        other.rollback(NINE)
    assert read(folder) == [{"run": "third", "n": 0.5}]
    with pytest.raises(PermanentError, match=r"a column of .*/rows has another type in another slice .*: backfill"):
        publish.bring_in_line(other.tables, [NINE, TEN])


@pytest.mark.parametrize(
    ("more", "match"),
    [({"n": 0.5}, "n is long in the table and double in the rows"), ({"N": 1}, "N is n in the table")],
)
def test_a_query_that_does_not_fit_is_refused_before_anything_changes(
    folder: Place, more: dict[str, Any], match: str
) -> None:
    replace(folder, more={"n": 1}).publish("first")
    versions = folder.versions()
    changed = replace(folder, more=more)
    ways_out = "another name in the query, publish to another table .*, or start the pipeline's tables anew"
    for call in (changed.tables.require_publishable, lambda: changed.publish("second")):
        with pytest.raises(DefinitionError, match=f"{match}.*: give a changed column {ways_out}"):
            call()
    assert folder.versions() == versions


def test_tables_that_were_deleted_are_made_anew_with_other_types(folder: Place) -> None:
    replace(folder, more={"n": 1}).publish("first", NINE, TEN)
    for name in (ROWS, METRICS, QUARANTINE, "publications"):
        strangers.STRANGERS["lose_table"](folder.folder(name))
    replace(folder, more={"n": 0.5}).publish("second", NINE, TEN)
    assert read(folder) == [{"run": "second", "n": 0.5}] * 2
    assert folder.held() == everywhere("second")


def test_publishers_of_several_queries_at_once_all_publish_and_the_table_has_all_columns(folder: Place) -> None:
    folder.publish("first", NINE)
    ten, eleven = (replace(folder, more={name: 1.5}) for name in ("peak", "low"))
    outcomes = together(lambda: ten.publish("run of 10", TEN), lambda: eleven.publish("run of 11", ELEVEN))
    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    runs, values = ("first", "run of 10", "run of 11"), ((None, None), (1.5, None), (None, 1.5))
    expected = [{"run": run, "peak": peak, "low": low} for run, (peak, low) in zip(runs, values, strict=True)]
    assert read(folder) == expected


def test_of_two_types_of_a_new_column_the_first_wins_and_the_other_publisher_is_told(folder: Place) -> None:
    folder.publish("first", NINE)
    integer, float_ = (replace(folder, more={"n": value}) for value in (1, 0.5))
    outcomes = together(lambda: integer.publish("integer", TEN), lambda: float_.publish("float", ELEVEN))
    (refused,) = (outcome for outcome in outcomes if isinstance(outcome, Exception))
    assert isinstance(refused, DefinitionError)
    assert "n is " in str(refused)
    assert len(read(folder)) == 2


def test_another_writer_that_commits_before_a_column_is_added_is_noticed(
    folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.publish("first", NINE)
    table = Table(folder.table_url(ROWS), replace(folder, more={"peak": 1.5}).tables.others[ROWS].schema, "telemetry")
    opened = OpenTable(table)
    strangers.add_column(folder.folder())
    opened.claim()
    columns = [field["name"] for field in json.loads(strangers.metadata(folder.folder())["schemaString"])["fields"]]
    assert columns == ["run", "slice_start", "more", "peak"]


def test_a_table_without_columns_of_this_version_gains_them(folder: Place) -> None:
    """Publications of an older version lack columns; those of a newer one have more."""
    schema = folder.tables.publications.schema
    older = Table(folder.tables.publications.url, schema.remove(schema.get_field_index("empty")), "telemetry")
    OpenTable(older).claim()
    folder.publish("first", NINE)
    strangers.add_column(Path(folder.tables.publications.url.removeprefix("file://")))
    folder.publish("second", TEN)
    assert OpenTable(folder.tables.publications).slices()[TEN]["empty"] == "[]"
    assert folder.held(NINE) == everywhere("first")


def test_slices_of_before_an_output_was_new_do_not_lag_and_are_rolled_back_to(folder: Place) -> None:
    folder.publish("first", NINE, TEN)
    both = replace(folder, names=(*folder.names, "peaks"))
    both.publish("second", TEN)
    entries = shown_entries(OpenTable(both.tables.publications))
    assert list(lagging_slices(OpenTable(both.tables.others["peaks"]), "peaks", entries)) == []
    both.rollback(TEN)
    assert both.shown("peaks") == {}
    assert folder.shown(ROWS) == {NINE: "first", TEN: "first"}


def test_an_output_that_may_have_another_name_now_is_not_emptied_by_a_rollback(folder: Place) -> None:
    for run in ("first", "second"):
        folder.publish(run)
    renamed = Renamed(folder.url)
    entries = shown_entries(OpenTable(renamed.tables.publications))
    assert list(lagging_slices(OpenTable(renamed.tables.others["totals"]), "totals", entries)) == []
    match = "with the outputs rows, and none with totals: use the pipeline file"
    with pytest.raises(PermanentError, match=match):
        renamed.rollback()
    with pytest.raises(PermanentError, match=match):
        publish.bring_in_line(renamed.tables, [NINE])
    assert folder.held() == everywhere("second")
    renamed.publish("third")
    assert folder.shown(ROWS) == {NINE: "third"}


class Renamed(Place):
    """A place whose first output is named `totals`; its table is that of `rows`."""

    def __init__(self, url: str) -> None:
        super().__init__(url, ("totals", METRICS, QUARANTINE))

    def table_url(self, name: str) -> str:
        return super().table_url(ROWS if name == "totals" else name)


@pytest.mark.parametrize("name", ["publications", ROWS, METRICS, QUARANTINE])
def test_a_publication_with_a_new_column_that_is_killed_at_a_commit_is_finished_with_any_query(
    folder: Place, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder.publish("first")
    wide, killed = replace(folder, more={"peak": 1.5}), KeyboardInterrupt()
    url = folder.tables.publications.url if name == "publications" else folder.table_url(name)
    commit = OpenTable.commit

    def killed_at(table: OpenTable, *arguments: Any) -> bool:
        if table.table.url == url:
            raise killed
        return commit(table, *arguments)

    monkeypatch.setattr(OpenTable, "commit", killed_at)
    with pytest.raises((InterruptedRunError, KeyboardInterrupt)):
        wide.publish("second")
    monkeypatch.undo()
    is_decided = name != "publications"
    publish.bring_in_line(folder.tables, [NINE])
    expected = {"run": "second", "peak": 1.5} if is_decided else {"run": "first", "peak": None}
    assert [read(folder, table) for table in folder.names] == [[expected]] * 3
    assert folder.rollback().changed[ROWS] == [NINE]
