"""Sorted panes are merged in parts that divide no group, so the rows do not depend on how many panes fit in a part."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.execute import merging
from recapture.execute.merging import GROUP_HASH, merge_to_groups, merge_to_rows
from recapture.model import AsaType, OutputColumn
from recapture.query.merges import WINDOW_END, MergedGroups, MergedSelect, MergedWindow, Result
from recapture.query.partials import Fold, Key, PaneAggregation, Partial
from recapture.query.plan.expressions import call, column
from recapture.query.plan.operations import Op
from recapture.time_model.ticks import TICKS_PER_MICROSECOND, UNIX_EPOCH
from recapture.time_model.windows import HoppingWindow

Row = dict[str, Any]

LENGTH = TICKS_PER_MICROSECOND * 100
STARTS = [UNIX_EPOCH + number * LENGTH for number in range(3)]
TOTAL = Partial("_p0", Fold.SUM, column("x"), pa.float64())
AGGREGATION = PaneAggregation(LENGTH // 10, 0, (), (Key("_k0", column("k"), pa.string()),), (TOTAL,))
WINDOW = MergedWindow(HoppingWindow(LENGTH // 5, LENGTH // 10), None, "input a", 0, AGGREGATION)
GROUPS = MergedGroups((WINDOW,), (Result("_r0", TOTAL),))
SELECT = MergedSelect(
    GROUPS,
    (call(Op.NOT, call(Op.IS_NULL, column("_k0"))),),
    tuple(
        (OutputColumn(name, type_), column(read))
        for name, type_, read in [
            ("w", AsaType.DATETIME, WINDOW_END),
            ("k", AsaType.STRING, "_k0"),
            ("total", AsaType.FLOAT, "_r0"),
        ]
    ),
)
"""The rows of groups whose key is not NULL."""
HASHES = {None: 7, "a": -3, "b": 7, "é": 5}
"""A hash of each key; two keys have the same one."""
PANES = st.lists(
    st.tuples(st.sampled_from(STARTS), st.integers(1, 10), st.sampled_from(["0", "1"]), st.sampled_from([*HASHES])),
    unique=True,
    max_size=40,
)


def sorted_panes(places: list[tuple[int, int, str, str | None]]) -> list[pa.RecordBatch]:
    """Return panes as Spark sorts them, in batches of three."""
    panes = [
        {
            **{"_slice_start": start, "_slice_end": start + LENGTH, "_partition": partition},
            **{"_pane": start + number * (LENGTH // 10), "_k0": key, "_p0": number / 3, GROUP_HASH: HASHES[key]},
        }
        for start, number, partition, key in places
    ]
    schema = AGGREGATION.schema.append(pa.field(GROUP_HASH, pa.int64()))
    table = pa.Table.from_pylist(panes, schema).sort_by([("_slice_start", "ascending"), (GROUP_HASH, "ascending")])
    batches: list[pa.RecordBatch] = table.to_batches(max_chunksize=3)
    return batches


def groups_of(batches: list[pa.RecordBatch], groups: MergedGroups = GROUPS) -> list[Row]:
    return [row for batch in merge_to_groups(groups, WINDOW, batches) for row in batch.to_pylist()]


@given(places=PANES, most=st.integers(1, 20))
def test_the_groups_do_not_depend_on_how_many_panes_are_merged_at_once(
    places: list[tuple[int, int, str, str | None]], most: int
) -> None:
    batches = sorted_panes(places)
    at_once = groups_of(batches)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "MERGED_PANES", most)
        assert sorted(map(repr, groups_of(batches))) == sorted(map(repr, at_once))
    ends = {(row["_slice_start"], row[WINDOW_END], row["_k0"]) for row in at_once}
    assert len(ends) == len(at_once)
    assert all(start < end <= start + LENGTH for start, end, _ in ends)


def test_groups_of_windows_that_end_within_the_look_back_come_with_the_slice() -> None:
    early = (STARTS[1] - LENGTH // 5 - STARTS[0]) // (LENGTH // 10)
    (pane,) = sorted_panes([(STARTS[0], early, "0", "a")])
    bounds = [pa.array([time]) for time in (STARTS[1], STARTS[2])]
    pane = pa.RecordBatch.from_arrays([*bounds, *pane.columns[2:]], schema=pane.schema)
    assert groups_of([pane]) == []
    rows = groups_of([pane], MergedGroups((WINDOW,), GROUPS.results, look_back=LENGTH // 5))
    assert [(row["_slice_start"], row[WINDOW_END]) for row in rows] == [(STARTS[1], STARTS[1] - LENGTH // 10)]


def test_rows_have_their_slice_and_meet_the_conditions() -> None:
    batches = sorted_panes([(STARTS[0], 2, "0", "a"), (STARTS[2], 10, "0", None), (STARTS[2], 10, "1", "b")])
    rows = [row for batch in merge_to_rows(SELECT, WINDOW, batches) for row in batch.to_pylist()]
    micros = [(row["slice_start"].microsecond, row["w"].microsecond, row["k"]) for row in rows]
    assert micros == [(0, 20, "a"), (0, 30, "a"), (200, 300, "b")]


def test_no_panes_have_no_groups() -> None:
    assert groups_of([]) == groups_of(sorted_panes([])) == []
