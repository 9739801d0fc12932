"""The groups of a GROUP BY are those of its Spark SQL, to the last bit."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from recapture.errors import RunError
from recapture.evaluate.bounds import SliceBounds
from recapture.evaluate.groups import groups
from recapture.model import AsaType, JavaScriptFunction
from recapture.query.generate.windows import groups as spark_sql
from recapture.query.plan.grouping import Grouping
from tests.evaluate.groupings import grouping_of
from tests.query.streams import FIRST_WEEK, WEEK, seconds
from tests.settings import interpreting

SLICES = 25
PARTITIONS = ("0", "1", "10", "é")
SCHEMA = pa.schema(
    [
        *((name, pa.int64()) for name in ("_slice_start", "_slice_end", "_system_timestamp", "_arrival")),
        ("_partition", pa.string()),
        ("_unanchored", pa.bool_()),
        *((name, pa.string()) for name in ("k", "name", "doc")),
        *((name, pa.int64()) for name in ("j", "id", "n", "bought")),
        *((name, pa.float64()) for name in ("f", "x", "y")),
        *((name, pa.bool_()) for name in ("b", "sold")),
    ]
)
SPECIAL = (None, 0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1.5, 1e308, -1e308, 5e-324)
USER = (JavaScriptFunction("last", "function main() {}", AsaType.FLOAT, (None,), is_aggregate=True),)

RUNNING = [
    *("COUNT(*)", "COUNT(x)", "SUM(n)", "SUM(x)", "SUM(y)", "AVG(x)", "AVG(n)", "MIN(x)", "MAX(x)", "MIN(sold)"),
    *("MAX(bought)", "MIN(CAST(name AS nvarchar(max)))", "MAX(CAST(name AS nvarchar(max)))"),
]
"""Aggregates that sliding windows merge from two halves, if there are no others."""
OTHERS = [
    *("SUM(y)", "AVG(x)", "STDEV(y)", "STDEVP(x)", "VAR(n)", "VARP(y)", "VAR(x)"),
    *(f"COUNT(DISTINCT {name})" for name in ("n", "x", "name", "sold", "bought")),
    *("PERCENTILE_CONT(0.9) OVER (ORDER BY x)", "PERCENTILE_CONT(0.123456789) OVER (ORDER BY n DESC)"),
    *("PERCENTILE_DISC(0.3) OVER (ORDER BY x ASC)", "PERCENTILE_DISC(0) OVER (ORDER BY y DESC)"),
    *("TopOne(id) OVER (ORDER BY n DESC)", "TopOne(x) OVER (ORDER BY x)", "TopOne(name) OVER (ORDER BY x DESC, n)"),
    *("TopOne(sold) OVER (ORDER BY bought DESC)", "uda.last(x)", "uda.last(bought)", "uda.last(name)"),
    *("CollectTop(3, doc) OVER (ORDER BY n DESC)", "CollectTop(2, doc) OVER (ORDER BY bought, x)", "Collect(doc)"),
    *("Collect(name)", "Collect(x)", "Collect(bought)"),
]
CASES = [
    ("TumblingWindow(Duration(second, 7), Offset(second, 3))", ("f", "b"), RUNNING),
    ("TumblingWindow(second, 5)", ("k",), OTHERS),
    ("HoppingWindow(second, 10, 4)", ("k", "j"), OTHERS),
    ("HoppingWindow(Duration(second, 6), Hop(second, 2), Offset(second, -1))", (), ["SUM(x)", "VAR(y)"]),
    ("SlidingWindow(second, 5)", ("f",), RUNNING),
    ("SlidingWindow(second, 12)", ("k",), OTHERS),
    ("SessionWindow(second, 4, 5) OVER (PARTITION BY k)", ("k", "j"), RUNNING),
    ("SessionWindow(second, 3, 8)", ("b",), OTHERS[:20]),
    ("System.Timestamp()", ("k",), RUNNING),
    (
        "Windows(Window('a', SlidingWindow(second, 4)), Window('b', TumblingWindow(second, 9)), "
        "Window('c', SessionWindow(second, 1, 12)))",
        ("j",),
        RUNNING,
    ),
]


class World:
    """Rows of several slices: keys with NULL and NaN, equal times, gaps and special floats."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        rows = [row for slice_ in range(SLICES) for row in self._slice(slice_)]
        rows.sort(key=lambda row: (row["_partition"], row["_arrival"]))
        self.rows = pa.Table.from_pylist(rows, SCHEMA)

    def _slice(self, slice_: int) -> list[dict[str, Any]]:
        start = seconds((FIRST_WEEK + slice_) * WEEK + int(self._random.integers(60)))
        end = start + seconds(int(self._random.integers(5, 41)))
        steps = self._one([(0, 0, 1, 1, 2, 2, 3, 5, 6, 9), (0, 1, 1, 2), (5, 5, 4, 10)])
        time = start - seconds(int(self._random.integers(70)))
        rows = []
        for number in range(int(self._random.integers(1, 60))):
            time += seconds(self._one(steps))
            rows.append(
                {
                    **{"_slice_start": start, "_slice_end": end, "_partition": self._one(PARTITIONS), "id": number},
                    "_system_timestamp": time + self._one((0, 0, 0, 0, -1, seconds(1) // 2)),
                    "_arrival": time + seconds(self._one((0, 0, 1, 4))),
                    "_unanchored": self._one((False, False, True)),
                    **{"k": self._one(("a", "a", "B", "", None)), "j": self._one((1, 2, None))},
                    **{"f": self._one((0.0, -0.0, float("nan"), 1.0, None)), "b": self._one((True, False, None))},
                    "n": self._one((None, -2, 0, 3, 2**53 + 1)),
                    "x": self._one(SPECIAL)
                    if slice_ % 3 == 0
                    else self._one((None, -0.0, *self._random.normal(size=4))),
                    "doc": self._one(('{"a":1}', '{"a":2}', None)),
                    "y": self._one((None, *(self._random.normal(size=6) * 10.0 ** self._one((-3, 0, 6))))),
                    "name": self._one(("a", "B", "", "é", "\U0001f600", "\uffff", None)),
                    **{"bought": self._one((None, time, time + 3)), "sold": self._one((True, False, None))},
                }
            )
        return rows

    def _one(self, values: Sequence[Any]) -> Any:
        return values[int(self._random.integers(len(values)))]

    def create_view(self, spark: SparkSession) -> None:
        """Create the view `rows`, with one Spark partition for each partition."""
        parts = [self.rows.filter(pc.equal(self.rows["_partition"], partition)) for partition in PARTITIONS]
        frames = [spark.createDataFrame(part.combine_chunks()).coalesce(1) for part in parts]
        reduce(DataFrame.unionAll, frames).createOrReplaceTempView("rows")


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of all tests, which interprets the queries of these."""
    with interpreting(spark):
        yield spark


@pytest.fixture(scope="module")
def world(spark: SparkSession) -> World:
    world = World(1)
    world.create_view(spark)
    return world


def require_same(spark: SparkSession, rows: pa.Table, grouping: Grouping, look_back: int, unanchored: bool) -> None:
    in_spark = spark.sql(spark_sql("FROM rows", unanchored, grouping, look_back)).toArrow()
    for place in pc.unique(rows["_slice_start"]):
        slice_ = rows.filter(pc.equal(rows["_slice_start"], place))
        bounds = SliceBounds(place.as_py(), slice_["_slice_end"][0].as_py())
        actual = groups(slice_, grouping, bounds, look_back, unanchored)
        expected = in_spark.filter(pc.equal(in_spark["_slice_start"], place)).select(actual.column_names)
        assert exact(actual) == exact(expected)
        assert groups(slice_.slice(0, 0), grouping, bounds, look_back, unanchored).schema == actual.schema


def exact(table: pa.Table) -> list[str]:
    """Return the rows in order, as texts that tell -0.0 from 0.0."""
    return sorted(map(repr, table.to_pylist()))


@pytest.mark.parametrize(("window", "keys", "aggregates"), CASES)
def test_groups_are_those_of_spark(
    spark: SparkSession, world: World, window: str, keys: tuple[str, ...], aggregates: list[str]
) -> None:
    grouping = grouping_of(aggregates, window, keys, USER)
    require_same(spark, world.rows, grouping, seconds(20), unanchored=window.startswith("S"))


@pytest.mark.parametrize(
    ("window", "aggregates"),
    [("HoppingWindow(second, 10, 4)", OTHERS), ("SlidingWindow(second, 5)", ["SUM(x)", "AVG(y)"])],
)
def test_rows_in_no_order_have_the_same_groups_as_in_spark(
    spark: SparkSession, world: World, window: str, aggregates: list[str]
) -> None:
    grouping = grouping_of(aggregates, window, ("k",), USER)
    grouping = replace(grouping, aggregates=tuple(replace(one, ordered=False) for one in grouping.aggregates))
    require_same(spark, world.rows, grouping, 0, unanchored=False)


LARGE = 2**62


@pytest.mark.parametrize(
    ("window", "values", "fits"),
    [
        ("TumblingWindow(second, 10)", [-LARGE, -LARGE], True),
        ("TumblingWindow(second, 10)", [-LARGE, -LARGE, -1], False),
        ("SlidingWindow(second, 10)", [LARGE, -LARGE, LARGE, None, LARGE - 1], True),
        ("SlidingWindow(second, 10)", [LARGE, LARGE], False),
    ],
)
def test_a_sum_that_is_no_bigint_stops_the_run(
    spark: SparkSession, window: str, values: list[int | None], fits: bool
) -> None:
    start = seconds(FIRST_WEEK * WEEK)
    times = [start + seconds(number + 1) for number in range(len(values))]
    columns = {"_system_timestamp": times, "_arrival": times, "n": values, "_partition": ["0"] * len(values)}
    columns |= {"_slice_start": [start] * len(values), "_slice_end": [start + seconds(30)] * len(values)}
    rows = pa.table({name: pa.array(columns[name], SCHEMA.field(name).type) for name in columns})
    spark.createDataFrame(rows).coalesce(1).createOrReplaceTempView("large")
    grouping, bounds = grouping_of(["SUM(n)"], window), SliceBounds(start, start + seconds(30))
    sql = spark_sql("FROM large", False, grouping, 0)
    if fits:
        assert exact(groups(rows, grouping, bounds, 0, False)) == exact(
            spark.sql(sql).toArrow().select(["_window_id", "_window_end", "_r0"])
        )
        return
    with pytest.raises(PySparkException, match="ARITHMETIC_OVERFLOW"):
        spark.sql(sql).collect()
    with pytest.raises(RunError, match="SUM: the sum of bigints is too large"):
        groups(rows, grouping, bounds, 0, False)
