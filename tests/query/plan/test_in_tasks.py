"""Which queries the tasks aggregate, and that their rows are those of their events, to the last bit."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture.query.model import CompiledQuery
from tests.draws import slow
from tests.query.small_stream import at, published

DECLARED = "CREATE TABLE telemetry (k nvarchar(max), n bigint, x float, y float, b bit, t datetime);"
AGGREGATED = {
    "a count": "SELECT k, COUNT(*) AS c INTO out FROM telemetry GROUP BY k, Tumbling(minute, 1)",
    "all folds": "SELECT COUNT(x) AS c, SUM(n) AS s, SUM(x) AS f, AVG(n) AS a, AVG(x) AS b, MIN(x) AS i, MAX(n) AS j, "
    "MIN(t) AS d INTO out FROM telemetry GROUP BY k, Hopping(minute, 2, 1)",
    "spreads": "SELECT k, STDEV(x) AS a, STDEVP(n) AS b, VAR(x + y) AS c, VARP(x) AS d, AVG(x) AS e, COUNT(x) AS f "
    "INTO out FROM telemetry GROUP BY k, Hopping(minute, 20, 5)",
    "spreads of few values": "SELECT k, n, STDEV(x) AS a, STDEVP(x) AS b, VAR(x) AS c, VARP(x) AS d INTO out "
    "FROM telemetry GROUP BY k, n, Tumbling(second, 30) HAVING NOT (VAR(y) > 1)",
    "spreads in several windows": "SELECT System.Window().Id AS w, STDEV(n) AS a INTO out FROM telemetry "
    "GROUP BY Windows(Window('short', Tumbling(minute, 1)), Window('long', Hopping(minute, 10, 5)))",
    "no key": "SELECT COUNT(*) AS c, MAX(y) AS m INTO out FROM telemetry GROUP BY Tumbling(minute, 7)",
    "keys of other types": "SELECT n, b, t, COUNT(*) AS c INTO out FROM telemetry GROUP BY n, b, t, Tumbling(hour, 1)",
    "several windows": "SELECT System.Window().Id AS w, AVG(x) AS a INTO out FROM telemetry GROUP BY k, "
    "Windows(Window('short', Tumbling(minute, 1)), Window('long', Hopping(minute, 10, 5)))",
    "comparisons": "SELECT COUNT(*) AS c INTO out FROM telemetry WHERE (x > 1 OR y <= x) AND n <> 3 AND k >= 'b' "
    "AND b = 1 AND n BETWEEN -5 AND 5 GROUP BY Tumbling(minute, 1)",
    "missing values": "SELECT COUNT(*) AS c, SUM(x) AS s INTO out FROM telemetry "
    "WHERE NOT (x = 0) AND (k IS NULL OR n IS NOT NULL) GROUP BY Tumbling(minute, 1)",
    "a list": "SELECT k, COUNT(*) AS c INTO out FROM telemetry WHERE k IN ('a', 'é') OR n IN (0, n) OR x NOT IN (1, 2)"
    " GROUP BY k, Tumbling(minute, 1)",
    "a case": "SELECT SUM(CASE WHEN x > 1 THEN 1 WHEN y > 1 THEN 2 END) AS s, MAX(CASE WHEN b = 1 THEN x ELSE y END)"
    " AS m, COUNT(CASE WHEN k = 'a' THEN k ELSE NULL END) AS c INTO out FROM telemetry GROUP BY Tumbling(minute, 1)",
    "floats": "SELECT SUM(x * y - x) AS s, AVG(x + y) AS a, SUM(x + n) AS m INTO out FROM telemetry "
    "GROUP BY k, Tumbling(minute, 1)",
    "a comparison of a bigint and a float": "SELECT COUNT(*) AS c INTO out FROM telemetry WHERE n > 2.5 AND n <= x "
    "GROUP BY Tumbling(minute, 1)",
    "a step that selects": "WITH s AS (SELECT k AS device, x + y AS z, n FROM telemetry WHERE x > -1), "
    "u AS (SELECT device, z AS w FROM s WHERE n IS NOT NULL) "
    "SELECT device, SUM(w) AS s INTO out FROM u WHERE device <> 'b' GROUP BY device, Tumbling(minute, 1)",
    "a step that groups": "WITH s AS (SELECT k, AVG(x) AS a, System.Timestamp() AS w FROM telemetry GROUP BY k, "
    "Tumbling(minute, 1)) SELECT k, MAX(a) AS m INTO out FROM s GROUP BY k, Tumbling(minute, 5)",
    "a union": "SELECT COUNT(*) AS c INTO out FROM telemetry GROUP BY Tumbling(minute, 1) UNION "
    "SELECT SUM(n) AS c FROM telemetry WHERE x > 0 GROUP BY Tumbling(minute, 5)",
    "a comparison of computed floats": "SELECT COUNT(*) AS c, SUM(CASE WHEN x * y >= y * y THEN 1 ELSE 0 END) AS s "
    "INTO out FROM telemetry WHERE x * x - y * y < y OR x + y = x * 1e300 * y GROUP BY Tumbling(minute, 1)",
    "the start of a window": "SELECT DATEADD(minute, -5, System.Timestamp()) AS s, DATEADD(day, 1, System.Timestamp())"
    " AS d, System.Timestamp() AS e, COUNT(*) AS c INTO out FROM telemetry GROUP BY k, Tumbling(minute, 5)",
    "a step that selects groups": "WITH s AS (SELECT k, AVG(x) AS a, SUM(n) AS n, System.Timestamp() AS w FROM "
    "telemetry GROUP BY k, Hopping(minute, 10, 5) HAVING COUNT(*) > 1), "
    "u AS (SELECT k, a * 2 AS a, n, w FROM s WHERE n > 0) "
    "SELECT k, a, CASE WHEN a > 1 THEN 'high' WHEN n = 1 THEN k END AS level, DATEADD(hour, 1, w) AS w "
    "INTO out FROM u WHERE k <> 'a'",
    "HAVING": "SELECT k, COUNT(*) AS c INTO out FROM telemetry GROUP BY k, Tumbling(minute, 1) HAVING AVG(x) > 0",
}
NOT_AGGREGATED = {
    "SELECT k INTO out FROM telemetry": "a SELECT without GROUP BY needs events",
    "SELECT COLLECT(x) AS c INTO out FROM telemetry GROUP BY Tumbling(minute, 1)": "COLLECT is not computed in tasks",
    "SELECT COUNT(DISTINCT k) AS c INTO out FROM telemetry GROUP BY Tumbling(minute, 1)": "COUNT DISTINCT is not",
    "SELECT PERCENTILE_CONT(0.5) OVER (ORDER BY x) AS c INTO out FROM telemetry GROUP BY Tumbling(minute, 1)": (
        "PERCENTILE_CONT is not computed in tasks"
    ),
    "SELECT STDEV(n + 1) AS c INTO out FROM telemetry GROUP BY Tumbling(minute, 1)": "the argument of STDEV",
    "SELECT COUNT(*) AS c INTO out FROM telemetry GROUP BY Sliding(minute, 1)": "a sliding window needs events",
    "SELECT COUNT(*) AS c INTO out FROM telemetry GROUP BY Session(minute, 1, 5)": "a session window needs events",
    "SELECT x, COUNT(*) AS c INTO out FROM telemetry GROUP BY x, Tumbling(minute, 1)": "a float key is not computed",
    "SELECT SUM(n + 1) AS c INTO out FROM telemetry GROUP BY Tumbling(minute, 1)": "the argument of SUM",
    "SELECT MAX(x * y) AS c INTO out FROM telemetry GROUP BY Tumbling(minute, 1)": "MAX of a computed float",
    "SELECT COUNT(*) AS c INTO out FROM telemetry WHERE x / y > 1 GROUP BY Tumbling(minute, 1)": "WHERE is",
    "SELECT COUNT(*) AS c INTO out FROM telemetry WHERE k LIKE 'a%' GROUP BY Tumbling(minute, 1)": "WHERE is",
    "SELECT COUNT(*) AS c INTO out FROM telemetry WHERE UPPER(k) = 'A' GROUP BY Tumbling(minute, 1)": "WHERE is",
    "SELECT COUNT(*) AS c INTO out FROM telemetry WHERE LAG(x) OVER (LIMIT DURATION(minute, 1)) > 1 "
    "GROUP BY Tumbling(minute, 1)": "an analytic function or an APPLY needs events",
    "SELECT COUNT(*) AS c INTO out FROM telemetry a JOIN telemetry b ON DATEDIFF(second, a, b) BETWEEN 0 AND 5 "
    "GROUP BY Tumbling(minute, 1)": "a JOIN",
    "SELECT COUNT(*) AS c INTO out FROM telemetry GROUP BY Tumbling(minute, 1) UNION SELECT n AS c FROM telemetry": (
        "a SELECT without GROUP BY needs events"
    ),
}


def compiled(query: str, in_tasks: bool = True) -> CompiledQuery:
    return compile_query(
        DECLARED + query, inputs={"telemetry": CaptureInput.metadata}, output_aliases=["out"], in_tasks=in_tasks
    )


@pytest.mark.parametrize("query", AGGREGATED.values(), ids=AGGREGATED.keys())
def test_tasks_aggregate_what_means_the_same_on_arrow(query: str) -> None:
    (read,) = compiled(query).inputs
    assert read.not_aggregated_because is None
    assert read.aggregations != ()


@pytest.mark.parametrize(("query", "reason"), NOT_AGGREGATED.items())
def test_tasks_do_not_aggregate_the_events_of_other_queries_and_say_why(query: str, reason: str) -> None:
    (read,) = compiled(query).inputs
    assert read.aggregations == ()
    assert reason in str(read.not_aggregated_because)


@pytest.mark.parametrize("terms", [500, 700])
def test_a_long_condition_compiles_and_is_not_computed_in_tasks(terms: int) -> None:
    condition = " OR ".join(f"n = {number}" for number in range(terms))
    query = f"SELECT COUNT(*) AS c INTO out FROM telemetry WHERE {condition} GROUP BY Tumbling(s, 1)"
    (read,) = compiled(query).inputs
    assert read.not_aggregated_because == "WHERE is too long for tasks"


def test_steps_that_multiply_an_expression_compile_at_once_and_are_not_computed_in_tasks() -> None:
    steps = ", ".join(f"s{n} AS (SELECT x + x AS x FROM {f's{n - 1}' if n else 'telemetry'})" for n in range(40))
    (read,) = compiled(f"WITH {steps} SELECT SUM(x) AS s INTO out FROM s39 GROUP BY Tumbling(s, 1)").inputs
    assert "a long step" in str(read.not_aggregated_because)


def test_many_steps_over_groups_compile() -> None:
    filters = ", ".join(f"s{n} AS (SELECT c FROM s{n - 1} WHERE c > {n})" for n in range(1, 400))
    grouped = "s0 AS (SELECT COUNT(*) AS c FROM telemetry GROUP BY Tumbling(s, 1))"
    compiled_query = compiled(f"WITH {grouped}, {filters} SELECT c INTO out FROM s399")
    assert compiled_query.outputs[0].selects == ()


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("DATEADD(day, 9223372036854775807, System.Timestamp()) AS d", "column d is not computed in tasks"),
        ("DATEADD(month, 1, System.Timestamp()) AS d", "column d is not computed in tasks"),
        ("COUNT(*) + 1 AS c", "column c is not computed in tasks"),
        ("COUNT(DISTINCT k) AS c", "tasks do not aggregate the events of input telemetry"),
    ],
)
def test_an_output_that_is_not_merged_from_panes_says_why(column: str, reason: str) -> None:
    (output,) = compiled(f"SELECT {column} INTO out FROM telemetry GROUP BY Tumbling(s, 1)").outputs
    assert (output.selects, output.not_merged_because) == ((), reason)


def test_an_aggregation_that_two_outputs_need_is_computed_once() -> None:
    query = compile_query(
        "SELECT k, AVG(x) AS a INTO one FROM telemetry GROUP BY k, Tumbling(minute, 1)\n"
        "SELECT k, AVG(x) + 1 AS b INTO two FROM telemetry GROUP BY k, Tumbling(minute, 1) HAVING AVG(x) > 1\n"
        "SELECT AVG(x) AS c INTO three FROM telemetry GROUP BY Tumbling(minute, 1)",
        inputs={"telemetry": CaptureInput.metadata},
        output_aliases=["one", "two", "three"],
    )
    assert len(query.inputs[0].aggregations) == 2


FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 1.0, 2.0, 1e16, 5e-324])
BIGINTS = st.integers(-(2**58), 2**58) | st.integers(-5, 5) | st.sampled_from([2**53 + 1, -(2**53) - 1])
EVENTS = st.builds(
    at,
    st.integers(0, 3600).filter(lambda second: second > 0),
    partition=st.sampled_from(["0", "1"]),
    k=st.none() | st.sampled_from(["a", "b", "é", "\ud7ff", "\U0001f600", ""]),
    n=st.none() | BIGINTS,
    x=st.none() | FLOATS,
    y=st.none() | FLOATS,
    b=st.none() | st.booleans(),
    t=st.none() | st.integers(0, 10**9),
)


@pytest.mark.parametrize("query", AGGREGATED.values(), ids=AGGREGATED.keys())
@slow(3)
@given(events=st.lists(EVENTS, min_size=20, max_size=60))
def test_the_rows_are_those_of_the_events(query: str, events: list[dict[str, Any]]) -> None:
    ways = [published(compiled(query, in_tasks), events) for in_tasks in (True, False)]
    assert repr(ways[0]) == repr(ways[1])


@pytest.mark.parametrize("partitions", ["0", "01"])
def test_spreads_of_many_values_are_those_of_the_events(partitions: str) -> None:
    random = Random(7)
    events = [
        at(
            random.uniform(1, 3600),
            partition=random.choice(partitions),
            k=random.choice("ab"),
            n=random.randint(-3, 3),
            x=random.choice([None, random.gauss(20, 0.1), random.random() * 10 ** random.randint(-20, 20)]),
            y=random.random(),
        )
        for _ in range(3000)
    ]
    query = AGGREGATED["spreads"]
    ways = [published(compiled(query, in_tasks), events) for in_tasks in (True, False)]
    assert repr(ways[0]) == repr(ways[1])
    assert "nan" not in repr(ways[0])
