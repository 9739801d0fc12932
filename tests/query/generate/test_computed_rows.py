"""What the generated Spark SQL computes on small frames; `tests/cases` has the rows of more queries."""

import math
import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import ArithmeticException

from recapture.errors import RunError
from recapture.time_model.ticks import from_datetime, from_seconds
from tests.oracle_windows import Event
from tests.query import fast_path
from tests.query.fast_path import Slice
from tests.query.small_stream import HOUR, START, Row, at, compiled, published, rows
from tests.settings import SHUFFLE_PARTITIONS, spark_setting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNTS = "SELECT System.Timestamp() AS e, COUNT(*) AS n INTO out FROM telemetry TIMESTAMP BY t GROUP BY"


@pytest.mark.parametrize(
    ("window", "counts"),
    [
        ("Tumbling(minute, 10)", {600: 1, 3600: 1}),
        ("Hopping(minute, 10, 5)", {300: 3, 600: 1, 3600: 1}),
        ("Tumbling(day, 1)", {}),
        ("Hopping(day, 2, 1)", {}),
    ],
)
def test_only_windows_that_end_in_the_slice_are_published(
    spark_too: "SparkSession | None", window: str, counts: dict[float, int]
) -> None:
    [actual] = rows(spark_too, f"{COUNTS} {window}", [at(-1), at(0), at(1), at(3600), at(3601)])
    assert {row["e"]: row["n"] for row in actual} == counts


def test_empty_groups_give_no_row(spark_too: "SparkSession | None") -> None:
    assert rows(spark_too, f"{COUNTS} Tumbling(second, 10)", []) == [[]]
    keyed = COUNTS.replace("System.Timestamp() AS e", "k")
    actual = rows(spark_too, f"{keyed} k, Hopping(second, 10, 10)", [at(1, k="a"), at(11, k="b")])
    assert actual == [[{"k": "a", "n": 1}, {"k": "b", "n": 1}]]


def test_seven_day_windows_end_on_monday_midnight(spark_too: "SparkSession | None") -> None:
    monday = datetime(2026, 3, 2, tzinfo=UTC)
    assert monday.weekday() == 0
    end = from_datetime(monday)
    slice_ = Slice(end - HOUR, end, [Event(START + 1, {})])
    query = fast_path.compiled(f"{COUNTS} Tumbling(day, 7)")
    assert fast_path.published(spark_too, query, [slice_]) == [[{"e": end, "n": 1}]]


def test_slices_are_computed_apart(spark_too: "SparkSession | None") -> None:
    query = fast_path.compiled("SELECT COUNT(*) AS n INTO out FROM telemetry GROUP BY Tumbling(hour, 1)")
    events = [Event(START + from_seconds(second), {}) for second in (1, 2, 3601)]
    slices = [Slice(START, START + HOUR, events), Slice(START + HOUR, START + 2 * HOUR, events)]
    assert fast_path.published(spark_too, query, slices) == [[{"n": 2}], [{"n": 1}]]


@pytest.mark.parametrize(
    ("item", "events", "message"),
    [
        ("SUM(i / j)", [at(1, i=1, j=0)], "DIVIDE_BY_ZERO"),
        ("SUM(i + 0)", [at(1, i=2**63 - 1), at(2, "1", i=1)], "OVERFLOW|the sum of bigints is too large for a bigint"),
        ("SUM(i)", [at(1, i=2**63 - 1), at(2, "1", i=1)], "the sum of bigints is too large for a bigint"),
    ],
)
def test_division_by_zero_and_overflow_fail_rather_than_give_null(
    spark_too: "SparkSession | None", item: str, events: list[Row], message: str
) -> None:
    table = "CREATE TABLE telemetry (i bigint, j bigint)"
    with pytest.raises((ArithmeticException, RunError), match=message):
        rows(spark_too, f"{table} SELECT {item} AS s INTO out FROM telemetry GROUP BY Tumbling(s, 10)", events)


def test_float_sums_do_not_depend_on_how_spark_arranges_the_partitions(spark: "SparkSession") -> None:
    query = compiled(
        "SELECT k, SUM(v) AS s, AVG(v) AS a, MIN(z) AS z INTO out FROM telemetry GROUP BY k, Hopping(s, 60, 30)"
    )
    chance = random.Random(7)
    events = [
        at(
            chance.uniform(0, 120),
            str(chance.randrange(12)),
            k=str(chance.randrange(3)),
            v=chance.choice([1e16, -1e16, 1.0, 0.1]) * chance.random(),
            z=chance.choice([0.0, -0.0]),
        )
        for _ in range(600)
    ]
    results = set()
    for shuffle in ("1", "3", "4"):
        order = [str(partition) for partition in range(12)]
        chance.shuffle(order)
        arranged = sorted(events, key=lambda row: order.index(row["_partition"]))
        with spark_setting(spark, SHUFFLE_PARTITIONS, shuffle):
            results.add(repr(published(spark, query, arranged)))
    assert len(results) == 1


def test_partitions_are_summed_in_the_order_of_their_ids(spark_too: "SparkSession | None") -> None:
    values = {"0": 1e16, "1": 1.0, "2": -1e16, "3": 1.0}
    text = "SELECT SUM(v) AS s INTO out FROM telemetry GROUP BY Tumbling(s, 10)"
    [[row]] = rows(spark_too, text, [at(1, partition, v=v) for partition, v in values.items()])
    assert row["s"] == ((1e16 + 1.0) - 1e16) + 1.0
    assert row["s"] != math.fsum(values.values())
