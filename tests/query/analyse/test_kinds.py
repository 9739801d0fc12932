"""Fields that nothing declares: where ASA's result depends on the type of each value, so does ours."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from tests.oracle_windows import Event
from tests.query.fast_path import Slice, compiled, published
from tests.query.streams import FIRST_WEEK, WEEK, seconds

NUMBERS = (7, -7, 2, 7.0, -7.5, 2.5)
"""Numbers as bodies hold them: 7 is a bigint in ASA, 7.0 a float."""
VALUES = (9007199254740992, 9007199254740993, 5, 5.0, 5.5, "5", "a", "b", True, False, None)


def rows(query: str, payloads: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the published rows of events, one a second."""
    zero = seconds(FIRST_WEEK * WEEK)
    events = [Event(zero + seconds(second), payload) for second, payload in enumerate(payloads, 1)]
    [published_rows] = published(compiled(query), [Slice(zero, zero + seconds(1000), events)])
    return published_rows


def quotient(left: float, right: float) -> float:
    """Return left / right as T-SQL does: of whole numbers the quotient cut towards zero."""
    if isinstance(left, int) and isinstance(right, int):
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return left / right


def less(left: Any, right: Any) -> bool | None:
    """Return left < right of two values of a body; NULL next to null; false for values of different types and bits."""
    if left is None or right is None:
        return None
    same_type = type(left) is type(right) or not {type(left), type(right)} - {int, float}
    return same_type and not isinstance(left, bool) and left < right


def equal(left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    same_type = type(left) is type(right) or not {type(left), type(right)} - {int, float}
    return same_type and left == right


PAIRS = [{"a": a, "b": b, "c": a} for a, b in itertools.product(NUMBERS, NUMBERS)]

QUOTIENTS: dict[str, Callable[[dict[str, Any]], float]] = {
    "a / b": lambda event: quotient(event["a"], event["b"]),
    "a / 2": lambda event: quotient(event["a"], 2),
    "a / 2.0": lambda event: event["a"] / 2.0,
    "(a * 3 + 1) / b": lambda event: quotient(event["a"] * 3 + 1, event["b"]),
    "-a / b / 2": lambda event: quotient(quotient(-event["a"], event["b"]), 2),
    "ABS(a) / NULLIF(b, 0)": lambda event: quotient(abs(event["a"]), event["b"]),
    "CASE WHEN a > 2 THEN a ELSE b END / 2": lambda e: quotient(e["a"] if e["a"] > 2 else e["b"], 2),
    "COALESCE(missing, a) / 2": lambda event: quotient(event["a"], 2),
    "MAX(a) OVER (LIMIT DURATION(microsecond, 1)) / 2": lambda event: quotient(event["a"], 2),
    "LAG(a, 9, b) OVER (LIMIT DURATION(second, 1)) / 2": lambda event: quotient(event["b"], 2),
    "b / COUNT(a) OVER (LIMIT DURATION(microsecond, 1))": lambda event: event["b"],
    "CAST(a AS float) / 2": lambda event: event["a"] / 2,
    "CAST(a AS bigint) / 2": lambda event: quotient(int(event["a"]), 2),
}
"""Expressions, each with what it gives for an event."""


def test_a_quotient_of_bigints_is_whole() -> None:
    columns = ", ".join(f"{expression} AS q{number}" for number, expression in enumerate(QUOTIENTS))
    actual = rows(f"SELECT System.Timestamp() AS t, {columns} INTO out FROM telemetry", PAIRS)
    actual.sort(key=lambda row: row["t"])
    for number, (expression, expected) in enumerate(QUOTIENTS.items()):
        assert [row[f"q{number}"] for row in actual] == [expected(event) for event in PAIRS], expression


def test_fields_are_compared_by_the_types_of_their_values() -> None:
    results = (
        f"CASE WHEN a {sign} b THEN 1 WHEN NOT a {sign} b THEN 0 END AS {name}"
        for sign, name in (("=", "e"), ("<", "l"))
    )
    pairs = [{"a": a, "b": b} for a, b in itertools.product(VALUES, VALUES)]
    actual = rows(f"SELECT {', '.join(results)} INTO out FROM telemetry", pairs)
    assert [row["e"] for row in actual] == [int(bool(equal(event["a"], event["b"]))) for event in pairs]
    assert [row["l"] for row in actual] == [int(bool(less(event["a"], event["b"]))) for event in pairs]


def test_types_of_values_are_read_only_where_a_result_depends_on_them() -> None:
    plain = compiled("SELECT a + b * 2 AS x, c INTO out FROM telemetry WHERE a > 1 AND c = 'x'")
    assert not any(column.is_kind for column in plain.inputs[0].columns)
    divided = compiled("SELECT a / b AS x, c, d / 2.5 AS y INTO out FROM telemetry")
    assert {column.path for column in divided.inputs[0].columns if column.is_kind} == {("a",), ("b",)}


def test_a_comparison_may_be_repeated_over_a_step() -> None:
    step = "WITH s AS (SELECT a, b FROM telemetry)"
    assert compiled(f"{step} SELECT CASE WHEN a < b THEN 1 WHEN a = b THEN 2 END AS r INTO out FROM s").outputs


TYPES: dict[str, Callable[[Any], str | int | None]] = {
    "GetType(a)": lambda a: type_name(a),
    "GetType(COALESCE(missing, a))": lambda a: type_name(a),
    "GetType(LAG(a, 9, a) OVER (LIMIT DURATION(second, 1)))": lambda a: type_name(a),
    "GetType(CASE WHEN GetType(a) = 'float' THEN a END)": lambda a: "float" if type_name(a) == "float" else None,
    "CASE WHEN GetType(a) = 'array' THEN GetArrayLength(TRY_CAST(a AS array)) END": lambda a: (
        len(a) if isinstance(a, list) else None
    ),
}
"""Expressions, each with what it gives for a value of a body."""
NUMERIC = ("n", "n + 1", "n * 1.0", "-n", "ABS(n)", "CEILING(n)", "FLOOR(n)", "ROUND(n, 0)", "SIGN(n)", "POWER(n, 2)")
"""Expressions that have the type of n, but for n * 1.0."""


def type_name(value: Any) -> str | None:
    names = {bool: "bit", int: "bigint", float: "float", str: "nvarchar(max)", dict: "record", list: "array"}
    return None if value is None else names[type(value)]


def test_get_type_is_the_type_of_each_value_of_a_body() -> None:
    columns = ", ".join(f"{expression} AS t{number}" for number, expression in enumerate(TYPES))
    values = [*VALUES, "2026-03-01T10:00:00Z", {"b": 1}, [1, 2], [], 1e300]
    query = f"SELECT System.Timestamp() AS at, {columns} INTO out FROM telemetry"
    actual = sorted(rows(query, [{"a": value} for value in values]), key=lambda row: row["at"])
    for number, (expression, expected) in enumerate(TYPES.items()):
        assert [row[f"t{number}"] for row in actual] == [expected(value) for value in values], expression


def test_get_type_of_a_number_that_is_computed_is_that_of_its_operands() -> None:
    columns = ", ".join(f"GetType({expression}) AS t{number}" for number, expression in enumerate(NUMERIC))
    actual = rows(f"SELECT {columns} INTO out FROM telemetry", [{"n": n} for n in (5, 5.0, -7, 2.5, None)])
    for row, expected in zip(actual, ("bigint", "float", "bigint", "float", None), strict=True):
        product_type = None if expected is None else "float"
        assert list(row.values()) == [product_type if "1.0" in text else expected for text in NUMERIC]


def test_a_record_of_a_step_has_each_value_in_its_own_type() -> None:
    query = (
        "WITH s AS (SELECT a, b AS [it's], System.Timestamp() AS at FROM telemetry)\n"
        "SELECT Collect() AS whole, Collect(a) AS listed, TopOne() OVER (ORDER BY at DESC) AS last,"
        " CollectTop(1, a) OVER (ORDER BY at) AS first INTO out FROM s GROUP BY TumblingWindow(second, 1000)"
    )
    values = (5, 5.5, "5", 'a "b"\n', True, False, None, {"c": [1, "x"]}, [1, "2"])
    [row] = rows(query, [{"a": value, "b": value} for value in values])
    assert [(event["a"], event["it's"]) for event in row["whole"]] == [(value, value) for value in values]
    assert row["listed"] == list(values)
    assert row["first"][0]["value"] == 5
    assert row["last"]["a"] == [1, "2"]


def test_get_type_of_declared_fields_needs_no_types_of_single_values() -> None:
    query = compiled("CREATE TABLE telemetry (x float) SELECT GetType(x) AS t INTO out FROM telemetry")
    assert not any(column.is_kind for column in query.inputs[0].columns)
