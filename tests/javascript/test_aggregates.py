"""An aggregate in V8: its methods, what it is given of each event, and its limits."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from recapture.errors import DefinitionError, RunError
from recapture.javascript.columns import DATE
from recapture.javascript.engine import BATCH_ROWS, BatchLimits, V8Engine
from recapture.model import AsaType, JavaScriptFunction

SUM = """
// Sample UDA which state can be accumulated and deaccumulated.
function main() {
    this.init = function () {
        this.state = 0;
    }
    this.accumulate = function (value, timestamp) {
        this.state += value;
    }
    this.deaccumulate = function (value, timestamp) {
        this.state -= value;
    }
    this.deaccumulateState = function (otherState) {
        this.state -= otherState.state;
    }
    this.computeResult = function () {
        return this.state;
    }
}
"""
_VALUE_AND_TIME = pa.struct([("value", pa.int64()), ("timestamp", pa.struct([(DATE, pa.int64())]))])


def engine(script: str, output: AsaType = AsaType.BIGINT, limits: BatchLimits | None = None) -> V8Engine:
    return V8Engine(JavaScriptFunction("total", script, output, None, is_aggregate=True), limits or BatchLimits())


def script(accumulate: str, result: str = "this.state", before: str = "") -> str:
    return (
        f"function main() {{\n{before}this.init = function () {{ this.state = []; }};\n"
        f"this.accumulate = function (value, timestamp) {{ {accumulate} }};\n"
        f"this.computeResult = function () {{ return {result}; }};\n}}"
    )


def aggregated(engine: V8Engine, windows: Sequence[Sequence[int | None]]) -> tuple[list[Any], list[str | None]]:
    """Return the value and the error of each window; the n-th event of a window is at n seconds after 1970."""
    events = [
        [{"value": value, "timestamp": {DATE: second * 1000}} for second, value in enumerate(window)]
        for window in windows
    ]
    groups = pa.array([{"id": f"window {number}"} for number in range(len(windows))], pa.struct([("id", pa.string())]))
    values, errors = engine.call([pa.array(events, pa.list_(_VALUE_AND_TIME)), groups], len(windows))
    return values.to_pylist(), errors.to_pylist()


def test_each_window_has_a_state_of_its_own() -> None:
    assert aggregated(engine(SUM), [[1, 2], [3], [4, 5, 6]]) == ([3, 3, 15], [None] * 3)


@pytest.mark.parametrize("edge", [-1, 0, 1])
def test_a_window_may_go_on_over_several_batches(edge: int) -> None:
    sizes = [1, 2 * BATCH_ROWS + edge, BATCH_ROWS, 3, BATCH_ROWS]
    assert aggregated(engine(SUM), [[1] * size for size in sizes]) == (sizes, [None] * len(sizes))


def test_an_aggregate_takes_every_event_with_its_time_in_order_also_null() -> None:
    listing = script("this.state.push([value, timestamp.getTime()]);")
    [value], _ = aggregated(engine(listing, AsaType.ARRAY), [[7, None, 5]])
    assert value == "[[7,0],[null,1000],[5,2000]]"


def test_a_window_does_not_see_what_an_earlier_one_left() -> None:
    counting = script(
        "calls = typeof calls === 'undefined' ? 1 : calls + 1; own++;", "calls * 10 + own", "var own = 0;"
    )
    assert aggregated(engine(counting), [[1, 1], [1], [1, 1, 1]])[0] == [22, 11, 33]


def test_the_script_may_have_the_name_of_the_aggregate_and_helpers() -> None:
    named = SUM.replace("main", "total") + "\nfunction helper() {}"
    assert aggregated(engine(named), [[1, 2]])[0] == [3]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("function main() { this.init = function () {}; }", "it lacks this.accumulate and this.computeResult"),
        ("function main(x) { return x; }", "it lacks this.init and this.accumulate and this.computeResult"),
        ("x => x", "TypeError: "),
        ("function other() {}\nvar x = 1;", "it has neither a function main nor a function total"),
        (SUM.replace("+= value", "+="), "SyntaxError: Unexpected token ';' (line 8)"),
    ],
)
def test_a_script_that_is_not_an_aggregate_is_refused(script: str, reason: str) -> None:
    with pytest.raises(DefinitionError) as refusal:
        engine(script)
    assert str(refusal.value).startswith(f"the script of uda.total cannot run: {reason}")


def test_an_error_in_accumulate_names_the_event_and_the_group() -> None:
    failing = engine(script("this.state.push(value.level.weight);"))
    values, errors = aggregated(failing, [[1, 2], [3]])
    assert values == [None, None]
    assert errors[0] == (
        "uda.total: TypeError: Cannot read properties of undefined (reading 'weight') (line 3 of its script); "
        'its arguments are (1, "1970-01-01T00:00:00.000Z"); its group is {"id":"window 0"}'
    )


def test_an_error_in_compute_result_names_the_group() -> None:
    values, errors = aggregated(engine(script("this.state.push(value);", "this.state.length / 2")), [[1, 2], [3]])
    assert values == [1, None]
    assert errors == [
        None,
        "uda.total: it returned the number 0.5, but its output_type is bigint; it has accumulated 1 event; "
        'its group is {"id":"window 1"}',
    ]


def test_an_error_in_one_window_leaves_the_others_as_they_are() -> None:
    picky = engine(
        script("if (value === null) throw new Error('no value'); this.state.push(value);", "this.state.length")
    )
    values, errors = aggregated(picky, [[1], [None, 1] * BATCH_ROWS, [1, 1]])
    assert values == [1, None, 2]
    assert [text is None for text in errors] == [True, False, True]


@pytest.mark.parametrize("expression", ["Date.now()", "Math.random()"])
def test_the_clock_and_random_numbers_are_errors(expression: str) -> None:
    _, [error] = aggregated(engine(script(f"this.state.push({expression});", "0")), [[1]])
    assert error is not None
    assert "gives another value in every run" in error


def test_a_loop_without_end_stops_the_run() -> None:
    limited = engine(script("while (value < 3) {}", "0"), limits=BatchLimits(seconds=0.2))
    with pytest.raises(RunError) as error:
        aggregated(limited, [[5, 1]])
    assert str(error.value) == (
        "uda.total took more than 0.2 seconds for a batch of calls: simplify its script; "
        'its arguments are (1, "1970-01-01T00:00:01.000Z")'
    )


def test_a_state_that_is_too_large_stops_the_run() -> None:
    limited = engine(
        script("this.state.push(new Array(10000).fill(value));", "0"), limits=BatchLimits(memory=50_000_000)
    )
    with pytest.raises(RunError, match=r"^uda\.total needs more than 47 MiB of memory: simplify its script"):
        aggregated(limited, [[1] * BATCH_ROWS])
