"""Which expressions of a GROUP BY and which aggregates are the same."""

import pytest

from recapture.errors import DefinitionError
from tests.query.small_stream import compiled

CREATE = "CREATE TABLE telemetry (at datetime, other datetime, s nvarchar(max), r record, n bigint, x float)\n"


def counted(*expressions: str) -> int:
    """Return how many different aggregates there are when each expression is counted."""
    items = ", ".join(f"COUNT({expression}) AS c{index}" for index, expression in enumerate(expressions))
    text = f"{CREATE}SELECT {items} INTO out FROM telemetry TIMESTAMP BY at GROUP BY Tumbling(s, 1)"
    plan = compiled(text).outputs[0].plan
    [selection] = plan.output.selections
    assert selection.grouping is not None
    return len(selection.grouping.aggregates)


def selected(key: str, item: str) -> None:
    """Compile a query that groups by one expression and selects another."""
    compiled(f"{CREATE}SELECT {item} AS v INTO out FROM telemetry TIMESTAMP BY at GROUP BY {key}, Tumbling(s, 1)")


ALIKE = [
    ("CASE WHEN s = 'a' THEN n END", "CASE WHEN s = 'A' THEN n END"),
    ("CASE WHEN s LIKE 'a%' THEN n END", "CASE WHEN s LIKE 'A%' THEN n END"),
    ("REPLACE(s, 'a', '')", "REPLACE(s, 'A', '')"),
    ("REGEXMATCH(s, 'a')", "REGEXMATCH(s, 'A')"),
    ("CHARINDEX('a', s)", "CHARINDEX('A', s)"),
    ("GetRecordPropertyValue(r, 'a')", "GetRecordPropertyValue(r, 'A')"),
    ("n - 1", "1 - n"),
    ("CAST(s AS float)", "TRY_CAST(s AS float)"),
    ("x + 1", "x + 2"),
]


@pytest.mark.parametrize(("first", "second"), ALIKE)
def test_expressions_that_are_merely_alike_are_two(first: str, second: str) -> None:
    assert counted(first, second) == 2
    assert counted(first, first) == counted(second, second) == 1
    selected(first, first)
    with pytest.raises(DefinitionError, match="is neither in GROUP BY nor in an aggregate"):
        selected(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("x + 1", "(x) + CAST(1 AS float)"),
        ("UPPER(s)", "upper([s])"),
        ("YEAR(at)", "DATEPART(yy, at)"),
        ("DATEDIFF(year, at, other)", "YEAR(other) - YEAR(at)"),
        ("DATENAME(day, at)", "CAST(DAY(at) AS nvarchar(max))"),
        ("NULLIF(n, 1)", "CASE n WHEN 1 THEN NULL ELSE n END"),
        ("IIF(n = 1, x, NULL)", "CASE WHEN n = 01 THEN x END"),
        ("CASE WHEN n BETWEEN 1 AND 2 THEN x END", "CASE WHEN n >= 1 AND n <= 2 THEN x END"),
        ("CHARINDEX('a', s)", "CHARINDEX('a', s, 1)"),
    ],
)
def test_two_ways_to_write_an_expression_are_one(first: str, second: str) -> None:
    assert counted(first, second) == 1
    selected(first, second)
    selected(second, first)
