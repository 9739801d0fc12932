"""The conversions between ASA's types and JavaScript's, in both directions, as Microsoft's page lists them."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from recapture.javascript.columns import DATE, JSON
from recapture.javascript.engine import V8Engine
from recapture.model import AsaType, JavaScriptFunction
from recapture.time_model.ticks import from_datetime

SEEN = """
function main(x) {
    const kind = x === null ? "null" : Array.isArray(x) ? "Array" : x instanceof Date ? "Date" : typeof x;
    return kind + " " + JSON.stringify(x);
}
"""


def of(column: pa.Array, name: str) -> pa.Array:
    return pa.StructArray.from_arrays([column], [name])


def run(script: str, output: AsaType, *columns: pa.Array) -> list[Any]:
    """Return the values of a function, or its error, for each row."""
    values, errors = V8Engine(JavaScriptFunction("f", script, output)).call(columns, len(columns[0]))
    return [error or value for value, error in zip(values.to_pylist(), errors.to_pylist(), strict=True)]


def returned(expression: str, output: AsaType) -> Any:
    """Return what a function returns that returns an expression, or its error without its arguments."""
    [value] = run(f"function main(x) {{ return {expression}; }}", output, pa.array([1]))
    return value.partition("; its arguments")[0].removeprefix("udf.f: ") if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("column", "seen"),
    [
        (pa.array([7]), "number 7"),
        (pa.array([2**53 + 1]), "number 9007199254740992"),
        (pa.array([-(2**63)]), "number -9223372036854776000"),
        (pa.array([21.5]), "number 21.5"),
        (pa.array([3.0]), "number 3"),
        (pa.array(['a"b\\é\U0001f600']), 'string "a\\"b\\\\é\U0001f600"'),
        (pa.array([True]), "boolean true"),
        (of(pa.array([1_000]), DATE), 'Date "1970-01-01T00:00:01.000Z"'),
        (of(pa.array(['{"a": [1, {"b": null}]}']), JSON), 'object {"a":[1,{"b":null}]}'),
        (of(pa.array(["[1, true]"]), JSON), "Array [1,true]"),
        (pa.array([None], pa.int64()), "null null"),
        (pa.array([None], pa.string()), "null null"),
        (of(pa.array([None], pa.int64()), DATE), "null null"),
        (of(pa.array([None], pa.string()), JSON), "null null"),
    ],
)
def test_an_argument_has_the_type_of_javascript(column: pa.Array, seen: str) -> None:
    assert run(SEEN, AsaType.STRING, column) == [seen]


@pytest.mark.parametrize(
    ("expression", "output", "value"),
    [
        ("5", AsaType.BIGINT, 5),
        ("-0", AsaType.BIGINT, 0),
        ("2 ** 62", AsaType.BIGINT, 2**62),
        ("-(2 ** 63)", AsaType.BIGINT, -(2**63)),
        ("5", AsaType.FLOAT, 5.0),
        ("0.1 + 0.2", AsaType.FLOAT, 0.1 + 0.2),
        ("1e300", AsaType.FLOAT, 1e300),
        ("'a\\u00e9\\n'", AsaType.STRING, "aé\n"),
        ("'\\ud83d'", AsaType.STRING, "\ufffd"),
        ("new Date(Date.UTC(2026, 2, 1, 10))", AsaType.DATETIME, from_datetime(datetime(2026, 3, 1, 10, tzinfo=UTC))),
        ("new Date(-1)", AsaType.DATETIME, 621355967999990000),
        ("1 > 2", AsaType.BIT, False),
        ("({b: 1, a: [undefined, 'x', {c: 2.5}]})", AsaType.RECORD, '{"b":1,"a":[null,"x",{"c":2.5}]}'),
        ("({t: new Date(0)})", AsaType.RECORD, '{"t":"1970-01-01T00:00:00.0000000Z"}'),
        ("({n: 2 ** 62})", AsaType.RECORD, '{"n":4611686018427387904}'),
        ("new (class { constructor() { this.a = 1; } })()", AsaType.RECORD, '{"a":1}'),
        ("[3, 1, 2].sort()", AsaType.ARRAY, "[1,2,3]"),
        *((missing, output, None) for missing in ("null", "undefined") for output in AsaType),
    ],
)
def test_a_result_has_the_declared_type(expression: str, output: AsaType, value: object) -> None:
    assert returned(expression, output) == value


@pytest.mark.parametrize(
    ("expression", "output", "what"),
    [
        ("2.5", AsaType.BIGINT, "the number 2.5"),
        ("2 ** 63", AsaType.BIGINT, "the number 9223372036854776000"),
        ("parseInt('x')", AsaType.BIGINT, "the number NaN"),
        ("1 / 0", AsaType.FLOAT, "the number Infinity"),
        ("'5'", AsaType.BIGINT, "a string"),
        ("'5'", AsaType.FLOAT, "a string"),
        ("5", AsaType.STRING, "the number 5"),
        ("new Date(NaN)", AsaType.DATETIME, "a Date that is invalid or outside the years 1 to 9999"),
        ("new Date(8.64e15)", AsaType.DATETIME, "a Date that is invalid or outside the years 1 to 9999"),
        ("'2026-03-01'", AsaType.DATETIME, "a string"),
        ("1", AsaType.BIT, "the number 1"),
        ("[1]", AsaType.RECORD, "an Array"),
        ("({})", AsaType.ARRAY, "an Object"),
        ("main", AsaType.RECORD, "a function"),
        ("new Error('x')", AsaType.RECORD, "an Error"),
        ("new Map()", AsaType.RECORD, "a Map"),
        ("Promise.resolve({})", AsaType.RECORD, "a Promise"),
        ("5n", AsaType.BIGINT, "a bigint"),
        ("Symbol('x')", AsaType.STRING, "a symbol"),
    ],
)
def test_a_result_of_another_type_is_an_error(expression: str, output: AsaType, what: str) -> None:
    assert returned(expression, output) == f"it returned {what}, but its output_type is {output}"


@pytest.mark.parametrize("expression", ["() => 1", "NaN", "5n", "/x/"])
def test_a_value_inside_a_record_that_json_cannot_hold_is_an_error(expression: str) -> None:
    assert returned(f"({{a: [{expression}]}})", AsaType.RECORD).endswith(" inside a record or an array")


def test_nulls_among_values_keep_their_rows() -> None:
    column = pa.array(["ff", None, "", "0a"])
    script = "function main(x) { return x ? parseInt(x, 16) : null; }"
    assert run(script, AsaType.BIGINT, column) == [255, None, None, 10]
