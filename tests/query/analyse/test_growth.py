"""The work of compiling a query grows with the number of its columns, not with the square of that number."""

import cProfile
import pstats
import re

import pytest

from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query


def calls(query: str) -> int:
    """Return the number of function calls that compiling a query takes, which does not depend on the machine."""
    profile = cProfile.Profile(subcalls=False)
    with profile:
        compile_query(query, inputs={"input": CaptureInput.metadata}, output_aliases=["output"])
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT <c#> INTO output FROM input TIMESTAMP BY t",
        "SELECT <SUM(c#) AS s#> INTO output FROM input TIMESTAMP BY t GROUP BY TumblingWindow(minute, 5)",
        "SELECT <c#> INTO output FROM input TIMESTAMP BY t GROUP BY <c#>, TumblingWindow(minute, 5)",
        "WITH s AS (SELECT * FROM input TIMESTAMP BY t) SELECT <c#> INTO output FROM s",
        "WITH s AS (SELECT <c#> FROM input TIMESTAMP BY t) SELECT <c#> INTO output FROM s",
        "CREATE TABLE input (t datetime, <c# bigint>) SELECT * INTO output FROM input TIMESTAMP BY t",
        "SELECT <LAG(c#) OVER (LIMIT DURATION(minute, 5)) AS s#> INTO output FROM input TIMESTAMP BY t",
    ],
    ids=["columns", "aggregates", "keys", "star of a step", "columns of a step", "CREATE TABLE", "analytic functions"],
)
def test_four_times_the_columns_are_about_four_times_the_work(query: str) -> None:
    few, many = (calls(repeated(query, count)) for count in (150, 600))
    assert many < 5 * few


def repeated(query: str, count: int) -> str:
    """Return the query with each <…> written for every number #: <c#> => c0, c1"""
    return re.sub("<(.*?)>", lambda item: ", ".join(item[1].replace("#", str(n)) for n in range(count)), query)
