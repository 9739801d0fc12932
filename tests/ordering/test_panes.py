"""The partial aggregates that a task computes are those of a loop over its events, however these come in batches."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.errors import RunError
from recapture.ordering import panes
from recapture.ordering.panes import SlicePanes
from recapture.query.plan.expressions import bigint, call, column, string
from recapture.query.plan.operations import Op
from recapture.query.plan.panes import Fold, Key, PaneAggregation, Partial
from recapture.time_model.slices import Slice

Event = dict[str, Any]
Pane = dict[str, Any]

SLICE = Slice(1000, 1100)
COLUMNS = pa.schema(
    [("_system_timestamp", pa.int64()), ("k", pa.string()), ("n", pa.int64()), ("x", pa.float64()), ("b", pa.bool_())]
)
AGGREGATION = PaneAggregation(
    length=10,
    offset=3,
    conditions=(call(Op.NOT, call(Op.EQUAL, column("k"), string("not"))),),
    keys=(Key("_k0", column("k"), pa.string()), Key("_k1", column("b"), pa.bool_())),
    partials=(
        Partial("events", Fold.COUNT, bigint(1), pa.int64()),
        Partial("values", Fold.COUNT, column("x"), pa.int64()),
        Partial("total", Fold.SUM, column("x"), pa.float64()),
        Partial("whole", Fold.SUM, column("n"), pa.int64()),
        Partial("least", Fold.MIN, column("x"), pa.float64()),
        Partial("greatest", Fold.MAX, column("k"), pa.string()),
        Partial("spread", Fold.SPREAD, column("x"), pa.float64()),
    ),
)


def expected_panes(events: Sequence[Event]) -> list[Pane]:
    """Return the panes of AGGREGATION, event by event."""
    groups: dict[tuple[Any, ...], list[Event]] = {}
    for event in events:
        pane = min(end for end in range(983, 1123, 10) if end >= event["_system_timestamp"])
        if event["k"] is not None and event["k"] != "not":
            groups.setdefault((pane, event["k"], event["b"]), []).append(event)
    return [
        {
            **{"_slice_start": 1000, "_slice_end": 1100, "_partition": "7", "_pane": pane, "_k0": k, "_k1": b},
            "events": len(members),
            "values": len(given_values(members, "x")),
            "total": added(given_values(members, "x")),
            "whole": added(given_values(members, "n")),
            "least": min(given_values(members, "x"), default=None),
            "greatest": k,
            "spread": squared_differences(given_values(members, "x")),
        }
        for (pane, k, b), members in groups.items()
    ]


def given_values(events: Sequence[Event], name: str) -> list[Any]:
    return [event[name] for event in events if event[name] is not None]


def added(values: Sequence[Any]) -> Any:
    """Return the sum of values, added one by one; None if there are none."""
    total = None
    for value in values:
        total = value + 0 if total is None else total + value
    return total


def squared_differences(values: Sequence[float]) -> float | None:
    """Return VAR_POP(x) * COUNT(x) as Spark computes it; None if there are no values.

    Source: CentralMomentAgg in Spark, whose second step adds the spread of the values to that of none.
    """
    n, mean, m2 = 0.0, 0.0, 0.0
    for value in values:
        n = n + 1.0
        delta = value - mean
        mean = mean + delta / n
        m2 = m2 + delta * (delta - delta / n)
    if n == 0.0:
        return None
    m2 = 0.0 + m2 + mean * (mean / n) * 0.0 * n
    return m2 / n * n


def computed(aggregation: PaneAggregation, batches: Sequence[Sequence[Event]]) -> list[Pane]:
    slice_panes = SlicePanes(SLICE, "7", [aggregation])
    for events in batches:
        slice_panes.add(pa.RecordBatch.from_pylist(list(events), COLUMNS))
    return [row["panes 0"] for batch in slice_panes.batches() for row in batch.to_pylist()]


def in_order(rows: Sequence[Pane]) -> list[str]:
    """Return the rows as texts, sorted; a text tells floats apart by their last bit."""
    return sorted(map(repr, rows))


EVENTS = st.fixed_dictionaries(
    {
        "_system_timestamp": st.integers(980, 1100),
        "k": st.sampled_from(["a", "b", "é", "not", None]),
        "n": st.none() | st.integers(-(2**40), 2**40),
        "x": st.none() | st.floats(-1e300, 1e300).map(lambda x: x + 0.0),
        "b": st.booleans() | st.none(),
    }
)


@given(batches=st.lists(st.lists(EVENTS, max_size=8), max_size=6), fold_rows=st.integers(1, 20))
def test_the_panes_are_those_of_a_loop_whenever_events_are_folded(batches: list[list[Event]], fold_rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panes, "FOLD_ROWS", fold_rows)
        rows = computed(AGGREGATION, batches)
    assert in_order(rows) == in_order(expected_panes([event for batch in batches for event in batch]))


def test_floats_are_added_in_the_order_of_the_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panes, "FOLD_ROWS", 2)
    values = [1e16, 1.0, -1e16, 1.0, 0.1, 0.2]
    event: Event = {"_system_timestamp": 1001, "k": "a", "n": None, "b": None}
    (row,) = computed(AGGREGATION, [[{**event, "x": value} for value in values]])
    assert row["total"] == ((((1e16 + 1.0) - 1e16) + 1.0) + 0.1) + 0.2
    assert row["total"] != math.fsum(values)


SPREAD = replace(AGGREGATION, partials=(Partial("spread", Fold.SPREAD, column("x"), pa.float64()),))
VALUES = (
    st.none()
    | st.floats(-100, 100)
    | st.integers(-3, 3).map(lambda n: 1e9 + n / 7)
    | st.floats(-1e300, 1e300)
    | st.sampled_from([0.0, -0.0, 5e-324, 1e154, 1.5e154, math.inf, math.nan])
)


@given(batches=st.lists(st.lists(VALUES, max_size=8), max_size=8), fold_rows=st.integers(1, 20))
def test_a_spread_is_that_of_the_events_one_by_one_whenever_they_are_folded(
    batches: list[list[float | None]], fold_rows: int
) -> None:
    event: Event = {"_system_timestamp": 1001, "k": "a", "n": None, "b": None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panes, "FOLD_ROWS", fold_rows)
        rows = computed(SPREAD, [[{**event, "x": value} for value in values] for values in batches])
    values = [value for batch in batches for value in batch]
    expected = squared_differences([value for value in values if value is not None])
    assert [repr(row["spread"]) for row in rows] == [repr(expected)] * bool(values)


def test_a_spread_depends_on_the_order_of_the_events_alone() -> None:
    """So it differs in its last bits from that of other algorithms, and from that of the same values in order."""
    values = [0.1, 1e3, 0.3, -7.7, 0.1, 1e-3, 12.5]
    assert squared_differences(values) != squared_differences(sorted(values))
    exact = math.fsum((value - math.fsum(values) / 7) ** 2 for value in values)
    assert squared_differences(values) == pytest.approx(exact, rel=1e-14)


def test_each_aggregation_has_a_column_of_its_own_and_no_events_have_no_rows() -> None:
    other = PaneAggregation(100, 0, (), (), (Partial("n", Fold.COUNT, column("n"), pa.int64()),))
    slice_panes = SlicePanes(SLICE, "7", [AGGREGATION, other])
    assert list(slice_panes.batches()) == []
    event = {"_system_timestamp": 1001, "k": "a", "n": None, "x": None, "b": True}
    slice_panes.add(pa.RecordBatch.from_pylist([event], COLUMNS))
    first, second = [row for batch in slice_panes.batches() for row in batch.to_pylist()]
    assert (first["panes 0"]["events"], first["panes 1"]) == (1, None)
    assert (second["panes 0"], second["panes 1"]["n"]) == (None, 0)


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([2**62, 2**62 - 1], 2**63 - 1),
        ([2**62, 2**62], None),
        ([2**62, 2**62, -5], None),
        ([-(2**62), -(2**62)], -(2**63)),
        ([-(2**62), -(2**62), -1], None),
    ],
)
@pytest.mark.parametrize("fold_rows", [1, 10])
def test_a_sum_that_leaves_the_bigints_stops_the_run(
    monkeypatch: pytest.MonkeyPatch, values: list[int], total: int | None, fold_rows: int
) -> None:
    monkeypatch.setattr(panes, "FOLD_ROWS", fold_rows)
    batches = [[{"_system_timestamp": 1001, "k": "a", "n": n, "x": None, "b": None}] for n in values]
    if total is None:
        with pytest.raises(RunError, match="too large for a bigint"):
            computed(AGGREGATION, batches)
    else:
        assert computed(AGGREGATION, batches)[0]["whole"] == total


def test_the_panes_of_a_slice_do_not_depend_on_other_slices_of_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panes, "FOLD_ROWS", 3)
    event = {"_system_timestamp": 1001, "k": "a", "n": 1, "b": None}
    batches = [[{**event, "x": value}] for value in (1e16, 1.0, -1e16, 0.1)]
    other = Slice(SLICE.end, 2 * SLICE.end - SLICE.start)
    of_slices = SlicePanes.of_slices([SLICE, other], "7", [AGGREGATION])
    for events in batches:
        for slice_panes in of_slices.values():
            slice_panes.add(pa.RecordBatch.from_pylist(events, COLUMNS))
    rows = [row["panes 0"] for batch in of_slices[SLICE].batches() for row in batch.to_pylist()]
    assert in_order(rows) == in_order(computed(AGGREGATION, batches))
