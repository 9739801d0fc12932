"""ST_WITHIN, ST_INTERSECTS and ST_OVERLAPS are planar, compared with oracles on whole numbers."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.model import ShapeComparison
from tests.geography.shapes import geojson, point, polygon, rectangle, rows, value, wkt

INTERSECTS, OVERLAPS, WITHIN = ShapeComparison.INTERSECTS, ShapeComparison.OVERLAPS, ShapeComparison.WITHIN
Place = tuple[int, int]
Ring = list[Place]
Box = tuple[int, int, int, int]


def is_within(place: Place, ring: Ring) -> bool:
    """Return whether a place is inside a ring, by its winding number; on an edge it is not."""
    x, y = place
    winding = 0
    for (x1, y1), (x2, y2) in pairwise([*ring, ring[0]]):
        side = (x2 - x1) * (y - y1) - (x - x1) * (y2 - y1)
        if side == 0 and min(x1, x2) <= x <= max(x1, x2) and min(y1, y2) <= y <= max(y1, y2):
            return False
        if y1 <= y < y2 and side > 0:
            winding += 1
        elif y2 <= y < y1 and side < 0:
            winding -= 1
    return winding != 0


@st.composite
def rings(draw: st.DrawFn) -> tuple[Place, Ring]:
    """Draw a centre, and a ring around it: a place in each of several directions, counter-clockwise."""
    x, y = draw(st.integers(-120, 120)), draw(st.integers(-60, 60))
    radii = draw(st.lists(st.integers(8, 25), min_size=3, max_size=8))
    angles = [2 * math.pi * number / len(radii) for number in range(len(radii))]
    ring = [
        (x + round(radius * math.cos(angle)), y + round(radius * math.sin(angle)))
        for radius, angle in zip(radii, angles, strict=True)
    ]
    return (x, y), ring


@given(rings(), st.lists(st.tuples(st.integers(-30, 30), st.integers(-30, 30)), min_size=1, max_size=20))
def test_a_point_is_within_a_polygon_by_its_winding_number(drawn: tuple[Place, Ring], steps: list[Place]) -> None:
    (x, y), ring = drawn
    places = [*ring, *((x + east, y + north) for east, north in steps)]
    within = rows(WITHIN, [point(*place) for place in places], [polygon(*ring)] * len(places))
    assert [row["value"] for row in within] == [int(is_within(place, ring)) for place in places]


boxes = st.tuples(st.integers(-6, 6), st.integers(-6, 6), st.integers(1, 6), st.integers(1, 6)).map(
    lambda drawn: (drawn[0], drawn[1], drawn[0] + drawn[2], drawn[1] + drawn[3])
)


def cells(box: Box) -> set[Place]:
    """Return the unit squares that make up a box."""
    west, south, east, north = box
    return {(x, y) for x in range(west, east) for y in range(south, north)}


def corners(box: Box) -> set[Place]:
    """Return the whole positions in a box, edges included."""
    west, south, east, north = box
    return {(x, y) for x in range(west, east + 1) for y in range(south, north + 1)}


@given(boxes, boxes)
def test_rectangles_are_compared_by_the_squares_that_they_share(first: Box, second: Box) -> None:
    pair = rectangle(*first), rectangle(*second)
    shared, mine, theirs = cells(first) & cells(second), cells(first), cells(second)
    assert value(WITHIN, *pair) == int(mine <= theirs)
    assert value(OVERLAPS, *pair) == int(bool(shared) and not mine <= theirs and not theirs <= mine)
    assert value(INTERSECTS, *pair) == int(bool(corners(first) & corners(second)))


@pytest.mark.parametrize("east", [-1, 1])
@pytest.mark.parametrize("north", [-1, 1])
def test_a_point_is_within_a_polygon_in_every_quadrant(east: int, north: int) -> None:
    west, south = min(10 * east, 20 * east), min(40 * north, 50 * north)
    area = rectangle(west, south, west + 10, south + 10)
    assert value(WITHIN, point(15 * east, 45 * north), area) == 1
    assert value(WITHIN, point(15 * east, 45 * -north), area) == 0
    assert value(WITHIN, point(15 * -east, 45 * north), area) == 0


def test_a_point_on_an_edge_intersects_the_polygon_but_is_not_within_it() -> None:
    area = rectangle(0, 0, 10, 10)
    assert [value(WITHIN, point(5, 0), area), value(INTERSECTS, point(5, 0), area)] == [0, 1]


def test_an_edge_between_two_points_of_one_latitude_stays_on_it() -> None:
    """The shortest path on the globe from (0, 50) to (100, 50) runs as far north as 61 degrees."""
    area = rectangle(0, 50, 100, 70)
    assert value(WITHIN, point(50, 50.5), area) == 1
    assert value(WITHIN, point(50, 70.5), area) == 0


def test_an_edge_from_179_to_minus_179_runs_through_longitude_0() -> None:
    line = geojson("LineString", [[179, 0], [-179, 0]])
    assert [value(INTERSECTS, line, point(longitude, 0)) for longitude in (0, 180)] == [1, 0]


def test_a_polygon_may_reach_the_poles_and_the_antimeridian() -> None:
    north = rectangle(-180, 80, 180, 90)
    assert [value(WITHIN, point(longitude, 89.5), north) for longitude in (-179, 0, 179)] == [1, 1, 1]


def test_every_kind_of_shape_can_be_compared() -> None:
    line, area = geojson("LineString", [[1, 1], [2, 2]]), rectangle(0, 0, 10, 10)
    assert value(WITHIN, line, area) == 1
    assert value(OVERLAPS, line, geojson("LineString", [[1.5, 1.5], [3, 3]])) == 1
    assert value(OVERLAPS, point(1, 1), area) == 0
    assert value(INTERSECTS, point(1.5, 1.5), line) == 1
    assert value(WITHIN, wkt("MULTIPOINT((1 1),(2 2))"), area) == 1
    assert value(WITHIN, point(1, 1), wkt("MULTIPOLYGON(((0 0,2 0,2 2,0 2,0 0)),((5 5,6 5,6 6,5 6,5 5)))")) == 1
    assert value(INTERSECTS, wkt("MULTILINESTRING((0 0,1 1),(4 4,5 5))"), point(4.5, 4.5)) == 1


def test_a_hole_of_wkt_is_outside() -> None:
    ring = wkt("POLYGON((0 0,10 0,10 10,0 10,0 0),(4 4,4 6,6 6,6 4,4 4))")
    assert [value(WITHIN, point(x, 5), ring) for x in (2, 5)] == [1, 0]
