"""Queries of DuckDB on Arrow columns."""

import duckdb
import pyarrow as pa
import pytest

from recapture.formats.duckdb_sql import select

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


def test_a_query_does_not_keep_its_rows() -> None:
    before = pa.total_allocated_bytes()
    select({"value": pa.array(range(100_000))}, DOUBLED)
    assert pa.total_allocated_bytes() <= before
