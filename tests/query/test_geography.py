"""The geospatial functions in queries: what a call means, and where it can be."""

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from recapture.errors import DefinitionError
from recapture.model import AsaType, ShapeComparison
from tests.conftest import Python
from tests.query.small_stream import Row, at, compiled, rows


def point(longitude: float, latitude: float) -> dict[str, Any]:
    return {"type": "Point", "coordinates": [longitude, latitude]}


AREA = (
    "CreatePolygon(CreatePoint(0, 0), CreatePoint(0, 10), CreatePoint(10, 10), CreatePoint(10, 0), CreatePoint(0, 0))"
)
PLACES = [at(1, place=point(5, 5)), at(2, place=point(6, 5)), at(3, place=point(15, 5)), at(4)]


def only(spark: SparkSession, text: str, event: Row) -> Row:
    [[row]] = rows(spark, text, [event])
    return row


def stopped(spark: SparkSession, text: str, event: Row) -> str:
    with pytest.raises(PySparkException) as error:
        rows(spark, text, [event])
    return str(error.value)


def test_a_query_has_the_functions_that_it_calls_in_any_letter_case() -> None:
    query = compiled("WITH a AS (SELECT st_Within(p, q) AS w FROM telemetry) SELECT w INTO out FROM a WHERE w = 1")
    assert query.geography == (ShapeComparison.WITHIN,)
    assert compiled("SELECT createPoint(x, y) AS p INTO out FROM telemetry").geography == ()


def test_shapes_are_records_distances_floats_and_comparisons_bigints() -> None:
    query = compiled(
        "SELECT CreatePoint(y, x) AS p, CreateLineString(q, r) AS l, CreatePolygon(q, r, s, q) AS g, "
        "ST_DISTANCE(q, r) AS d, ST_WITHIN(t, u) AS w, ST_INTERSECTS(q, r) AS i, ST_OVERLAPS(q, r) AS o "
        "INTO out FROM telemetry"
    )
    record, bigint = AsaType.RECORD, AsaType.BIGINT
    types = [record, record, record, AsaType.FLOAT, bigint, bigint, bigint]
    assert [column.type for column in query.outputs[0].columns] == types
    assert {column.name: column.type for column in query.inputs[0].columns} == {
        **dict.fromkeys("xy", AsaType.FLOAT),
        **dict.fromkeys("qrs", record),
        **dict.fromkeys("tu", AsaType.STRING),
    }


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("CreatePoint(x)", "CREATEPOINT takes 2 arguments, but this has 1"),
        ("CreatePoint('1', x)", "CREATEPOINT takes float here, but this is nvarchar(max)"),
        ("CreateLineString(p)", "CREATELINESTRING takes 2 or more arguments, but this has 1"),
        ("CreatePolygon(p, q, p)", "CREATEPOLYGON takes 4 or more arguments, but this has 3"),
        ("CreateLineString(p, 'POINT(1 2)')", "CREATELINESTRING takes record here, but this is nvarchar(max)"),
        ("ST_DISTANCE(p)", "ST_DISTANCE takes 2 arguments, but this has 1"),
        ("ST_WITHIN(p, 5)", "ST_WITHIN takes nvarchar(max) or record here, but this is bigint"),
    ],
)
def test_a_call_that_cannot_be_compiled_says_what_is_wrong(call: str, message: str) -> None:
    with pytest.raises(DefinitionError) as error:
        compiled(f"SELECT {call} AS v INTO out FROM telemetry")
    assert str(error.value).split("\n")[0].partition(": ")[2] == message


def test_shapes_are_created_as_on_microsofts_pages(spark: SparkSession) -> None:
    """Examples of the pages CreatePoint, CreateLineString and CreatePolygon."""
    text = """
        SELECT CreatePoint(latitude, longitude) AS point,
            CreateLineString(CreatePoint(latitude, longitude), CreatePoint(10.0, 10.0), CreatePoint(10.5, 10.5))
                AS line,
            CreatePolygon(CreatePoint(latitude, longitude), CreatePoint(10.0, 10.0), CreatePoint(10.5, 10.5),
                CreatePoint(latitude, longitude)) AS polygon
        INTO out FROM telemetry
    """
    for latitude, longitude in ((3.0, -10.2), (-87.33, 20.2321)):
        place, others = [longitude, latitude], [[10.0, 10.0], [10.5, 10.5]]
        assert only(spark, text, at(1, latitude=latitude, longitude=longitude)) == {
            "point": {"type": "Point", "coordinates": place},
            "line": {"type": "LineString", "coordinates": [place, *others]},
            "polygon": {"type": "Polygon", "coordinates": [[place, *others, place]]},
        }


def test_the_json_of_a_shape_is_in_microsofts_order(spark: SparkSession) -> None:
    text = "SELECT CAST(CreatePoint(x, 0.00001) AS nvarchar(max)) AS p INTO out FROM telemetry"
    assert only(spark, text, at(1, x=3.0)) == {"p": '{"type":"Point","coordinates":[1.0E-5,3.0]}'}


def test_a_point_of_the_body_is_a_corner_as_it_is(spark: SparkSession) -> None:
    text = "SELECT CreateLineString(place, CreatePoint(3, 4), r.other) AS line INTO out FROM telemetry"
    event = at(1, place={"type": "Point", "coordinates": [1, 2.5]}, r={"other": point(-5e-7, 6)})
    assert only(spark, text, event) == {
        "line": {"type": "LineString", "coordinates": [[1, 2.5], [4.0, 3.0], [-5e-7, 6]]}
    }


@pytest.mark.parametrize(
    "place",
    [
        {"type": "LineString", "coordinates": [[1, 2], [3, 4]]},
        {"type": "Point", "coordinates": "1,2"},
        {"type": "Point", "coordinates": [1]},
        {"type": "Point", "coordinates": [[1, 2], [3, 4]]},
        {"type": "Point"},
        {},
    ],
)
def test_a_corner_that_is_not_a_point_stops_the_run(spark: SparkSession, place: dict[str, Any]) -> None:
    text = "SELECT CreateLineString(CreatePoint(1, 2), place) AS line INTO out FROM telemetry"
    assert "CREATELINESTRING: argument 2 is not GeoJSON of a Point" in stopped(spark, text, at(1, place=place))


def test_null_gives_null(spark: SparkSession) -> None:
    text = f"""
        SELECT CreatePoint(x, 1) AS p, CreatePoint(1, NULL) AS q, CreateLineString(CreatePoint(x, 1), place) AS l,
            CreateLineString(CreatePoint(1, 2), place) AS m, CreatePolygon(place, place, place, place) AS g,
            ST_DISTANCE(place, CreatePoint(1, 2)) AS d, ST_WITHIN(NULL, {AREA}) AS w, ST_OVERLAPS(place, NULL) AS o,
            ST_INTERSECTS(CAST(place AS nvarchar(max)), 'POINT(1 2)') AS i
        INTO out FROM telemetry
    """
    assert only(spark, text, at(1)) == dict.fromkeys("pqlmgdwoi")


def test_comparisons_are_1_and_0_in_select_and_where(spark: SparkSession) -> None:
    text = f"SELECT ST_WITHIN(place, {AREA}) AS within, ST_DISTANCE(place, place) AS d INTO out FROM telemetry"
    within = {"within": 1, "d": 0.0}
    assert rows(spark, text, PLACES) == [[{"within": 0, "d": 0.0}, within, within, {"within": None, "d": None}]]
    assert rows(spark, f"{text} WHERE ST_WITHIN(place, {AREA}) = 1", PLACES) == [[within, within]]
    assert rows(spark, f"{text} WHERE ST_WITHIN(place, {AREA}) = 0", PLACES) == [[{"within": 0, "d": 0.0}]]


def test_a_comparison_is_a_key_and_the_argument_of_an_aggregate(spark: SparkSession) -> None:
    text = f"""
        SELECT ST_WITHIN(place, {AREA}) AS within, COUNT(*) AS n, MAX(ST_DISTANCE(place, CreatePoint(5, 5))) AS far
        INTO out FROM telemetry GROUP BY ST_WITHIN(place, {AREA}), Tumbling(hour, 1)
        HAVING MAX(ST_DISTANCE(place, CreatePoint(5, 5))) < 1000000
    """
    [[row]] = rows(spark, text, PLACES)
    assert row == {"within": 1, "n": 2, "far": pytest.approx(110_898, abs=1)}


def test_a_distance_is_a_condition_of_a_join_next_to_its_time_bounds(spark: SparkSession) -> None:
    text = """
        CREATE TABLE telemetry (id nvarchar(max), place record)
        SELECT a.id AS a, b.id AS b INTO out FROM telemetry a
        JOIN telemetry b ON DATEDIFF(second, a, b) BETWEEN 0 AND 5 AND ST_DISTANCE(a.place, b.place) < 200000
        WHERE a.id <> b.id
    """
    events = [
        *(at(1, id="a", place=point(0, 0)), at(2, id="b", place=point(1, 0)), at(3, id="c", place=point(2, 0))),
        *(at(4, id="d"), at(9, id="e", place=point(2, 0))),
    ]
    assert rows(spark, text, events) == [[{"a": "a", "b": "b"}, {"a": "b", "b": "c"}]]


def test_fences_of_one_side_are_joined_with_places_of_the_other(spark: SparkSession) -> None:
    text = """
        CREATE TABLE telemetry (id nvarchar(max), fence nvarchar(max), place nvarchar(max))
        SELECT a.id AS fence, b.id AS device INTO out FROM telemetry a
        JOIN telemetry b ON ST_WITHIN(b.place, a.fence) = 1 AND DATEDIFF(minute, a, b) BETWEEN 0 AND 5
    """
    events = [
        at(1, id="west", fence="POLYGON((0 0,5 0,5 5,0 5,0 0))"),
        at(2, id="east", fence="POLYGON((5 0,10 0,10 5,5 5,5 0))"),
        *(
            at(3, id="one", place="POINT(1 1)"),
            at(4, id="two", place="POINT(6 1)"),
            at(5, id="none", place="POINT(5 1)"),
        ),
    ]
    assert rows(spark, text, events) == [[{"fence": "east", "device": "two"}, {"fence": "west", "device": "one"}]]


def test_shapes_come_from_steps_elements_and_texts_of_json(spark: SparkSession) -> None:
    text = """
        WITH a AS (SELECT CreatePoint(0, x) AS place, list, r, CAST(j AS nvarchar(max)) AS j FROM telemetry)
        SELECT ST_DISTANCE(place, GetArrayElement(list, 0)) AS element, ST_DISTANCE(place, a.r.inner) AS property,
            ST_DISTANCE(place, JSON_PARSE(j)) AS parsed, ST_DISTANCE(JSON_PARSE(j), 'POINT(1 0)') AS both
        INTO out FROM a
    """
    event = at(1, x=1.0, list=[point(1, 0)], r={"inner": point(1, 0)}, j='{"type": "Point", "coordinates": [1, 0]}')
    assert only(spark, text, event) == dict.fromkeys(("element", "property", "parsed", "both"), 0.0)


def test_an_undeclared_field_holds_geojson_or_wkt(spark: SparkSession) -> None:
    text = "SELECT ST_WITHIN(place, fence) AS w INTO out FROM telemetry"
    fence = "POLYGON((0 0,10 0,10 10,0 10,0 0))"
    events = [at(1, place=point(5, 5), fence=fence), at(2, place="POINT(5 5)", fence=fence)]
    assert rows(spark, text, events) == [[{"w": 1}, {"w": 1}]]
    declared = f"CREATE TABLE telemetry (place record, fence nvarchar(max)) {text}"
    assert rows(spark, declared, events[:1]) == [[{"w": 1}]]


def test_what_is_not_a_shape_stops_the_run_with_its_text(spark: SparkSession) -> None:
    text = f"SELECT ST_WITHIN(place, {AREA}) AS within INTO out FROM telemetry"
    message = stopped(spark, text, at(1, place=point(5, 95)))
    assert "ST_WITHIN: argument 1 has a longitude outside -180 to 180, or a latitude outside -90 to 90: {" in message
    geojson = "SELECT ST_DISTANCE(CAST(t AS nvarchar(max)), 'POINT(1 2)') AS d INTO out FROM telemetry"
    message = stopped(spark, geojson, at(1, t='{"type":"Point","coordinates":[1,2]}'))
    assert "ST_DISTANCE: argument 1 is not WKT of points, lines, or polygons with closed rings; GeoJSON is a" in message


def test_a_case_and_a_where_guard_a_call_with_shapes_that_it_creates(spark: SparkSession) -> None:
    far = "ST_DISTANCE(CreatePoint(y, x), CreatePoint(0, 0))"
    events = [at(1, y=95.0, x=0.0), at(2, y=0.0, x=0.0)]
    text = f"SELECT CASE WHEN y BETWEEN -90 AND 90 THEN {far} END AS d INTO out FROM telemetry"
    assert rows(spark, text, events) == [[{"d": 0.0}, {"d": None}]]
    text = f"SELECT {far} AS d INTO out FROM telemetry WHERE y BETWEEN -90 AND 90"
    assert rows(spark, text, events) == [[{"d": 0.0}]]


def test_constant_shapes_are_computed_once_and_not_for_each_row(spark: SparkSession) -> None:
    query = compiled(f"SELECT ST_WITHIN(place, {AREA}) AS within INTO out FROM telemetry")
    rows(spark, f"SELECT ST_WITHIN(place, {AREA}) AS within INTO out FROM telemetry", PLACES)
    plan = spark.sql(query.outputs[0].sql)._jdf.queryExecution().optimizedPlan().toString()
    ring = "[0.0,0.0],[10.0,0.0],[10.0,10.0],[0.0,10.0],[0.0,0.0]"
    assert f'{{"type":"Polygon","coordinates":[[{ring}]]}}' in plan


def test_shapely_and_pyproj_are_not_loaded_to_compile_and_register_functions(python: Python) -> None:
    script = """
import sys
import recapture.execute.spark.functions
from tests.query.small_stream import compiled
assert compiled("SELECT ST_WITHIN(a, b) AS w INTO out FROM telemetry").geography
assert not {"shapely", "pyproj"} & set(sys.modules)
"""
    assert python("-c", script).returncode == 0
