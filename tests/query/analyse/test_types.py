"""How types behave in expressions: bigint and float, NULL, JSON elements of many types, datetimes of 100 ns."""

from typing import Any

import pytest

from recapture.errors import DefinitionError
from recapture.model import AsaType
from tests.query.small_stream import at, compiled, rows

TABLE = "CREATE TABLE telemetry (i bigint, j bigint, x float, s nvarchar(max), b bit, d datetime, r record, a array)\n"


def select(items: str, *events: dict[str, Any], clauses: str = "") -> list[dict[str, Any]]:
    [actual] = rows(f"{TABLE}SELECT {items} INTO out FROM telemetry {clauses}", events)
    return actual


@pytest.mark.parametrize("window", ["Tumbling(minute, 1)", "Sliding(minute, 1)", "Session(minute, 1, 2)"])
def test_min_and_max_of_a_cast_to_text_follow_code_points(window: str) -> None:
    texts = ["b", None, "a", "B", "\ufffd", "😀", "é", "-1", "10", "9"]
    text = "nvarchar(max)"
    items = f"MIN(CAST(s AS {text})) AS least, MAX(TRY_CAST(s AS {text})) AS most, MIN(CAST(i AS {text})) AS i"
    events = [at(1, s=text, i=number) for number, text in enumerate(texts, 9)]
    actual = select(items, *events, clauses=f"GROUP BY {window}")
    assert actual == [{"least": "-1", "most": "😀", "i": "10"}]
    assert (min(filter(None, texts)), max(filter(None, texts))) == ("-1", "😀")
    assert select(items, at(1, s=None, i=None), clauses=f"GROUP BY {window}") == [
        {"least": None, "most": None, "i": None}
    ]


def test_min_and_max_of_a_string_without_a_cast_convert_it_to_a_float() -> None:
    items = "MIN(s) AS least, MAX(LEFT(s, 2)) AS most, MAX('1') AS one"
    texts = ["9", None, "10", "-1.5"]
    assert select(items, *(at(1, s=text) for text in texts), clauses="GROUP BY Tumbling(minute, 1)") == [
        {"least": -1.5, "most": 10.0, "one": 1.0}
    ]
    actual = select("MAX(s) OVER (LIMIT DURATION(hour, 1)) AS most", at(1, s="9"), at(2, s="10"))
    assert sorted(row["most"] for row in actual) == [9.0, 10.0]
    with pytest.raises(Exception, match=r"CAST_INVALID_INPUT|cannot be cast"):
        select("MIN(s) AS least", at(1, s="a"), clauses="GROUP BY Tumbling(minute, 1)")


def test_arithmetic_with_the_literal_null_is_null() -> None:
    items = "s + NULL AS a, NULL + x AS b, i - NULL AS c, 'x' + NULL AS d"
    assert select(items, at(1, s="a", x=1.5, i=2)) == [{"a": None, "b": None, "c": None, "d": None}]
    undeclared = compiled("SELECT s + NULL AS a, NULL + s AS b, UPPER(s) AS c, 1 - NULL AS d INTO out FROM telemetry")
    assert [column.type for column in undeclared.outputs[0].columns] == [*[AsaType.STRING] * 3, AsaType.BIGINT]


def test_what_cannot_be_cast_stops_the_run_and_try_cast_gives_null() -> None:
    events = [at(1, s="12"), at(2, s="x")]
    assert select("TRY_CAST(s AS bigint) AS n", *events) == [{"n": 12}, {"n": None}]
    with pytest.raises(Exception, match=r"CAST_INVALID_INPUT|cannot be cast"):
        select("CAST(s AS bigint) AS n", *events)


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
