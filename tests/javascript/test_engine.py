"""What a script is, what it cannot see, and its limits."""

import os
from unittest import mock

import pyarrow as pa
import pytest

from recapture.errors import DefinitionError, RunError
from recapture.javascript.engine import BATCH_ROWS, BatchLimits, V8Engine
from recapture.model import AsaType, JavaScriptFunction

ROW = pa.array([1])


DEFAULT = BatchLimits()


def engine(script: str, output: AsaType = AsaType.BIGINT, limits: BatchLimits = DEFAULT) -> V8Engine:
    return V8Engine(JavaScriptFunction("hex2Int", script, output), limits)


def value(script: str, output: AsaType = AsaType.BIGINT) -> object:
    values, errors = engine(script, output).call([ROW], 1)
    assert errors.to_pylist() == [None]
    return values[0].as_py()


def error(script: str, column: pa.Array = ROW) -> str:
    return str(engine(script).call([column], len(column))[1][0].as_py())


@pytest.mark.parametrize(
    "script",
    [
        "function main(x) { return 7; }",
        "// Sample UDF.\nfunction hex2Int(x) {\n    return 7;\n}\n",
        "function (x) { return 7; }",
        "x => 7;",
        "var seven = 7;\nfunction helper() { return seven; }\nfunction main(x) { return helper(); }",
        "function main(x) { parts = [7]; return parts[0]; }",
        '"use strict";\nfunction main() { return 7; } // the end',
    ],
)
def test_a_script_is_a_function_or_has_a_function_main_or_of_its_own_name(script: str) -> None:
    assert value(script) == 7


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("function main(x) {\n  return (x;\n}", "SyntaxError: Unexpected token ';' (line 2)"),
        ("function other() {}\nvar x = 1;", "it has neither a function main nor a function hex2Int"),
        ("", "it has neither a function main nor a function hex2Int"),
        (
            "const table = missing.table;\nfunction main() {}",
            "ReferenceError: missing is not defined (line 1 of its script)",
        ),
    ],
)
def test_a_script_that_cannot_run_is_refused_with_its_line(script: str, reason: str) -> None:
    with pytest.raises(DefinitionError) as refusal:
        engine(script)
    assert str(refusal.value) == f"the script of udf.hex2Int cannot run: {reason}"


@pytest.mark.parametrize(
    "script",
    [
        "var calls = 0;\nfunction main(x) { return ++calls; }",
        "function main(x) { calls = typeof calls === 'undefined' ? 1 : calls + 1; return calls; }",
    ],
)
def test_a_call_does_not_see_what_an_earlier_call_left(script: str) -> None:
    values, _ = engine(script).call([pa.array([1] * 5)], 5)
    assert values.to_pylist() == [1] * 5


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("Date.now()", "the clock gives another value in every run"),
        ("new Date().getTime()", "the clock gives another value in every run"),
        ("Date().length", "the clock gives another value in every run"),
        ("new Intl.DateTimeFormat().format()", "the clock gives another value in every run"),
        ("new Intl.DateTimeFormat().formatToParts()", "the clock gives another value in every run"),
        ("Math.random()", "Math.random gives another value in every run"),
    ],
)
def test_the_clock_and_random_numbers_are_errors(expression: str, what: str) -> None:
    assert f"Error: {what}: " in error(f"function main(x) {{ return {expression}; }}")


@pytest.mark.parametrize("name", ["fetch", "require", "process", "setTimeout", "XMLHttpRequest", "WebAssembly"])
def test_a_script_has_nothing_but_the_objects_of_ecmascript(name: str) -> None:
    assert value(f"function main(x) {{ return typeof {name}; }}", AsaType.STRING) == "undefined"


def test_time_zone_and_language_are_those_of_asa_whatever_the_machine_has() -> None:
    times = "new Date(2026, 6, 1).toISOString(), new Date(0).toLocaleString(), new Intl.DateTimeFormat().format(0)"
    script = f"x => [{times}, (1234.5).toLocaleString()].join()"
    with mock.patch.dict(os.environ, {"TZ": "Asia/Tokyo", "LC_ALL": "de_DE.UTF-8"}):
        assert value(script, AsaType.STRING) == "2026-07-01T00:00:00.000Z,1/1/1970, 12:00:00 AM,1/1/1970,1,234.5"
        assert os.environ["TZ"] == "Asia/Tokyo"


def test_an_error_names_the_function_the_line_and_the_arguments() -> None:
    script = "function main(x) {\n  const y = x;\n  return y.z.w;\n}"
    assert error(script, pa.array(["a"])) == (
        "udf.hex2Int: TypeError: Cannot read properties of undefined (reading 'w') (line 3 of its script); "
        'its arguments are ("a")'
    )
    assert error("function main(x) { throw 'no'; }") == 'udf.hex2Int: it threw "no"; its arguments are (1)'


def test_an_error_is_on_one_line_of_a_bounded_length() -> None:
    message = error("function main(x) { throw new Error(x + '\\n' + x); }", pa.array(["a b\n" * 10_000]))
    assert len(message) < 1_000
    assert "\n" not in message


def test_only_the_rows_with_an_error_have_one() -> None:
    column = pa.array([None if row % 7 else "1" for row in range(BATCH_ROWS + 10)])
    values, errors = engine("function main(x) { return x.length; }").call([column], len(column))
    assert [row for row, text in enumerate(errors.to_pylist()) if text is None] == list(range(0, len(column), 7))
    assert values.null_count == len(column) - errors.null_count


@pytest.mark.parametrize("number", [2.0**53 + 2, -(2.0**54), 9.3e18, 1e20, 1e21, 0.1])
def test_a_float_may_be_an_integer_of_any_size(number: float) -> None:
    values, errors = engine("function main(x) { return x; }", AsaType.FLOAT).call([pa.array([number, None])], 2)
    assert values.to_pylist() == [number, None]
    assert errors.null_count == 2


def test_a_loop_without_end_stops_the_run() -> None:
    limited = engine("function main(x) { while (x < 3) {} return x; }", limits=BatchLimits(seconds=0.2))
    with pytest.raises(RunError) as error:
        limited.call([pa.array([5, 1])], 2)
    assert str(error.value) == (
        "udf.hex2Int took more than 0.2 seconds for a batch of calls: simplify its script; its arguments are (1)"
    )


def test_too_much_memory_stops_the_run() -> None:
    script = "function main(x) { const all = []; while (true) all.push(new Array(1000).fill(x)); }"
    limited = engine(script, limits=BatchLimits(memory=50_000_000))
    with pytest.raises(RunError, match=r"^udf\.hex2Int needs more than 47 MiB of memory: simplify its script"):
        limited.call([ROW], 1)


@pytest.mark.parametrize("name", ["delete", "my-function"])
def test_a_name_that_javascript_does_not_take_is_no_obstacle(name: str) -> None:
    script = "const two = 2;\nfunction main(x) { return two; }"
    values, _ = V8Engine(JavaScriptFunction(name, script, AsaType.BIGINT)).call([ROW], 1)
    assert values.to_pylist() == [2]


def test_a_deep_recursion_is_an_error_of_its_row() -> None:
    assert "RangeError: Maximum call stack size exceeded" in error("function main(x) { return main(x) + 1; }")
