"""The fields and records that the text of a query names, before it compiles."""

import pytest

from recapture.tools.infer.starred_records import starred_records
from recapture.tools.infer.timing_fields import timing_fields


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("SELECT *, site.*, site.floor.*, Site.* INTO out FROM telemetry", ["site", "site.floor", "Site"]),
        ("SELECT telemetry.* INTO out FROM telemetry UNION SELECT t.*, t.a.b.* FROM telemetry t", ["a.b"]),
        ("WITH s AS (SELECT site.* FROM (SELECT * FROM telemetry) AS q) SELECT x.y.* INTO out FROM s", ["site"]),
        ("WITH Telemetry AS (SELECT * FROM telemetry t) SELECT Telemetry.x.y.* INTO out FROM telemetry", ["x.y"]),
        ("WITH s AS (SELECT a.*, b.y FROM telemetry a JOIN other b ON 1 = 1) SELECT s.x.* INTO out FROM s", ["x"]),
        ("WITH s AS (SELECT x AS y FROM telemetry) SELECT s.y.* INTO out FROM s", []),
        ("WITH s AS (SELECT site.* FROM telemetry) SELECT x INTO out FROM s WHERE x > 1", ["site"]),
        ("SELECT e.ArrayValue.*, r.* INTO out FROM telemetry CROSS APPLY GetArrayElements(list) AS e", ["r"]),
        ("SELECT a.r.*, r.* INTO out FROM telemetry a JOIN telemetry b ON DATEDIFF(ss, a, b) = 0", ["r"]),
    ],
)
def test_the_records_before_a_star_are_known_before_the_query_compiles(text: str, paths: list[str]) -> None:
    assert [".".join(path) for path in starred_records(text, ["telemetry"])["telemetry"]] == paths


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("SELECT * INTO out FROM telemetry TIMESTAMP BY Time OVER deviceId, Site.id", ["deviceid", "site.id", "time"]),
        ("SELECT * INTO out FROM telemetry t TIMESTAMP BY CAST(t.site.at AS datetime)", ["site.at"]),
        ("WITH s AS (SELECT * FROM Telemetry TIMESTAMP BY (at)) SELECT x INTO out FROM s", ["at"]),
        ("SELECT * INTO out FROM telemetry TIMESTAMP BY COALESCE(a, b)", []),
        ("SELECT * INTO out FROM other TIMESTAMP BY at", []),
    ],
)
def test_the_fields_without_which_an_event_has_no_place_in_time(text: str, paths: list[str]) -> None:
    assert sorted(".".join(path) for path in timing_fields(text, ["telemetry"])["telemetry"]) == paths
