"""Queries of DuckDB on Arrow columns."""

import duckdb
import pyarrow as pa
import pytest

from recapture.formats.duckdb_sql import _FEW, _query, duckdb_connection, select

DOUBLED = "SELECT value::BIGINT * 2 AS doubled FROM bodies"


def doubled(*values: int | str) -> list[int]:
    rows: list[int] = select({"value": pa.array(values)}, DOUBLED)["doubled"].to_pylist()
    return rows


def test_a_query_reads_the_rows_and_types_of_each_call() -> None:
    assert doubled(1, 2) == [2, 4]
    assert doubled("3") == [6]
    assert doubled(5) == [10]


def test_a_query_that_fails_can_be_repeated_on_other_rows() -> None:
    with pytest.raises(duckdb.ConversionException, match="'three'"):
        doubled("three")
    assert doubled("3") == [6]


def test_a_query_whose_plan_is_kept_can_fail_and_be_repeated() -> None:
    assert [doubled("1"), doubled("2")] == [[2], [4]]
    with pytest.raises(duckdb.ConversionException, match="'three'"):
        doubled("three")
    assert doubled("3") == [6]


def test_a_kept_plan_gives_the_same_table_as_the_query() -> None:
    """Few rows are read by a plan that is kept, and many by the query."""
    queries = (
        "SELECT value IS NULL AS is_null, value, try_cast(value AS DOUBLE) AS float FROM bodies",
        "SELECT try_cast(value AS BIGINT) AS integer, string_split(value, ',') AS strings FROM bodies",
        "SELECT CASE WHEN json_valid(value) THEN json_type(value) END AS type, encode(value) AS bytes FROM bodies",
        "SELECT value AS row, count(*) AS n FROM bodies GROUP BY value ORDER BY value",
    )
    values = ["1", "-0.0", "nan", "inf", "0.1", "9223372036854775807", '{"a": [null]}', "a,b\0,ä", "", None]
    for query in queries:
        for rows in (values, []):
            column = {"value": pa.array(rows, pa.string())}
            _query.cache_clear()
            whole, few = select(column, query), select(column, query)
            assert few.schema == whole.schema
            assert repr(few.to_pylist()) == repr(whole.to_pylist())
            many = select({"value": pa.array(["7"] * (_FEW + 1))}, query)
            assert many.schema == whole.schema


def test_the_plan_of_a_query_that_is_forgotten_is_removed() -> None:
    assert [doubled(1), doubled(2)] == [[2], [4]]
    plans = "SELECT count(*) FROM duckdb_prepared_statements()"
    assert duckdb_connection().sql(plans).fetchall() != [(0,)]
    _query.cache_clear()
    assert duckdb_connection().sql(plans).fetchall() == [(0,)]


def test_a_query_does_not_keep_its_rows() -> None:
    before = pa.total_allocated_bytes()
    select({"value": pa.array(range(100_000))}, DOUBLED)
    assert pa.total_allocated_bytes() <= before
