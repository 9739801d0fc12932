"""ST_DISTANCE on the ellipsoid WGS 84, compared with Vincenty's formula."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recapture.model import ShapeComparison
from tests.draws import examples
from tests.geography.shapes import Position, point, rows, value, wkt

DISTANCE = ShapeComparison.DISTANCE
EQUATOR = 6_378_137.0
FLATTENING = 1 / 298.257223563
MANY = examples(100)

positions = st.tuples(st.floats(-180, 180), st.floats(-90, 90))


def vincenty(first: Position, second: Position) -> float:
    """Return the length of the geodesic in metres, right to half a millimetre for points that are not antipodal."""
    b = EQUATOR * (1 - FLATTENING)
    u1, u2 = (math.atan((1 - FLATTENING) * math.tan(math.radians(latitude))) for _, latitude in (first, second))
    length = math.radians(second[0] - first[0])
    angle = length
    for _ in range(1000):
        sin_sigma = math.hypot(
            math.cos(u2) * math.sin(angle),
            math.cos(u1) * math.sin(u2) - math.sin(u1) * math.cos(u2) * math.cos(angle),
        )
        if sin_sigma == 0:
            return 0.0
        cos_sigma = math.sin(u1) * math.sin(u2) + math.cos(u1) * math.cos(u2) * math.cos(angle)
        sigma = math.atan2(sin_sigma, cos_sigma)
        sin_alpha = math.cos(u1) * math.cos(u2) * math.sin(angle) / sin_sigma
        cos2_alpha = 1 - sin_alpha**2
        middle = cos_sigma - 2 * math.sin(u1) * math.sin(u2) / cos2_alpha if cos2_alpha > 1e-15 else 0.0
        c = FLATTENING / 16 * cos2_alpha * (4 + FLATTENING * (4 - 3 * cos2_alpha))
        before, angle = (
            angle,
            length
            + (1 - c)
            * FLATTENING
            * sin_alpha
            * (sigma + c * sin_sigma * (middle + c * cos_sigma * (2 * middle**2 - 1))),
        )
        if abs(angle - before) < 1e-12:
            break
    u = cos2_alpha * (EQUATOR**2 - b**2) / b**2
    a_ = 1 + u / 16384 * (4096 + u * (-768 + u * (320 - 175 * u)))
    b_ = u / 1024 * (256 + u * (-128 + u * (74 - 47 * u)))
    delta = (
        b_
        * sin_sigma
        * (
            middle
            + b_
            / 4
            * (cos_sigma * (2 * middle**2 - 1) - b_ / 6 * middle * (4 * sin_sigma**2 - 3) * (4 * middle**2 - 3))
        )
    )
    return b * a_ * (sigma - delta)


@given(st.lists(st.tuples(positions, positions), min_size=1, max_size=20))
def test_a_distance_agrees_with_vincenty(pairs: list[tuple[Position, Position]]) -> None:
    pairs = [(first, second) for first, second in pairs if abs(abs(first[0] - second[0]) - 180) > 10]
    assume(pairs)
    distances = rows(DISTANCE, [point(*first) for first, _ in pairs], [point(*second) for _, second in pairs])
    for (first, second), row in zip(pairs, distances, strict=True):
        assert row["value"] == pytest.approx(vincenty(first, second), abs=0.002)


@given(positions, positions)
def test_a_distance_is_the_same_in_both_directions_and_at_most_half_a_meridian(
    first: Position, second: Position
) -> None:
    there, back = rows(DISTANCE, [point(*first), point(*second)], [point(*second), point(*first)])
    assert there["value"] == pytest.approx(back["value"], abs=1e-6)
    assert 0 <= there["value"] < 20_003_932


@pytest.mark.parametrize(
    ("first", "second", "metres"),
    [
        ((179.5, 0.0), (-179.5, 0.0), 111_319.491),
        ((180.0, 10.0), (-180.0, 10.0), 0.0),
        ((0.0, 90.0), (123.0, 90.0), 0.0),
        ((0.0, 0.0), (77.0, 90.0), 10_001_965.729),
        ((10.0, -90.0), (20.0, 90.0), 20_003_931.459),
        ((0.0, 0.0), (180.0, 0.0), 20_003_931.459),
    ],
)
def test_a_distance_may_cross_the_antimeridian_and_the_poles(first: Position, second: Position, metres: float) -> None:
    assert value(DISTANCE, point(*first), point(*second)) == pytest.approx(metres, abs=0.001)


@pytest.mark.parametrize("east", [-1, 1])
@pytest.mark.parametrize("north", [-1, 1])
def test_a_distance_is_the_same_in_every_quadrant(east: int, north: int) -> None:
    origin, place = point(20.0 * east, 40.0 * north), point(21.5 * east, 40.25 * north)
    assert value(DISTANCE, origin, place) == pytest.approx(vincenty((20.0, 40.0), (21.5, 40.25)), abs=0.001)


def test_an_altitude_does_not_count() -> None:
    high = '{"type":"Point","coordinates":[1,2,8000]}'
    assert value(DISTANCE, high, point(1, 2)) == 0.0
    assert value(DISTANCE, wkt("POINT Z (1 2 8000)"), wkt("POINT (1 2)")) == 0.0
