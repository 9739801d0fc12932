"""APPLY without Spark: a row for each element."""

from typing import Any

import pyarrow as pa
import pytest

from recapture.evaluate.laterals import applied
from recapture.query.plan.expressions import column
from recapture.query.plan.relations import Lateral
from tests.evaluate.relations import BOUNDS

ELEMENT = pa.struct([("ArrayIndex", pa.int64()), ("ArrayValue", pa.string())])
ROWS = pa.table(
    {
        "id": [1, 2, 3, 4],
        "list": pa.array(
            [
                [{"ArrayIndex": 0, "ArrayValue": "x"}, {"ArrayIndex": 1, "ArrayValue": None}],
                [],
                None,
                [{"ArrayIndex": 0, "ArrayValue": "y"}],
            ],
            pa.list_(ELEMENT),
        ),
    }
)
X, NULL, Y = ({"ArrayIndex": index, "ArrayValue": value} for index, value in ((0, "x"), (1, None), (0, "y")))


@pytest.mark.parametrize(
    ("outer", "expected"),
    [(False, [(1, X), (1, NULL), (4, Y)]), (True, [(1, X), (1, NULL), (2, None), (3, None), (4, Y)])],
)
@pytest.mark.parametrize("sliced", [False, True])
def test_a_row_comes_once_for_each_element(outer: bool, expected: list[tuple[int, Any]], sliced: bool) -> None:
    rows = pa.concat_tables([ROWS, ROWS]).slice(2, 4) if sliced else ROWS
    found = applied(rows, [Lateral(0, column("list"), outer)], BOUNDS)
    pairs = list(zip(found["id"].to_pylist(), found["@@e0"].to_pylist(), strict=True))
    assert sorted(pairs, key=lambda pair: pair[0]) == expected


def test_a_second_apply_has_the_elements_of_each_row_of_the_first() -> None:
    found = applied(ROWS, [Lateral(0, column("list"), False), Lateral(1, column("list"), True)], BOUNDS)
    assert found["@@e0"].to_pylist() == [X, X, NULL, NULL, Y]
    assert found["@@e1"].to_pylist() == [X, NULL, X, NULL, Y]


def test_rows_without_elements_give_none() -> None:
    assert len(applied(ROWS.slice(1, 2), [Lateral(0, column("list"), False)], BOUNDS)) == 0
    assert len(applied(ROWS.slice(0, 0), [Lateral(0, column("list"), True)], BOUNDS)) == 0
