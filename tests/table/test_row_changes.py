"""Which rows of a slice a change inserts, updates and deletes."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.model import TYPES, AsaType, OutputColumn, published_schema
from recapture.table import row_changes as module
from recapture.table.row_changes import CHANGE_TYPE, Rows, changed_schema, comparisons, identity, row_changes
from tests.draws import examples

Row = tuple[Any, ...]
KEYED = pa.schema([("end", pa.timestamp("us", tz="UTC")), ("device", pa.string()), ("load", pa.float64())])


def compared(before: list[Row], after: list[Row], columns: pa.Schema = KEYED) -> list[Row]:
    """Return the changed rows, each with its kind first."""

    def rows_of(rows: list[Row]) -> Rows:
        arrays = [pa.array([row[place] for row in rows], column.type) for place, column in enumerate(columns)]
        table = pa.table(arrays, schema=columns)
        return Rows(columns, len(rows), lambda: table.to_batches(max_chunksize=3))

    with comparisons("row-changes-test") as connection:
        changed = pa.Table.from_batches(
            row_changes(connection, rows_of(before), rows_of(after)), changed_schema(columns)
        )
    return [(row.pop(CHANGE_TYPE), *row.values()) for row in changed.to_pylist()]


def expected(before: list[Row], after: list[Row]) -> list[Row]:
    """Return the changed rows of KEYED, found one by one: a key of one row before and one row after is an update."""
    old, new = Counter(before) - Counter(after), Counter(after) - Counter(before)
    changes: list[Row] = []
    for key in {row[:2] for row in (*old, *new)}:
        removed = [row for row in old.elements() if row[:2] == key]
        added = [row for row in new.elements() if row[:2] == key]
        is_update = len(removed) == len(added) == 1
        changes += [("update_preimage" if is_update else "delete", *row) for row in removed]
        changes += [("update_postimage" if is_update else "insert", *row) for row in added]
    return changes


TIMES = [datetime(2024, 3, 1, 10, minute, tzinfo=UTC) for minute in range(2)]
SLICES = st.lists(
    st.tuples(st.sampled_from(TIMES), st.sampled_from(["a", "b", "", None]), st.sampled_from([1.0, 2.0, None])),
    max_size=8,
)


@given(SLICES, SLICES)
@settings(max_examples=examples(50))
def test_the_changes_are_those_that_a_comparison_row_by_row_finds(before: list[Row], after: list[Row]) -> None:
    changes = compared(before, after)
    assert Counter(changes) == Counter(expected(before, after))
    kinds = [row[0] for row in changes]
    for place, (kind, *values) in enumerate(changes):
        if kind == "update_preimage":
            assert kinds[place + 1] == "update_postimage"
            assert changes[place + 1][1:3] == tuple(values[:2]), "the new version follows the row"
    assert changes == compared(before[::-1], after[::-1]), "the order of the rows does not matter"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROWS_OF_A_PART", 5)
        assert Counter(changes) == Counter(compared(before, after)), "nor does the number of the parts"


VALUES = {
    AsaType.BIGINT: (2**53 + 1, 2**53 + 2),
    AsaType.FLOAT: (0.1, 0.1 + 2**-56),
    AsaType.STRING: ("caf\u00e9", "cafe\u0301"),
    AsaType.DATETIME: (datetime(1969, 1, 1, tzinfo=UTC), datetime(1969, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
    AsaType.BIT: (True, False),
    AsaType.RECORD: ('{"a":1}', '{"a":2}'),
    AsaType.ARRAY: ("[1]", "[2]"),
}


@pytest.mark.parametrize("kind", AsaType)
def test_a_value_of_each_type_is_compared_exactly_and_null_equals_null(kind: AsaType) -> None:
    assert VALUES.keys() == TYPES.keys()
    columns = published_schema([OutputColumn("name with \" and '", kind)])
    one, other = VALUES[kind]
    assert compared([(one,), (None,)], [(one,), (None,)], columns) == []
    assert {row[1] for row in compared([(one,)], [(other,)], columns)} == {one, other}
    assert {row[1] for row in compared([(None,)], [(one,)], columns)} == {None, one}


def test_nan_equals_nan() -> None:
    nan = float("nan")
    assert compared([(TIMES[0], "a", nan)], [(TIMES[0], "a", nan)]) == []


def test_times_and_strings_identify_a_row() -> None:
    assert identity(KEYED) == ["end", "device"]
    assert identity(pa.schema([("n", pa.int64())])) == []


def test_rows_that_do_not_fit_in_memory_are_spilled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEMORY", "64MB")
    count = 300_000
    devices = pa.array([f"device {number} of the rooms" for number in range(count)])

    def rows(load: float) -> Rows:
        arrays = [pa.array([TIMES[0]] * count, KEYED.field("end").type), devices, pa.array([load] * count)]
        return Rows(KEYED, count, lambda: pa.table(arrays, schema=KEYED).to_batches(max_chunksize=10_000))

    with comparisons("row-changes-test") as connection:
        changed = pa.Table.from_batches(row_changes(connection, rows(1.0), rows(2.0)))
    assert changed[CHANGE_TYPE].value_counts().to_pylist() == [
        {"values": "update_preimage", "counts": count},
        {"values": "update_postimage", "counts": count},
    ]
