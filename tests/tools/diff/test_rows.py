"""How two sets of rows differ."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recapture.table import row_changes
from recapture.table.row_changes import comparisons
from recapture.tools.diff.rows import ColumnTypes, RowDifference, row_difference
from tests.draws import examples
from tests.tools.diff.naive import naive_difference

Row = Mapping[str, Any]
TEN = datetime(2024, 3, 1, 10, tzinfo=UTC)
COLUMNS = pa.schema(
    [
        ("windowEnd", pa.timestamp("us", tz="UTC")),
        ("room", pa.int64()),
        ("load", pa.float64()),
        ("n", pa.int64()),
        ("seen", pa.timestamp("us", tz="UTC")),
        ("name", pa.string()),
        ("open", pa.bool_()),
    ]
)
KINDS = dict(zip(COLUMNS.names, (datetime, int, float, int, datetime, str, bool), strict=True))
KEY = ("windowEnd", "room")


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with comparisons("diff-rows-test") as opened:
        opened.execute("SET TimeZone = 'UTC'")
        yield opened


def compare(
    connection: Any, before: pa.Table, after: pa.Table, key: Sequence[str] = KEY, limit: int = 20
) -> RowDifference:
    connection.register("one", before)
    connection.register("other", after)
    return row_difference(connection, "SELECT * FROM one", "SELECT * FROM other", key, limit)


def rows_of(rows: Sequence[Row], columns: pa.Schema = COLUMNS) -> pa.Table:
    return pa.Table.from_pylist([dict(row) for row in rows], columns)


def row(**values: Any) -> dict[str, Any]:
    return {"windowEnd": TEN, "room": 1, "load": 0.5, "n": 3, "seen": TEN, "name": "a", "open": True, **values}


FLOATS = st.sampled_from([0.0, -0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, None])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "windowEnd": st.sampled_from([TEN, TEN + timedelta(hours=1), None]),
            "room": st.sampled_from([1, 2, None]),
            "load": FLOATS,
            "n": st.sampled_from([0, 7, -(2**62), 2**62, None]),
            "seen": st.sampled_from([TEN, TEN + timedelta(microseconds=1), None]),
            "name": st.sampled_from(["", "a", None]),
            "open": st.sampled_from([True, False, None]),
        }
    ),
    max_size=7,
)


def _document(difference: RowDifference) -> dict[str, Any]:
    columns = [
        {
            "name": name,
            "changed": changes.changed,
            "largest_difference": changes.largest,
            "mean_difference": changes.mean,
            "sum_before": changes.sum_before,
            "sum_after": changes.sum_after,
        }
        for name, changes in difference.columns.items()
    ]
    counts = {name: getattr(difference, name) for name in ("only_before", "only_after", "changed")}
    return {**counts, "columns": columns}


@pytest.mark.parametrize("key", [KEY, ()], ids=["a key", "no key"])
@pytest.mark.property
def test_a_difference_is_that_of_a_comparison_row_by_row(connection: Any, key: tuple[str, ...]) -> None:
    @given(ROWS, ROWS)
    @settings(max_examples=examples(150))
    def check(before: list[Row], after: list[Row]) -> None:
        expected = naive_difference(before, after, KINDS, key)
        tables = rows_of(before), rows_of(after)
        difference = compare(connection, *tables, key)
        assert _document(difference) == expected
        assert len(difference.pairs) == expected["changed"]
        assert len(difference.unpaired) == expected["only_before"] + expected["only_after"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(row_changes, "ROWS_OF_A_PART", 3)
            assert _document(compare(connection, *tables, key)) == expected, "in parts"

    check()


def test_a_changed_row_has_its_values_on_both_sides_with_the_key_first(connection: Any) -> None:
    columns = pa.schema(reversed(list(COLUMNS)))
    before, after = rows_of([row(n=3)], columns), rows_of([row(n=4)], columns)
    ((old, new),) = compare(connection, before, after).pairs
    assert (dict(old), dict(new)) == (row(n=3), row(n=4))
    assert set(list(new)[:2]) == set(KEY)


def test_at_most_the_first_rows_are_shown(connection: Any) -> None:
    before = [row(room=number) for number in range(50)]
    after = [row(room=number, n=4) for number in range(40)] + [row(room=number) for number in range(100, 150)]
    difference = compare(connection, rows_of(before), rows_of(after), limit=3)
    assert (difference.changed, difference.only_before, difference.only_after) == (40, 10, 50)
    assert [old["room"] for old, _ in difference.pairs] == [0, 1, 2]
    assert [old and old["room"] for old, _ in difference.unpaired] == [40, 41, 42]


def test_columns_of_one_side_are_shown_and_the_others_are_compared(connection: Any) -> None:
    before = pa.table({"k": ["a"], "old": [1], "n": pa.array([2], pa.int64())})
    after = pa.table({"k": ["a"], "n": pa.array([2.0]), "new": [TEN]})
    difference = compare(connection, before, after, ("k",))
    assert (difference.changed, difference.only_before, difference.only_after) == (0, 0, 0)
    assert difference.types == [
        ColumnTypes("n", "BIGINT", "DOUBLE", compared=True),
        ColumnTypes("new", None, "TIMESTAMP WITH TIME ZONE", compared=False),
        ColumnTypes("old", "BIGINT", None, compared=False),
    ]
    assert not difference.is_empty


def test_columns_of_other_types_are_not_compared_and_names_ignore_case(connection: Any) -> None:
    before, after = pa.table({"K": ["a"], "n": ["2"]}), pa.table({"k": ["a"], "n": [2]})
    difference = compare(connection, before, after, ("K",))
    assert difference.types == [ColumnTypes("n", "VARCHAR", "BIGINT", compared=False)]
    assert (difference.changed, difference.only_before, difference.only_after) == (0, 0, 0)


def test_rows_without_a_common_column_are_all_different(connection: Any) -> None:
    difference = compare(connection, pa.table({"a": [1, 2]}), pa.table({"b": [1]}), ())
    assert (difference.only_before, difference.only_after, difference.changed) == (2, 1, 0)
