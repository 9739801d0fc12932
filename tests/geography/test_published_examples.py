"""The examples of Microsoft's pages, with the results that the pages give."""

import pytest

from recapture.model import ShapeComparison
from tests.geography.shapes import Position, geojson, point, rectangle, value, wkt

DISTANCE, INTERSECTS = ShapeComparison.DISTANCE, ShapeComparison.INTERSECTS
OVERLAPS, WITHIN = ShapeComparison.OVERLAPS, ShapeComparison.WITHIN


def test_the_distance_is_that_of_the_page_st_distance_but_for_a_millimetre() -> None:
    assert value(DISTANCE, point(-5, -5), point(0, 0)) == pytest.approx(784028.74077501823, abs=0.001)


def test_the_distance_from_a_polygon_is_0_as_the_page_st_distance_says() -> None:
    area = rectangle(0, 0, 1, 1)
    assert [value(DISTANCE, point(50, 50), area), value(DISTANCE, area, point(50, 50))] == [0.0, 0.0]
    assert value(DISTANCE, area, rectangle(50, 50, 60, 60)) == 0.0


def test_points_are_within_the_polygons_of_the_page_st_within() -> None:
    assert value(WITHIN, point(76.6, 10.1), rectangle(0, 0, 10, 10)) == 0
    assert value(WITHIN, point(15, 15), rectangle(10, 10, 20, 20)) == 1


def test_lines_intersect_as_on_the_page_st_intersects() -> None:
    paved = geojson("LineString", [[-10.0, 0.0], [0.0, 0.0], [10.0, 0.0]])
    dirt = geojson("LineString", [[0.0, 10.0], [0.0, 0.0], [0.0, -10.0]])
    assert value(INTERSECTS, paved, dirt) == 1
    assert value(INTERSECTS, paved, geojson("LineString", [[-10.0, 10.0], [0.0, 10.0], [10.0, 10.0]])) == 0


def test_polygons_overlap_as_on_the_page_st_overlaps() -> None:
    """The page's last polygon is not one: it ends (40, 40), (40, 20), (40, 40)."""
    assert value(OVERLAPS, rectangle(0, 0, 10, 10), rectangle(30, 30, 40, 40)) == 0
    assert value(OVERLAPS, rectangle(0, 0, 20, 20), rectangle(10, 10, 40, 40)) == 1


BUILDINGS = {
    41: "-122.1337357922017 47.63782998329432,-122.13373042778369 47.637634793257305,-122.13346757130023 "
    "47.637642022530954,-122.13348902897235 47.637508280806806,-122.13361777500506 47.637508280806806,"
    "-122.13361241058703 47.63732393354484,-122.13265754417773 47.63730947490855,-122.13266290859576 "
    "47.637519124743164,-122.13302232460376 47.637515510097955,-122.13301696018573 47.63764925180358,"
    "-122.13272728161212 47.63764925180358,-122.13274873928424 47.63784082716388",
    40: "-122.1336154507967 47.6366745947009,-122.13361008637867 47.636483015064535,-122.13349206918201 "
    "47.636479400347675,-122.13349743360004 47.63636372927573,-122.13372810357532 47.63636372927573,"
    "-122.13373346799335 47.63617576323771,-122.13263912671528 47.63616491902258,-122.13264985555134 "
    "47.63635649982525,-122.13304682248554 47.636367344000604,-122.13305218690357 47.63650831807564,"
    "-122.13276250832996 47.636497473929516,-122.13277323716602 47.63668543881025",
    22: "-122.13611660248233 47.63758544698554,-122.13635263687564 47.6374083293018,-122.13622389084293 "
    "47.63733603619712,-122.13622389084293 47.63717699101473,-122.13581619507266 47.63692757827657,"
    "-122.13559625393344 47.637046862778135,-122.13569281345798 47.637144458985965,-122.13570890671207 "
    "47.637314348246214",
}
"""The rings of the page "Geofencing and geospatial aggregation scenarios", without the position that closes them."""
DEVICES: dict[str, Position] = {
    "A": (-122.13292341559497, 47.636318374032726),
    "B": (-122.13338475554553, 47.63743531308874),
    "C": (-122.13354001095752, 47.63627622505007),
}


def test_devices_are_in_the_buildings_of_the_page_on_geofencing() -> None:
    """Devices A and B are in their buildings. C is in that of A, which the page's query reports."""
    fences = {building: f"POLYGON(({ring},{ring.split(',')[0]}))" for building, ring in BUILDINGS.items()}
    inside = {
        (device, building)
        for device, (longitude, latitude) in DEVICES.items()
        for building, fence in fences.items()
        if value(WITHIN, wkt(f"POINT({longitude} {latitude})"), wkt(fence)) == 1
    }
    assert inside == {("A", 40), ("B", 41), ("C", 40)}
