"""What the generated Spark SQL computes on small frames."""

import math
import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import Row, SparkSession

from recapture.errors import RunError
from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from recapture.time_model.ticks import TICKS_PER_SECOND, from_datetime
from tests.query import views
from tests.settings import SHUFFLE_PARTITIONS, spark_setting

START = from_datetime(datetime(2026, 3, 1, 10, tzinfo=UTC))
HOUR = 3600 * TICKS_PER_SECOND

Event = dict[str, Any]
Run = Callable[..., list[Row]]


def seconds(time: float) -> int:
    return START + round(time * TICKS_PER_SECOND)


def event(time: float, partition: str = "0", **fields: object) -> Event:
    return {"_system_timestamp": seconds(time), "_partition": partition, **fields}


def compiled(text: str) -> CompiledQuery:
    return compile_query(text, inputs={"telemetry": CaptureInput.metadata}, output_aliases=["aggregates"])


def published(
    spark: SparkSession, query: CompiledQuery, events: Iterable[Event], start: int = START, end: int = START + HOUR
) -> list[Row]:
    """Return the rows that a query publishes for the slice (start, end]. A field that an event lacks is NULL."""
    of_slice = {"_slice_start": start, "_slice_end": end}
    rows = ({**of_slice, "_arrival": row["_system_timestamp"], **row} for row in events)
    views.create(spark, query, {query.inputs[0].alias: rows})
    return spark.sql(query.outputs[0].sql).collect()


@pytest.fixture
def run(spark: SparkSession) -> Run:
    def rows(select: str, clauses: str, events: Iterable[Event], **slice_: int) -> list[Row]:
        query = compiled(f"SELECT {select} INTO aggregates FROM telemetry TIMESTAMP BY eventTime {clauses}")
        return published(spark, query, events, **slice_)

    return rows


def utc(local: datetime) -> datetime:
    """Return in UTC what PySpark collects of a timestamp: a naive datetime in the machine's zone."""
    return local.astimezone(UTC)


def ends_of(rows: Iterable[Row], origin: int = START) -> dict[float, int]:
    """Return the count of each window, by its end in seconds from an origin."""
    return {(from_datetime(utc(row.e)) - origin) / TICKS_PER_SECOND: row.n for row in rows}


@pytest.mark.parametrize("window", ["TumblingWindow(second, 10)", "SlidingWindow(second, 10)"])
def test_a_text_that_looks_like_a_select_item_stays_a_text(run: Run, window: str) -> None:
    [row] = run(
        "k, SUM(CASE WHEN k = 'a AS b' THEN v ELSE 0.0 END) AS s,"
        " CollectTop(1, CONCAT(k, ' AS ', k)) OVER (ORDER BY v) AS c",
        f"GROUP BY k, {window}",
        [event(10, k="a AS b", v=2.0)],
    )
    assert (row.k, row.s, row.c) == ("a AS b", 2.0, '[{"rank":1,"value":"a AS b AS a AS b"}]')


def test_ends_are_inclusive_and_starts_are_not(run: Run) -> None:
    rows = run(
        "System.Timestamp() AS e, COUNT(*) AS n",
        "GROUP BY Tumbling(second, 10)",
        [event(10), event(10.0000001), event(20)],
    )
    assert ends_of(rows) == {10: 1, 20: 2}
    rows = run(
        "System.Timestamp() AS e, COUNT(*) AS n", "GROUP BY Hopping(second, 10, 5)", [event(10), event(10.0000001)]
    )
    assert ends_of(rows) == {10: 1, 15: 2, 20: 1}


@pytest.mark.parametrize("window", ["Tumbling(minute, 10)", "Hopping(minute, 10, 5)"])
def test_only_windows_that_end_in_the_slice_are_published(run: Run, window: str) -> None:
    events = [event(-1), event(0), event(1), event(3600), event(3601)]
    rows = run("System.Timestamp() AS e, COUNT(*) AS n", f"GROUP BY {window}", events)
    if window.startswith("Tumbling"):
        assert ends_of(rows) == {600: 1, 3600: 1}
    else:
        assert ends_of(rows) == {300: 3, 600: 1, 3600: 1}


def test_a_window_longer_than_the_slice_has_no_end_in_most_slices(run: Run) -> None:
    assert run("COUNT(*) AS n", "GROUP BY Tumbling(day, 1)", [event(1)]) == []
    assert run("COUNT(*) AS n", "GROUP BY Hopping(day, 2, 1)", [event(1)]) == []


def test_empty_groups_give_no_row(run: Run) -> None:
    assert run("COUNT(*) AS n", "GROUP BY Tumbling(second, 10)", []) == []
    rows = run("k, COUNT(*) AS n", "GROUP BY k, Hopping(second, 10, 10)", [event(1, k="a"), event(11, k="b")])
    assert sorted((row.k, row.n) for row in rows) == [("a", 1), ("b", 1)]


def test_seven_day_windows_end_on_monday_midnight(run: Run) -> None:
    sunday = from_datetime(datetime(2026, 3, 1, 23, tzinfo=UTC))
    rows = run(
        "System.Timestamp() AS e, COUNT(*) AS n",
        "GROUP BY Tumbling(day, 7)",
        [event(1)],
        start=sunday,
        end=sunday + HOUR,
    )
    assert [utc(row.e) for row in rows] == [datetime(2026, 3, 2, tzinfo=UTC)]
    assert utc(rows[0].e).weekday() == 0


def test_an_offset_moves_the_ends(run: Run) -> None:
    rows = run(
        "System.Timestamp() AS e, COUNT(*) AS n", "GROUP BY Tumbling(s, 10, -1)", [event(9), event(9.5), event(20)]
    )
    assert ends_of(rows) == {9: 1, 19: 1, 29: 1}
    rows = run("System.Timestamp() AS e, COUNT(*) AS n", "GROUP BY Hopping(s, 10, 5, 2)", [event(7.5)])
    assert ends_of(rows) == {12: 1, 17: 1}


def test_slices_are_computed_apart_and_named(spark: SparkSession) -> None:
    query = compiled("SELECT COUNT(*) AS n INTO aggregates FROM telemetry GROUP BY Tumbling(hour, 1)")
    second = {"_slice_start": START + HOUR, "_slice_end": START + 2 * HOUR}
    rows = published(spark, query, [event(1), event(2), {**event(3601), **second}])
    assert rows[0].__fields__ == ["n", "slice_start"]
    assert sorted((utc(row.slice_start), row.n) for row in rows) == [
        (datetime(2026, 3, 1, 10, tzinfo=UTC), 2),
        (datetime(2026, 3, 1, 11, tzinfo=UTC), 1),
    ]


def test_aggregates_ignore_null_and_count_star_does_not(run: Run) -> None:
    rows = run(
        "k, COUNT(*) AS every, COUNT(v) AS n, SUM(v) AS s, AVG(v) AS a, MIN(v) AS low, MAX(v) AS high",
        "GROUP BY k, Tumbling(minute, 1)",
        [
            event(1, k="a", v=1.0),
            event(2, k="a"),
            event(3, "1", k="a", v=4.0),
            event(4, "2", k="a"),
            event(5, k="nothing"),
            event(6, "1", k="nothing"),
        ],
    )
    assert {row.k: tuple(row)[1:-1] for row in rows} == {
        "a": (4, 2, 5.0, 2.5, 1.0, 4.0),
        "nothing": (2, 0, None, None, None, None),
    }


def test_null_keys_form_a_group(run: Run) -> None:
    rows = run("k, COUNT(*) AS n", "GROUP BY k, Tumbling(s, 10)", [event(1), event(2, "1"), event(3, k="a")])
    assert {row.k: row.n for row in rows} == {None: 2, "a": 1}


def test_fields_may_be_nested_and_have_odd_names(run: Run) -> None:
    fields = {"site.id": "x", "site.the `floor`": "1"}
    office: Event = {**event(1), **fields, "site.kind": "office", "a.b.c": 2.0}
    barn: Event = {**event(1), **fields, "site.kind": "barn", "a.b.c": 5.0}
    rows = run(
        "site.id, telemetry.site.[the `floor`] AS f, SUM([a.b].c) AS s",
        "WHERE site.kind = 'office' GROUP BY site.id, site.[the `floor`], Tumbling(s, 10)",
        [office, barn],
    )
    assert [(row.id, row.f, row.s) for row in rows] == [("x", "1", 2.0)]


def test_where_filters_events_and_having_groups(run: Run) -> None:
    events = [
        event(i, k=k, v=v) for i, (k, v) in enumerate([("a", 1.0), ("a", 5.0), ("b", 9.0), ("c", None), ("a", 7.0)], 1)
    ]
    select, group = "k, COUNT(*) AS n, SUM(v) AS s", "GROUP BY k, Tumbling(s, 10)"
    rows = run(select, f"WHERE v BETWEEN 2 AND 9 {group}", events)
    assert {row.k: (row.n, row.s) for row in rows} == {"a": (2, 12.0), "b": (1, 9.0)}
    rows = run(select, f"WHERE NOT v > 4 OR v IS NULL {group}", events)
    assert {row.k: row.n for row in rows} == {"a": 1, "c": 1}
    rows = run(select, f"WHERE k NOT IN ('a', 'c') AND v IS NOT NULL {group}", events)
    assert {row.k: row.n for row in rows} == {"b": 1}
    rows = run(
        select, f"{group} HAVING COUNT(*) >= 2 AND MAX(v) < 8 AND System.Timestamp() > '2026-03-01T10:00:05Z'", events
    )
    assert {row.k: row.n for row in rows} == {"a": 3}
    rows = run(select, f"{group} HAVING System.Timestamp > '2026-03-01 10:00:10'", events)
    assert rows == []


def test_case_counts_conditionally(run: Run) -> None:
    rows = run(
        "SUM(CASE WHEN s = 'on' THEN 1 ELSE 0 END) AS n, SUM(CASE s WHEN 'on' THEN v END) AS w",
        "GROUP BY Tumbling(s, 10)",
        [event(1, s="on", v=2.5), event(2, s="off", v=9.0), event(3)],
    )
    assert [(row.n, row.w) for row in rows] == [(1, 2.5)]


def test_strings_compare_exactly(run: Run) -> None:
    odd = "it's a \\ ${env:HOME} \u20ac"
    rows = run(
        "COUNT(*) AS n",
        "WHERE s = 'it''s a \\ ${env:HOME} \u20ac' GROUP BY Tumbling(s, 10)",
        [event(1, s=odd), event(2, s=odd.upper()), event(3, s=odd + " ")],
    )
    assert [row.n for row in rows] == [1]


def declared(spark: SparkSession, select: str, events: Iterable[Event], where: str = "") -> list[Row]:
    text = (
        "CREATE TABLE telemetry (i bigint, j bigint, x float, up bit, at datetime)\n"
        f"SELECT {select} INTO aggregates FROM telemetry {where} GROUP BY Tumbling(s, 10)"
    )
    return published(spark, compiled(text), events)


def test_bigints_divide_as_integers_and_floats_do_not(spark: SparkSession) -> None:
    rows = declared(
        spark,
        "SUM(i) / COUNT(*) AS a, SUM(i / j) AS b, SUM(i % j) AS c, SUM(i / 2.0) AS d,"
        " AVG(i) AS e, SUM(x) / 2 AS f, -SUM(i) AS g",
        [event(1, i=-7, j=2, x=1.0), event(2, "1", i=0, j=2, x=2.0)],
    )
    assert [tuple(row)[:-1] for row in rows] == [(-3, -3, -1, -3.5, -3.5, 1.5, 7)]


def test_sums_of_bigints_are_exact_beyond_the_floats(spark: SparkSession) -> None:
    rows = declared(spark, "SUM(i) AS s", [event(1, i=2**53), event(2, "1", i=1)])
    assert rows[0].s == 2**53 + 1


def test_bits_and_datetimes_are_compared_and_aggregated(spark: SparkSession) -> None:
    times = [datetime(2026, 3, 1, 9, 59, 59, 500_000, tzinfo=UTC), datetime(2026, 3, 1, 11, tzinfo=UTC)]
    rows = declared(
        spark,
        "MAX(up) AS up, MIN(at) AS first",
        [
            event(1, up=True, at=from_datetime(times[0])),
            event(2, up=True, at=from_datetime(times[1])),
            event(3, up=False, at=from_datetime(times[1])),
        ],
        "WHERE up = 1 AND at >= '2026-03-01T10:59:59.5+01:00'",
    )
    assert [(row.up, utc(row.first)) for row in rows] == [(True, times[0])]


def test_division_by_zero_and_overflow_fail_rather_than_give_null(spark: SparkSession) -> None:
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        declared(spark, "SUM(i / j) AS s", [event(1, i=1, j=0)])
    too_large = [event(1, i=2**63 - 1), event(2, "1", i=1)]
    with pytest.raises(ArithmeticException, match="OVERFLOW"):
        declared(spark, "SUM(i + 0) AS s", too_large)
    with pytest.raises(RunError, match="the sum of bigints is too large for a bigint"):
        declared(spark, "SUM(i) AS s", too_large)


def test_a_guarded_division_by_zero_is_null(spark: SparkSession) -> None:
    rows = declared(spark, "SUM(CASE WHEN j = 0 THEN NULL ELSE i / j END) AS s", [event(1, i=1, j=0)])
    assert rows[0].s is None


def test_float_sums_do_not_depend_on_how_spark_arranges_the_partitions(spark: SparkSession) -> None:
    query = compiled(
        "SELECT k, SUM(v) AS s, AVG(v) AS a, MIN(z) AS z INTO aggregates FROM telemetry GROUP BY k, Hopping(s, 60, 30)"
    )
    chance = random.Random(7)
    events = [
        event(
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
            rows = published(spark, query, arranged)
        results.add(tuple(sorted((row.k, row.s.hex(), row.a.hex(), row.z.hex()) for row in rows)))
    assert len(results) == 1


def test_partitions_are_summed_in_the_order_of_their_ids(run: Run) -> None:
    values = {"0": 1e16, "1": 1.0, "2": -1e16, "3": 1.0}
    rows = run("SUM(v) AS s", "GROUP BY Tumbling(s, 10)", [event(1, p, v=v) for p, v in values.items()])
    assert rows[0].s == ((1e16 + 1.0) - 1e16) + 1.0
    assert rows[0].s != math.fsum(values.values())
