"""Analytic functions and JOINs have the rows of their Spark SQL, to the last bit, for all kinds of floats and keys."""

import random
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from recapture.evaluate.analytics import analysed
from recapture.evaluate.joins import joined
from recapture.query.generate.analytics import analysed as analysed_sql
from recapture.query.generate.joins import joined as joined_sql
from recapture.query.lower.spark_text import quoted_name
from recapture.query.plan.joins import VALIDITY
from recapture.time_model.ticks import TICKS_PER_SECOND
from tests.evaluate.relations import BOUNDS, DECLARED, FIELDS, START, relations

LOOK_BACK = 5 * TICKS_PER_SECOND
FLOATS = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1.5, 0.1, 0.2, 1e300, -1e300, 3.0, None]
TEXTS = ["a", "b", "", "\ue000", "𝄞", None]
VALUES: Mapping[pa.DataType, list[Any]] = {
    pa.float64(): FLOATS,
    pa.int64(): [None, 0, 1, 2, -1, 2**40],
    pa.string(): TEXTS,
    pa.bool_(): [None, False, True],
}


def events(draw: random.Random, count: int) -> pa.Table:
    """Return rows of three partitions in arrival order, many of them with equal times."""
    rows = []
    for id in range(count):
        time = START + draw.randrange(-20, 60) * TICKS_PER_SECOND + draw.choice((0, 0, 0, 0, -1, 1))
        row = {"_partition": draw.choice("012"), "_system_timestamp": time}
        row["_arrival"] = time + draw.choice((0, 0, TICKS_PER_SECOND))
        rows.append(row | {name: draw.choice(VALUES[type_]) for name, type_ in FIELDS.items()} | {"id": id})
    rows.sort(key=lambda row: (row["_partition"], row["_arrival"]))
    system = [("_partition", pa.string()), ("_system_timestamp", pa.int64()), ("_arrival", pa.int64())]
    return pa.Table.from_pylist(rows, pa.schema([*system, *FIELDS.items()]))


def in_spark(spark: SparkSession, name: str, rows: pa.Table) -> None:
    """Create the view of some rows, whose partitions come one after another."""
    for bound, time in (("_slice_start", BOUNDS.start), ("_slice_end", BOUNDS.end)):
        rows = rows.append_column(bound, pa.repeat(pa.scalar(time, pa.int64()), len(rows)))
    spark.createDataFrame(rows.combine_chunks()).coalesce(1).createOrReplaceTempView(quoted_name(name))


def require_same(actual: pa.Table, spark: SparkSession, sql: str, ordered: bool = False) -> None:
    names = ", ".join(f"`{name}`" for name in actual.column_names if name != "_row")
    expected = spark.sql(f"SELECT {names} FROM ({sql})").toArrow()
    ours, theirs = (
        [repr(row) for row in table.select(expected.column_names).to_pylist()] for table in (actual, expected)
    )
    assert len(ours) > 5
    assert (ours == theirs) if ordered else (sorted(ours) == sorted(theirs))


LIMIT = "LIMIT DURATION(second, 10)"


@pytest.mark.parametrize(
    "functions",
    [
        [f"LAG(x, 2) OVER (PARTITION BY k {LIMIT})", f"LAG(k, 3, k) OVER (PARTITION BY x {LIMIT})",
         f"LAST(b, 1) OVER (PARTITION BY n {LIMIT} WHEN x > 0.1)",
         "ISFIRST(second, 7) OVER (PARTITION BY x WHEN n > 0)"],
        [f"SUM(x) OVER ({LIMIT} WHEN x < 1e200)", f"AVG(x) OVER (PARTITION BY n {LIMIT})",
         f"MIN(x) OVER (PARTITION BY b {LIMIT})", f"COUNT(k) OVER (PARTITION BY x {LIMIT})"],
        [f"MAX(x) OVER (PARTITION BY k {LIMIT})", f"MAX(b) OVER ({LIMIT} WHEN x < 1)",
         f"MIN(CAST(k AS nvarchar(max))) OVER ({LIMIT} WHEN b = 0)", f"SUM(n) OVER (PARTITION BY k {LIMIT})"],
    ],
)  # fmt: skip
def test_analytic_functions_have_the_results_of_spark(spark: SparkSession, functions: list[str]) -> None:
    columns = ", ".join(f"{function} AS v{number}" for number, function in enumerate(functions))
    [selection], _ = relations(f"{DECLARED}SELECT id, {columns} INTO out FROM telemetry TIMESTAMP BY t")
    assert selection.analytics is not None
    rows = events(random.Random(5), 1500)
    in_spark(spark, "analysed_rows", rows)
    sql = analysed_sql(selection.analytics, "analysed_rows", LOOK_BACK)
    require_same(analysed(rows, selection.analytics, BOUNDS, LOOK_BACK), spark, sql)


INPUT = "telemetry {} TIMESTAMP BY t"
JOINS = [
    "{} LEFT JOIN {} ON a.x = b.x AND DATEDIFF(second, a, b) BETWEEN -7 AND 2",
    "{} JOIN {} ON a.x = b.n AND a.b = b.b AND DATEDIFF(second, b, a) > 0 AND DATEDIFF(second, a, b) >= -9",
    "{} LEFT JOIN {} ON DATEDIFF(ss, a, b) BETWEEN -1 AND 2 AND (a.k < b.k OR a.x > b.x)",
    "{} LEFT JOIN {} ON a.n = b.n AND b.x < 5 AND a.k <> 'a' AND DATEDIFF(second, a, b) BETWEEN 1 AND 3",
]


@pytest.mark.parametrize("join", JOINS)
def test_joins_have_the_rows_of_spark(spark: SparkSession, join: str) -> None:
    columns = "a.id AS ai, a.x AS ax, b.id AS bi, b.x AS bx, b.k AS bk"
    text = f"SELECT {columns} INTO out FROM {join.format(INPUT.format('a'), INPUT.format('b'))}"
    _, [table] = relations(DECLARED + text)
    rows = events(random.Random(6), 400)
    in_spark(spark, table.sides[0].table, rows)
    require_same(joined(table, lambda _: rows, BOUNDS, LOOK_BACK), spark, joined_sql(table, LOOK_BACK))


def devices(draw: random.Random) -> pa.Table:
    """Return three versions of reference data, each with several rows of a key, and one that is never in force."""
    edges = [0, START + 10 * TICKS_PER_SECOND, START + 30 * TICKS_PER_SECOND, 2**63 - 1]
    fields = {name: FIELDS[name] for name in ("k", "n", "x")}
    rows = [
        dict(zip(VALIDITY, edges[version : version + 2], strict=True))
        | {name: draw.choice(VALUES[type_]) for name, type_ in fields.items()}
        for version in range(3)
        for _ in range(15)
    ]
    never = dict.fromkeys(VALIDITY, 0) | {"k": "", "n": 0, "x": 0.0}
    schema = pa.schema([*((name, pa.int64()) for name in VALIDITY), *fields.items()])
    return pa.Table.from_pylist([*rows, never], schema)


@pytest.mark.parametrize(
    "on",
    [
        "JOIN devices d ON a.k = d.k",
        "LEFT JOIN devices d ON a.x = d.x AND a.n < d.n",
        "LEFT JOIN devices d ON a.x > d.x",
    ],
)
def test_look_ups_have_the_rows_of_spark_in_order(spark: SparkSession, on: str) -> None:
    create = "CREATE TABLE devices (k nvarchar(max), n bigint, x float);\n"
    text = f"{create}SELECT a.id AS a, d.k AS k, d.n AS n, d.x AS x INTO out FROM {INPUT.format('a')} {on}"
    _, [table] = relations(DECLARED + text, references=("devices",))
    tables = {table.sides[0].table: events(random.Random(7), 300), table.sides[1].table: devices(random.Random(8))}
    for name, rows in tables.items():
        in_spark(spark, name, rows)
    require_same(
        joined(table, tables.__getitem__, BOUNDS, LOOK_BACK), spark, joined_sql(table, LOOK_BACK), ordered=True
    )
