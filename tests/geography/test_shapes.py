"""What is a shape, and what stops the run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.model import ShapeComparison
from tests.geography.shapes import Shape, created, error, geojson, point, polygon, rectangle, rows, value, wkt

DISTANCE, WITHIN = ShapeComparison.DISTANCE, ShapeComparison.WITHIN
AREA = rectangle(0, 0, 10, 10)
NO_GEOJSON = "is not GeoJSON of a Point, a LineString, or a Polygon with closed rings"
NO_WKT = "is not WKT of points, lines, or polygons with closed rings; GeoJSON is a record, as JSON_PARSE returns it"
OUTSIDE = "has a longitude outside -180 to 180, or a latitude outside -90 to 90"


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ("x", NO_WKT),
        ("", NO_WKT),
        ("[1, 2]", NO_WKT),
        ("{}", NO_GEOJSON),
        ('{"type":"Point"}', NO_GEOJSON),
        ('{"type":"point","coordinates":[1,2]}', NO_GEOJSON),
        ('{"type":"Point","coordinates":null}', NO_GEOJSON),
        ('{"type":"Point","coordinates":[1]}', NO_GEOJSON),
        ('{"type":"Point","coordinates":["1",2]}', NO_GEOJSON),
        ('{"type":"Point","coordinates":[1,2,3,4]}', NO_GEOJSON),
        ('{"type":"Point","coordinates":[01,2]}', NO_GEOJSON),
        ('{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]},"properties":{}}', NO_GEOJSON),
        ('{"type":"GeometryCollection","geometries":[]}', NO_GEOJSON),
        (geojson("MultiPoint", [[1, 2]]), NO_GEOJSON),
        (geojson("LineString", [[1, 2]]), NO_GEOJSON),
        (geojson("Polygon", [[1, 2], [3, 2], [3, 3], [1, 2]]), NO_GEOJSON),
        (geojson("Polygon", [[[1, 2], [3, 2], [3, 3]]]), NO_GEOJSON),
        ("POINT(1,2)", NO_WKT),
        (geojson("Point", []), "is empty"),
        (geojson("Polygon", []), "is empty"),
        (point(180.5, 0), OUTSIDE),
        (point(0, -90.5), OUTSIDE),
        (point(1e300, 0), OUTSIDE),
        (rectangle(170, 0, 190, 10), OUTSIDE),
        (geojson("LineString", [[1, 2], [1, 2]]), "is not valid (Too few points in geometry component[1 2])"),
        (polygon((0, 0), (2, 2), (2, 0), (0, 2)), "is not valid (Self-intersection[1 1])"),
        (
            polygon((0, 0), (0, 9), (9, 9), (9, 0)),
            "runs clockwise, which may mean the rest of the globe (reverse its points)",
        ),
        (
            geojson("Polygon", [[[0, 0], [9, 0], [9, 9], [0, 0]], [[5, 2], [6, 2], [6, 3], [5, 2]]]),
            "has a hole, which ASA does not have in GeoJSON (write it as WKT)",
        ),
    ],
)
def test_what_is_not_a_shape_is_an_error_with_its_text(shape: str, reason: str) -> None:
    assert error(WITHIN, shape, AREA) == f"ST_WITHIN: argument 1 {reason}: {shape[:200]}"
    assert error(DISTANCE, point(1, 2), shape) == f"ST_DISTANCE: argument 2 {reason}: {shape[:200]}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", NO_WKT),
        ("POINT(1,2)", NO_WKT),
        ("POINT(1 2) POINT(1 2)", NO_WKT),
        ("SRID=4326;POINT(1 2)", NO_WKT),
        ("POLYGON((0 0,1 0,1 1))", NO_WKT),
        ("GEOMETRYCOLLECTION(POINT(1 2))", NO_WKT),
        ("CIRCULARSTRING(0 0,1 1,2 0)", NO_WKT),
        ("LINEARRING(0 0,1 0,1 1,0 0)", NO_WKT),
        ("FULLGLOBE", NO_WKT),
        (point(1, 2), NO_WKT),
        ("POINT EMPTY", "is empty"),
        ("POINT(181 2)", OUTSIDE),
        ("POINT(inf 2)", OUTSIDE),
        ("POINT(nan 2)", "is not valid (Invalid Coordinate[nan 2])"),
        (
            "MULTIPOLYGON(((0 0,1 0,1 1,0 0)),((5 5,6 6,6 5,5 5)))",
            "runs clockwise, which may mean the rest of the globe (reverse its points)",
        ),
    ],
)
def test_what_is_not_wkt_is_an_error_with_its_text(text: str, reason: str) -> None:
    assert error(WITHIN, wkt(text), AREA) == f"ST_WITHIN: argument 1 {reason}: {text}"


@pytest.mark.parametrize("shape", [geojson("LineString", [[0, 0], [1, 1]]), wkt("MULTIPOINT((0 0),(1 1))")])
def test_there_is_no_distance_from_a_line_or_several_points(shape: Shape) -> None:
    message = "ST_DISTANCE takes two points, or a polygon and another polygon or a point"
    assert [error(DISTANCE, shape, other) for other in (point(0, 0), AREA)] == [message] * 2


@pytest.mark.parametrize("function", ShapeComparison)
@pytest.mark.parametrize("other", [None, AREA, "x"])
def test_null_gives_null_even_next_to_what_is_not_a_shape(function: ShapeComparison, other: Shape) -> None:
    assert rows(function, [None, other], [other, None]) == [{"value": None, "error": None}] * 2
    assert rows(function, [wkt(None)], [other]) == [{"value": None, "error": None}]


def test_no_rows_give_no_rows() -> None:
    assert [rows(function, [], []) for function in ShapeComparison] == [[]] * 4


@pytest.mark.parametrize(
    "spelling",
    [
        '{"type":"Point","coordinates":[1.5,-2]}',
        ' { "type" : "Point" , "coordinates" : [ 1.5 , -2.0 ] }\n',
        '{"coordinates":[15e-1,-0.2E+1],"type":"Point"}',
        '{"type":"Point","coordinates":[1.5,-2,100],"bbox":[1.5,-2,1.5,-2]}',
        '{"type":"Point","coordinates":[1.5,-2],"properties":{"type":"Feature"}}',
        "POINT(1.5 -2)",
        "point z (1.5 -2 7)",
        wkt("POINT(1.5 -2)"),
        wkt(" point ( 1.5   -2.0 ) "),
        wkt("POINT(+1.50 -002)"),
        wkt("POINT Z (1.5 -2 7)"),
    ],
)
def test_a_point_may_be_spelled_in_many_ways(spelling: Shape) -> None:
    assert value(DISTANCE, spelling, point(1.5, -2)) == 0.0
    assert value(WITHIN, spelling, rectangle(1, -3, 2, -1)) == 1


@given(st.floats(-90, 90), st.floats(-180, 180), st.sampled_from(ShapeComparison))
def test_a_created_point_is_compared_as_its_geojson_is(
    latitude: float, longitude: float, function: ShapeComparison
) -> None:
    for other in (point(1, 1), AREA):
        expected = value(function, point(longitude, latitude), other)
        assert value(function, created(latitude, longitude), other) == expected


@pytest.mark.parametrize(("latitude", "longitude"), [(90.5, 0.0), (0.0, -180.5), (float("inf"), 0.0)])
def test_a_created_point_that_is_not_on_the_globe_is_an_error(latitude: float, longitude: float) -> None:
    message = f"ST_WITHIN: argument 1 {OUTSIDE}: CreatePoint({latitude}, {longitude})"
    assert error(WITHIN, created(latitude, longitude), AREA) == message


@pytest.mark.parametrize("place", [created(None, 1.0), created(1.0, None), created(None, None), created(None, 999.0)])
def test_a_point_that_is_created_from_null_is_null(place: Shape) -> None:
    assert rows(WITHIN, [place], [AREA]) == [{"value": None, "error": None}]


SHAPES = [
    None,
    "x",
    point(1, 1),
    point(200, 1),
    point(20, 20),
    '{"coordinates":[1,1],"type":"Point"}',
    geojson("LineString", [[1, 1], [2, 2]]),
    geojson("Polygon", [[[0, 0], [0, 9], [9, 9], [0, 0]]]),
    AREA,
    rectangle(1, 1, 2, 2),
    "POINT(1 1)",
    "POINT(1 200)",
    "POLYGON((0 0,9 0,9 9,0 9,0 0),(4 4,4 6,6 6,6 4,4 4))",
]


@given(
    st.sampled_from(ShapeComparison),
    st.lists(st.tuples(st.sampled_from(SHAPES), st.sampled_from(SHAPES)), max_size=30),
)
def test_a_row_does_not_depend_on_the_rows_around_it(
    function: ShapeComparison, pairs: list[tuple[str | None, str | None]]
) -> None:
    together = rows(function, [one for one, _ in pairs], [other for _, other in pairs])
    assert together == [row for one, other in pairs for row in rows(function, [one], [other])]
