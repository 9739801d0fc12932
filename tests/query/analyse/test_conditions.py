"""Conditions: which operators there are, and when they hold."""

from typing import TYPE_CHECKING

from tests.query.small_stream import Row, at, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "CREATE TABLE telemetry (i bigint, j bigint, s nvarchar(max), b bit)\n"


def holding(spark: "SparkSession", conditions: list[str], event: Row) -> list[str]:
    """Return the conditions that hold for an event, all computed in one query."""
    items = ", ".join(f"CASE WHEN {condition} THEN 1 ELSE 0 END AS c{at}" for at, condition in enumerate(conditions))
    [[row]] = rows(spark, f"{TABLE}SELECT {items} INTO out FROM telemetry", [event])
    return [condition for condition, holds in zip(conditions, row.values(), strict=True) if holds]


def test_a_negated_predicate_holds_where_the_predicate_does_not(spark: "SparkSession") -> None:
    true = [
        "s NOT LIKE 'b%'",
        "s NOT LIKE '[^a]%'",
        "s NOT LIKE 'b!%' ESCAPE '!'",
        "NOT s LIKE 'b%'",
        "NOT s NOT LIKE 'a%'",
        "i NOT IN (1, 3)",
        "i NOT BETWEEN 3 AND 5",
    ]
    false = [
        "s NOT LIKE 'a%'",
        "s NOT LIKE '[a]%'",
        "s NOT LIKE 'a!%%' ESCAPE '!'",
        "NOT s LIKE 'a%'",
        "i NOT IN (1, 2)",
        "i NOT BETWEEN 1 AND 2",
    ]
    assert holding(spark, [*true, *false], at(1, i=2, s="a%")) == true


def test_not_greater_is_less_or_equal_and_not_less_is_greater_or_equal(spark: "SparkSession") -> None:
    true = ["i !> 2", "i !> 3", "i !< 2", "i !< 1"]
    assert holding(spark, [*true, "i !> 1", "i !< 3", "j !> 1", "j !< 1"], at(1, i=2, j=None)) == true
