"""From which fields of the inputs each published column is computed."""

import pytest

from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture_airflow.column_lineage import column_lineage

HISTORY = "LIMIT DURATION(minute, 1)"
NEAR = "DATEDIFF(second, a, b) BETWEEN 0 AND 5"
WINDOW = "Tumbling(minute, 1)"


def lineage(text: str) -> dict[str, str]:
    """Return the fields of each column, as `ALIAS FIELD` in one text. `r` is reference data."""
    inputs = {alias: CaptureInput.metadata for alias in ("a", "b") if f" {alias}" in text}
    references = dict.fromkeys(["r"] if " r" in text else [])
    query = compile_query(text, inputs={**inputs, **references}, output_aliases=["out"])
    [output] = query.outputs
    return {
        name: ", ".join(f"{field.alias} {field.name}" for field in fields)
        for name, fields in column_lineage(query, output).items()
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT x, site.floor AS f, x + y AS s, 1 AS c, System.Timestamp() AS t INTO out FROM a TIMESTAMP BY at "
            "WHERE w > 1",
            {"x": "a x", "f": "a site.floor", "s": "a x, a y", "c": "", "t": "a at"},
        ),
        (
            f"SELECT System.Timestamp() AS t, k, COUNT(*) AS n, AVG(x * 2) AS m, MAX(y) + COUNT(z) AS p INTO out "
            f"FROM a TIMESTAMP BY at GROUP BY k, {WINDOW} HAVING SUM(w) > 1",
            {"t": "a at", "k": "a k", "n": "", "m": "a x", "p": "a y, a z"},
        ),
        (
            "SELECT System.Timestamp() AS t, x INTO out FROM a TIMESTAMP BY EventEnqueuedUtcTime",
            {"t": "a EventEnqueuedUtcTime", "x": "a x"},
        ),
        (
            "SELECT System.Timestamp() AS t, PartitionId AS p, GetMetadataPropertyValue(a, '[User].[key]') AS u "
            "INTO out FROM a",
            {"t": "", "p": "a PartitionId", "u": "a User.key"},
        ),
        (
            "WITH s AS (SELECT k, x * y AS z FROM a), u AS (SELECT k, z FROM s UNION SELECT j AS k, w AS z FROM b) "
            f"SELECT k, SUM(z) AS z INTO out FROM u GROUP BY k, {WINDOW}",
            {"k": "a k, b j", "z": "a x, a y, b w"},
        ),
        (
            f"SELECT a.x, b.y, a.x - b.x AS d, System.Timestamp() AS t INTO out FROM a TIMESTAMP BY at "
            f"JOIN b TIMESTAMP BY bt ON a.k = b.k AND {NEAR}",
            {"x": "a x", "y": "b y", "d": "a x, b x", "t": "a at, b bt"},
        ),
        (
            f"SELECT r.site, MAX(a.x) AS m, System.Timestamp() AS t INTO out FROM a TIMESTAMP BY at "
            f"JOIN r ON a.id = r.id GROUP BY r.site, {WINDOW}",
            {"site": "r site", "m": "a x", "t": "a at"},
        ),
        (
            f"SELECT LAG(x, 1, d) OVER (PARTITION BY k {HISTORY} WHEN w > 1) AS p, "
            f"ISFIRST(minute, 5) OVER (PARTITION BY k WHEN y > 1) AS f, AVG(z) OVER (PARTITION BY k {HISTORY}) AS m "
            "INTO out FROM a",
            {"p": "a d, a x", "f": "a k, a y", "m": "a z"},
        ),
        (
            f"WITH s AS (SELECT x, LAG(y) OVER ({HISTORY}) AS p, k FROM a) "
            f"SELECT s.p, b.z INTO out FROM s JOIN b ON s.k = b.k AND DATEDIFF(second, s, b) BETWEEN 0 AND 5",
            {"p": "a y", "z": "b z"},
        ),
        (
            f"SELECT LAG(a.x) OVER ({HISTORY}) AS p, r.site INTO out FROM a JOIN r ON a.id = r.id",
            {"p": "a x", "site": "r site"},
        ),
        (
            "SELECT e.ArrayValue AS v, e.ArrayIndex + n AS i INTO out FROM a CROSS APPLY GetArrayElements(list) AS e",
            {"v": "a list", "i": "a list, a n"},
        ),
        (
            f"SELECT SUM(CAST(e.ArrayValue AS float)) AS s INTO out FROM a CROSS APPLY GetArrayElements(list) AS e "
            f"GROUP BY {WINDOW}",
            {"s": "a list"},
        ),
        (
            f"SELECT k, m, c, System.Timestamp() AS t INTO out FROM a TIMESTAMP BY at MATCH_RECOGNIZE ({HISTORY} "
            "PARTITION BY j MEASURES Last(A.k) AS k, Max(A.x) AS m, CLASSIFIER() AS c "
            "AFTER MATCH SKIP TO NEXT ROW PATTERN (A+) DEFINE A AS A.n > 1) AS m",
            {"k": "a k", "m": "a x", "c": "", "t": "a at"},
        ),
        (f"SELECT TopOne() OVER (ORDER BY x DESC) AS e INTO out FROM a GROUP BY {WINDOW}", {"e": "a x"}),
    ],
)
def test_a_column_has_the_fields_from_which_its_value_is_computed(text: str, expected: dict[str, str]) -> None:
    assert lineage(text) == expected
