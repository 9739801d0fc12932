"""How types behave in expressions: bigint and float, NULL, JSON elements of many types, datetimes of 100 ns."""

from typing import TYPE_CHECKING, Any

import pytest

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.time_model.ticks import TICKS_PER_SECOND
from tests.query.small_stream import START, at, compiled, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "CREATE TABLE telemetry (i bigint, j bigint, x float, s nvarchar(max), b bit, d datetime, r record, a array)\n"


def select(spark: "SparkSession", items: str, *events: dict[str, Any], clauses: str = "") -> list[dict[str, Any]]:
    [actual] = rows(spark, f"{TABLE}SELECT {items} INTO out FROM telemetry {clauses}", events)
    return actual


def test_bigints_stay_exact_and_become_floats_only_next_to_floats(spark: "SparkSession") -> None:
    [row] = select(
        spark,
        "i + 1 AS next, i / 2 AS half, i % 10 AS digit, i / 2.0 AS exact_half, -i AS minus, i * x AS product,"
        " i & 6 AS bits",
        at(1, i=9_007_199_254_740_993, x=0.5),
    )
    assert row == {
        "next": 9_007_199_254_740_994,
        "half": 4_503_599_627_370_496,
        "digit": 3,
        "exact_half": 4_503_599_627_370_496.0,
        "minus": -9_007_199_254_740_993,
        "product": 4_503_599_627_370_496.0,
        "bits": 0,
    }
    assert [type(value) for value in row.values()] == [int, int, int, float, int, float, int]


def test_operators_of_bits_give_a_bit_and_null_next_to_null(spark: "SparkSession") -> None:
    items = "b & CAST(1 AS bit) AS both, b | CAST(0 AS bit) AS one, b ^ CAST(1 AS bit) AS differ, ~b AS opposite"
    actual = select(spark, f"i, {items}", at(1, i=0, b=False), at(2, i=1, b=True), at(3, i=2, b=None))
    assert [list(row.values()) for row in actual] == [
        [0, False, False, True, True],
        [1, True, True, False, False],
        [2, None, None, None, None],
    ]
    [row] = select(spark, "b & CAST(0 AS bit) AS none, i & b AS mixed, 3 ^ b AS odd", at(1, i=3, b=True))
    assert row == {"none": False, "mixed": 1, "odd": 2}
    assert [type(value) for value in row.values()] == [bool, int, int]
    assert select(spark, "b & CAST(0 AS bit) AS unknown", at(1, b=None)) == [{"unknown": None}]


@pytest.mark.parametrize("window", ["Tumbling(minute, 1)", "Sliding(minute, 1)", "Session(minute, 1, 2)"])
def test_min_and_max_of_a_cast_to_text_follow_code_points(spark: "SparkSession", window: str) -> None:
    texts = ["b", None, "a", "B", "\ufffd", "😀", "é", "-1", "10", "9"]
    text = "nvarchar(max)"
    items = f"MIN(CAST(s AS {text})) AS least, MAX(TRY_CAST(s AS {text})) AS most, MIN(CAST(i AS {text})) AS i"
    events = [at(1, s=text, i=number) for number, text in enumerate(texts, 9)]
    actual = select(spark, items, *events, clauses=f"GROUP BY {window}")
    assert actual == [{"least": "-1", "most": "😀", "i": "10"}]
    assert (min(filter(None, texts)), max(filter(None, texts))) == ("-1", "😀")
    assert select(spark, items, at(1, s=None, i=None), clauses=f"GROUP BY {window}") == [
        {"least": None, "most": None, "i": None}
    ]


def test_the_largest_and_the_smallest_bigint_are_read_and_written(spark: "SparkSession") -> None:
    text = "MAX(i) AS largest, MIN(i) AS smallest, COUNT(DISTINCT i) AS n"
    values = [2**63 - 1, -(2**63), 2**63 - 2]
    [row] = select(spark, text, *(at(1, i=value) for value in values), clauses="GROUP BY Tumbling(minute, 1)")
    assert row == {"largest": 2**63 - 1, "smallest": -(2**63), "n": 3}


def test_comparisons_with_null_are_false_and_aggregates_skip_it(spark: "SparkSession") -> None:
    events = [at(1, i=1, s="a"), at(2, s="b"), at(3, i=3)]
    assert select(spark, "i", *events, clauses="WHERE i <> 1") == [{"i": 3}]
    assert select(spark, "i", *events, clauses="WHERE NOT (i = 1 OR s = 'b')") == [{"i": 3}]
    [row] = select(
        spark,
        "COUNT(*) AS events, COUNT(i) AS n, SUM(i) AS total, AVG(i) AS mean, SUM(j) AS nothing, COUNT(DISTINCT s) AS k",
        *events,
        clauses="GROUP BY Tumbling(minute, 1)",
    )
    assert row == {"events": 3, "n": 2, "total": 4, "mean": 2.0, "nothing": None, "k": 2}


def test_null_is_a_group_of_its_own(spark: "SparkSession") -> None:
    actual = select(spark, "s, COUNT(*) AS n", at(1, s="a"), at(2), at(3), clauses="GROUP BY s, Tumbling(minute, 1)")
    assert actual == [{"s": "a", "n": 1}, {"s": None, "n": 2}]


def test_datetimes_count_100_ns_and_are_published_in_microseconds(spark: "SparkSession") -> None:
    tick = START + 7
    events = [at(1, d=tick), at(2, d=tick + 1), at(3, d=tick + 20)]
    assert [row["d"] for row in select(spark, "d", *events)] == [0.0, 0.0, 2e-06]
    later = select(spark, "d", *events, clauses="WHERE d > '2026-03-01T10:00:00.0000007Z'")
    assert [row["d"] for row in later] == [0.0, 2e-06]
    [row] = select(spark, "COUNT(DISTINCT d) AS n, MAX(d) AS last", *events, clauses="GROUP BY Tumbling(minute, 1)")
    assert row == {"n": 3, "last": 2e-06}


def test_a_time_without_a_zone_is_utc(spark: "SparkSession") -> None:
    events = [at(1, d=START), at(2, d=START + TICKS_PER_SECOND)]
    for literal in ("2026-03-01T10:00:00", "2026-03-01 10:00:00", "2026-03-01T11:00:00+01:00", "2026-03-01T10:00:00Z"):
        assert select(spark, "d", *events, clauses=f"WHERE d = '{literal}'") == [{"d": 0.0}]


def test_an_element_of_json_is_what_its_use_asks_for(spark: "SparkSession") -> None:
    items = "GetArrayElement(a, {n}) AS text, GetArrayElement(a, {n}) * 2 AS number"
    mixed = at(1, a=[1, "2", 2.5, None, {"k": "v"}, [7]], r={"n": 4, "deep": {"t": "2026-03-01T10:00:09Z"}})
    assert select(spark, items.format(n=0), mixed) == [{"text": "1", "number": 2.0}]
    assert select(spark, items.format(n=1), mixed) == [{"text": "2", "number": 4.0}]
    assert select(spark, items.format(n=2), mixed) == [{"text": "2.5", "number": 5.0}]
    assert select(spark, items.format(n=3), mixed) == [{"text": None, "number": None}]
    [row] = select(
        spark,
        "GetArrayElement(a, 4).k AS k, GetArrayElement(GetArrayElement(a, 5), 0) AS seven, GetArrayLength(a) AS n,"
        " r.n + 1 AS five, GetRecordPropertyValue(r, 'n') AS four,"
        " DATEADD(second, 1, CAST(r.deep.t AS datetime)) AS t, r AS r",
        mixed,
    )
    assert row == {"k": "v", "seven": "7", "n": 6, "five": 5.0, "four": "4", "t": 10.0, "r": mixed["r"]}


def test_what_cannot_be_cast_stops_the_run_and_try_cast_gives_null(spark: "SparkSession") -> None:
    events = [at(1, s="12"), at(2, s="x")]
    assert select(spark, "TRY_CAST(s AS bigint) AS n", *events) == [{"n": 12}, {"n": None}]
    with pytest.raises(Exception, match=r"CAST_INVALID_INPUT|cannot be cast"):
        select(spark, "CAST(s AS bigint) AS n", *events)


def test_a_number_of_json_is_cast_as_a_number_and_not_as_its_text(spark: "SparkSession") -> None:
    text = "SELECT TRY_CAST(v AS bigint) AS n, TRY_CAST(v AS record) AS r INTO out FROM telemetry"
    values = ["5", "5.0", "-7.9", "1e3", "true", "x", "9007199254740993"]
    [actual] = rows(spark, text, [at(index, v=value) for index, value in enumerate(values, 1)])
    numbers = [5, 5, -7, 1000, 1, None, 9_007_199_254_740_993]
    assert sorted(str(row["n"]) for row in actual) == sorted(map(str, numbers))
    assert {row["r"] for row in actual} == {None}


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ("x", AsaType.STRING),
        ("x + 1", AsaType.FLOAT),
        ("CASE WHEN x = 'a' THEN 1 ELSE 2 END", AsaType.BIGINT),
        ("CASE WHEN y THEN 1 END", None),
        ("CASE WHEN y = 1 THEN x WHEN y = 2 THEN x ELSE 0 END", AsaType.FLOAT),
        ("COALESCE(x, 1.5)", AsaType.FLOAT),
        ("UPPER(x)", AsaType.STRING),
        ("DATEADD(hour, 1, x)", AsaType.DATETIME),
        ("DATEDIFF(hour, x, y)", AsaType.BIGINT),
        ("GetArrayLength(x)", AsaType.BIGINT),
        ("x.y", AsaType.STRING),
        ("System.Timestamp()", AsaType.DATETIME),
    ],
)
def test_without_create_table_the_use_determines_the_type(item: str, kind: AsaType | None) -> None:
    text = f"SELECT {item} AS v INTO out FROM telemetry"
    if kind is None:
        with pytest.raises(DefinitionError, match="a condition is expected"):
            compiled(text)
    else:
        assert compiled(text).outputs[0].columns[0].type is kind


def test_a_type_asked_for_in_a_later_step_is_that_of_the_field() -> None:
    query = compiled("""
        WITH a AS (SELECT v AS w, t AS u FROM telemetry), b AS (SELECT w AS x, u FROM a)
        SELECT SUM(x) AS s, MAX(DATEADD(second, 1, u)) AS m INTO out FROM b GROUP BY Tumbling(minute, 1)
    """)
    assert {column.name: column.type for column in query.inputs[0].columns} == {
        "v": AsaType.FLOAT,
        "t": AsaType.DATETIME,
    }


def test_conflicting_uses_are_reported_at_the_second_use() -> None:
    with pytest.raises(DefinitionError, match=r"line 1, column 26: `v` is used as .* here and as .* elsewhere"):
        compiled("SELECT v + 1 AS a, UPPER(v) AS b INTO out FROM telemetry")
