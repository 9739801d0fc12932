"""Analytic functions without Spark: each row has what the oracle finds in all rows before it."""

import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.errors import RunError
from recapture.evaluate.analytics import analysed
from recapture.time_model.ticks import TICKS_PER_SECOND
from tests.analytic_functions import LIMIT, VALUES
from tests.evaluate.relations import BOUNDS, DECLARED, START, at, relations, table
from tests.oracle_windows import Event

_STEPS = st.sampled_from((0, 0, 0, 0.0000001, 1, 5, 9.9999999, 10, 10.0000001))
_PAYLOADS = st.fixed_dictionaries(
    {
        "k": st.sampled_from(("a", "a", "b", None)),
        "n": st.one_of(st.none(), st.integers(-2, 3)),
        "x": st.one_of(st.none(), st.integers(-6, 6).map(lambda halves: halves / 2)),
        "partition": st.sampled_from("01"),
    }
)


def computed(function: str, events: list[Event], extra_look_back: float = math.inf) -> list[Any]:
    """Return the value of an analytic function for each event, in the order of the events."""
    [selection], _ = relations(f"{DECLARED}SELECT {function} AS v INTO out FROM telemetry TIMESTAMP BY t")
    assert selection.analytics is not None
    look_back = START if extra_look_back == math.inf else round(extra_look_back * TICKS_PER_SECOND)
    values: list[Any] = analysed(table(events), selection.analytics, BOUNDS, look_back)["@f0"].to_pylist()
    return [json.loads(value) for value in values] if function.startswith("Collect") else values


@pytest.mark.parametrize("function", VALUES)
@given(st.lists(st.tuples(_STEPS, _PAYLOADS), max_size=30))
def test_each_row_has_what_the_oracle_finds(function: str, steps: list[tuple[float, dict[str, Any]]]) -> None:
    seconds, events = 0.0, []
    for id, (step, payload) in enumerate(steps):
        seconds += step
        events.append(at(seconds, id=id, **payload))
    # Rows of one time come by arrival, then by partition.
    events.sort(key=lambda event: (event.time, event.partition))
    assert computed(function, events) == VALUES[function](events)


def test_over_no_rows_the_results_have_their_types() -> None:
    functions = {f"LAG(x) OVER ({LIMIT})": pa.float64(), f"LAST(k, 'x') OVER ({LIMIT})": pa.string()}
    functions |= {"ISFIRST(second, 1)": pa.int64(), f"COUNT(x) OVER ({LIMIT})": pa.int64()}
    functions |= {f"SUM(x) OVER ({LIMIT})": pa.float64(), f"AVG(n) OVER ({LIMIT})": pa.float64()}
    functions |= {f"MAX(b) OVER ({LIMIT})": pa.bool_(), f"SUM(n) OVER ({LIMIT})": pa.int64()}
    functions |= {f"Collect(x) OVER ({LIMIT})": pa.string()}
    columns = ", ".join(f"{function} AS v{number}" for number, function in enumerate(functions))
    [selection], _ = relations(f"{DECLARED}SELECT {columns} INTO out FROM telemetry TIMESTAMP BY t")
    assert selection.analytics is not None
    found = analysed(table([]), selection.analytics, BOUNDS, 0)
    assert found.schema.types[-len(functions) :] == [*functions.values()]
    assert found.schema == analysed(table([at(1)]), selection.analytics, BOUNDS, 0).schema


def test_rows_whose_history_was_not_read_are_left_out() -> None:
    events = [at(seconds, x=float(seconds)) for seconds in (-6, -5, -4, 1)]
    assert computed(f"LAG(x) OVER ({LIMIT})", events, 5) == [-5, -4]


def test_nan_is_the_largest_float_and_zero_has_no_sign() -> None:
    events = [at(1, x=math.nan), at(2, x=-0.0), at(3, x=-math.inf)]
    assert computed(f"MIN(x) OVER ({LIMIT})", events)[1:] == [0.0, -math.inf]
    assert [math.copysign(1, value) for value in computed(f"MIN(x) OVER ({LIMIT})", events)[1:2]] == [1.0]
    assert all(map(math.isnan, computed(f"MAX(x) OVER ({LIMIT})", events)))


def test_keys_are_equal_as_in_spark() -> None:
    events = [at(second, x=x) for second, x in enumerate((0.0, math.nan, None, -0.0, -math.nan, None))]
    assert computed(f"COUNT(*) OVER (PARTITION BY x {LIMIT})", events) == [1, 1, 1, 2, 2, 2]


def test_strings_are_ordered_as_utf_8() -> None:
    events = [at(second, k=k) for second, k in enumerate(("\ue000", "𝄞", None, ""))]
    function = "MAX(CAST(k AS nvarchar(max)))"
    assert computed(f"{function} OVER ({LIMIT})", events) == ["\ue000", "𝄞", "𝄞", "𝄞"]
    assert computed(f"{function.replace('MAX(CAST', 'MIN(CAST')} OVER ({LIMIT})", events)[-1] == ""


def test_floats_are_added_from_the_border_of_two_blocks() -> None:
    """The border is at a multiple of the length: 1e16 + 1 is 1e16, but 1 + 1 + 1e16 is not."""
    events = [at(second, x=x) for second, x in ((5, 1e16), (8, 1.0), (9, 1.0), (11, -1e16), (12, 1.0))]
    sums = computed(f"SUM(x) OVER ({LIMIT})", events)
    assert sums[2] == 1e16
    assert sums[3] == (1.0 + 1.0 + 1e16) - 1e16
    assert sums[4] == (1.0 + 1.0 + 1e16) + (-1e16 + 1.0)


def test_a_sum_that_leaves_the_bigints_stops_the_run() -> None:
    with pytest.raises(RunError, match="SUM: the sum of bigints is too large"):
        computed(f"SUM(n) OVER ({LIMIT})", [at(1, n=2**63 - 1), at(2, n=1)])
    assert computed(f"SUM(n) OVER ({LIMIT})", [at(1, n=2**63 - 1), at(11, n=1)]) == [2**63 - 1, 1]
    assert computed(f"AVG(n) OVER ({LIMIT})", [at(1, n=2**63 - 1), at(2, n=1)])[-1] == 2.0**62


def test_a_default_is_computed_only_for_rows_that_need_it() -> None:
    function = f"LAG(n, 1, n / (id - 2)) OVER ({LIMIT})"
    assert computed(function, [at(1, id=1, n=8), at(2, id=2, n=9)]) == [-8, 8]
    with pytest.raises(RunError):
        computed(function, [at(1, id=2, n=8)])


def test_rows_of_a_step_come_by_their_columns() -> None:
    """The rows of a window have one time and no arrival; NULL is the smallest value."""
    step = "SELECT k, b, COUNT(*) AS n FROM telemetry TIMESTAMP BY t GROUP BY k, b, TumblingWindow(minute, 1)"
    text = f"{DECLARED}WITH s AS ({step}) SELECT k, LAG(n) OVER ({LIMIT}) AS v INTO out FROM s"
    (_, selection), _ = relations(text)
    assert selection.analytics is not None
    keys = [("b", True), (None, None), ("a", True), ("a", None), ("a", False)]
    rows = table(at(60, k=k, b=b, n=number) for number, (k, b) in enumerate(keys))
    assert analysed(rows, selection.analytics, BOUNDS, 0)["@f0"].to_pylist() == [2, None, 4, 1, 3]
