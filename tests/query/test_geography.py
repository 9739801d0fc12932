"""The geospatial functions in queries: what a call means, and where it can be."""

from typing import Any

import pytest

from recapture.errors import RunError
from recapture.model import AsaType, ShapeComparison
from tests.conftest import Python
from tests.query.small_stream import Row, at, compiled, rows


def point(longitude: float, latitude: float) -> dict[str, Any]:
    return {"type": "Point", "coordinates": [longitude, latitude]}


AREA = (
    "CreatePolygon(CreatePoint(0, 0), CreatePoint(0, 10), CreatePoint(10, 10), CreatePoint(10, 0), CreatePoint(0, 0))"
)
PLACES = [at(1, place=point(5, 5)), at(2, place=point(6, 5)), at(3, place=point(15, 5)), at(4)]


def stopped(text: str, event: Row) -> str:
    with pytest.raises(RunError) as error:
        rows(text, [event])
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
def test_a_corner_that_is_not_a_point_stops_the_run(place: dict[str, Any]) -> None:
    text = "SELECT CreateLineString(CreatePoint(1, 2), place) AS line INTO out FROM telemetry"
    assert "CREATELINESTRING: argument 2 is not GeoJSON of a Point" in stopped(text, at(1, place=place))


def test_a_comparison_is_a_key_and_the_argument_of_an_aggregate() -> None:
    text = f"""
        SELECT ST_WITHIN(place, {AREA}) AS within, COUNT(*) AS n, MAX(ST_DISTANCE(place, CreatePoint(5, 5))) AS far
        INTO out FROM telemetry GROUP BY ST_WITHIN(place, {AREA}), Tumbling(hour, 1)
        HAVING MAX(ST_DISTANCE(place, CreatePoint(5, 5))) < 1000000
    """
    [[row]] = rows(text, PLACES)
    assert row == {"within": 1, "n": 2, "far": pytest.approx(110_898, abs=1)}


def test_what_is_not_a_shape_stops_the_run_with_its_text() -> None:
    text = f"SELECT ST_WITHIN(place, {AREA}) AS within INTO out FROM telemetry"
    message = stopped(text, at(1, place=point(5, 95)))
    assert "ST_WITHIN: argument 1 has a longitude outside -180 to 180, or a latitude outside -90 to 90: {" in message
    geojson = "SELECT ST_DISTANCE(CAST(t AS nvarchar(max)), 'POINT(1 2)') AS d INTO out FROM telemetry"
    message = stopped(geojson, at(1, t='{"type":"Point","coordinates":[1,2]}'))
    assert "ST_DISTANCE: argument 1 is not WKT of points, lines, or polygons with closed rings; GeoJSON is a" in message


def test_shapely_and_pyproj_are_not_loaded_to_compile_functions(python: Python) -> None:
    script = """
import sys
import recapture.evaluate.user_functions
from tests.query.small_stream import compiled
assert compiled("SELECT ST_WITHIN(a, b) AS w INTO out FROM telemetry").geography
assert not {"shapely", "pyproj"} & set(sys.modules)
"""
    assert python("-c", script).returncode == 0
