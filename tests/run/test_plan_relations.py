"""The lines that explain a compiled query."""

import pytest

from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture.run.plan_relations import plan_relations

ON = (
    "and(equal(0.k, 1.k), and(greater_or_equal(1._system_timestamp, add(0._system_timestamp, 0)),"
    " less_or_equal(1._system_timestamp, add(0._system_timestamp, 50000000))))"
)
DECLARED = "CREATE TABLE telemetry (k nvarchar(max), x float, n bigint, list array);"


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        (
            "WITH warm AS (SELECT k, x * 2 AS double FROM telemetry WHERE x > 1)"
            " SELECT k, COUNT(*) AS events, MAX(double) AS most INTO out FROM warm"
            " GROUP BY k, TumblingWindow(second, 5) HAVING COUNT(*) > 2",
            """
            rewrites
              plain steps: output out reads through step 0
              unused steps: step 0
            output out
              output: reads input telemetry
                where greater(x, cast[float, False](1))
                grouped by HoppingWindow(size=50000000, hop=50000000, offset=0)
                _k0 = k
                _r0 = COUNT(*)
                _r1 = MAX(multiply(x, cast[float, False](2)))
                having greater(_r0, 2)
                k = _k0
                events = _r0
                most = _r1
            shared keys
              input telemetry: k
            """,
        ),
        (
            "SELECT k, LAG(x, 2, 0) OVER (PARTITION BY k LIMIT DURATION(minute, 1) WHEN n > 1) AS before,"
            " SUM(n) OVER (LIMIT DURATION(second, 1)) AS total, ISFIRST(second, 10) AS first, e.ArrayIndex AS i"
            " INTO out FROM telemetry CROSS APPLY GetArrayElements(list) AS e",
            """
            output out
              output: reads input telemetry
                @f0 = value 2 rows back of x, or cast[float, False](0) within 60 s by k when greater(n, 1)
                @f1 = SUM(n) within 1 s
                @f2 = is first within 10 s
                @@e0 = each of array_elements(list)
                k = k
                before = @f0
                total = @f1
                first = @f2
                i = @@e0.ArrayIndex
            shared keys: none
            """,
        ),
        (
            "SELECT a.k, TopOne(b.x) OVER (ORDER BY b.n DESC) AS top INTO out FROM telemetry a JOIN telemetry b"
            " ON a.k = b.k AND DATEDIFF(second, a, b) BETWEEN 0 AND 5 GROUP BY a.k, System.Timestamp()",
            f"""
            output out
              join 79: joins input telemetry, input telemetry
                side 1 on {ON}
              output: reads join 79
                grouped by SnapshotWindow()
                _k0 = 0.k
                _r0 = TOPONE(1.x) ordered by 1.n desc
                k = _k0
                top = _r0
            shared keys
              input telemetry: k
            """,
        ),
        (
            "SELECT low INTO out FROM telemetry MATCH_RECOGNIZE (LIMIT DURATION(second, 5) PARTITION BY k"
            " MEASURES Last(Low.x) AS low, Classifier() AS names AFTER MATCH SKIP TO NEXT ROW PATTERN (Low+ High)"
            " DEFINE Low AS Low.x < 1.0, High AS High.x > Max(Low.x)) AS m",
            """
            rewrites
              unused columns: names of matches 0
            output out
              matches 0: matches input telemetry
                within 5 s by k
                Low if less(x, 1.0)
                High if greater(x, @m0)
                @m0 = max of Low: add(x, 0.0)
                @m1 = last of Low: x
                low = @m1
              output: reads matches 0
                low = low
            shared keys
              input telemetry: k
            """,
        ),
    ],
)
def test_each_relation_and_each_expression_is_a_line(query: str, lines: str) -> None:
    compiled = compile_query(DECLARED + query, inputs={"telemetry": CaptureInput.metadata}, output_aliases=["out"])
    shown = plan_relations(compiled)
    assert shown == [line[12:] for line in lines.strip("\n").rstrip().split("\n")]
