"""Shapes in columns of Arrow. Longitude is x and latitude is y, in degrees.

A usual point, one in the plain spelling of GeoJSON or WKT, is read by a regular expression: points seldom repeat, and
this is ten times as fast as GEOS. Any other shape is read and checked once per batch, however many rows have it.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray
from shapely import GeometryType

from recapture.geography.columns import LATITUDE, LONGITUDE, WKT

_POLYGONS = (GeometryType.POLYGON, GeometryType.MULTIPOLYGON)
_GEOJSON_TYPES = (GeometryType.POINT, GeometryType.LINESTRING, GeometryType.POLYGON)
_SUPPORTED_WKT = re.compile(r"\s*(?:MULTI)?(?:POINT|LINESTRING|POLYGON)\b", re.IGNORECASE)
"""Regular expression of the beginning of WKT that is supported. GEOS fails for curves."""
_NOT_GEOJSON = "is not GeoJSON of a Point, a LineString, or a Polygon with closed rings"
_NOT_WKT = "is not WKT of points, lines, or polygons with closed rings; GeoJSON is a record, as JSON_PARSE returns it"
_SHOWN = 200
"""Number of characters of a text that an error shows."""
_EMPTY = "is empty"
_OUTSIDE = "has a longitude outside -180 to 180, or a latitude outside -90 to 90"
_CLOCKWISE = "runs clockwise, which may mean the rest of the globe (reverse its points)"
_HOLE = "has a hole, which ASA does not have in GeoJSON (write it as WKT)"

_SPACE = "[ \\t\\r\\n]*"
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_LONGITUDE, _LATITUDE = f"(?P<longitude>{_NUMBER})", f"(?P<latitude>{_NUMBER})"
_GEOJSON_POINT = _SPACE.join(
    [
        *("^", r"\{", '"type"', ":", '"Point"', ",", '"coordinates"', ":", r"\["),
        *(_LONGITUDE, ",", _LATITUDE, f"(?:,{_SPACE}{_NUMBER}{_SPACE})?", r"\]", r"\}", "$"),
    ]
)
_WKT_POINT = _SPACE.join(["(?i)^", "POINT", r"\(", rf"{_LONGITUDE}[ \t\r\n]+{_LATITUDE}", r"\)", "$"])


@dataclass(frozen=True)
class Shapes:
    """The shapes of some rows. A row that is NULL or not a shape has neither coordinates nor a shape."""

    longitude: NDArray[np.float64]
    """Longitude of each row that is a usual point; NaN for the others."""
    latitude: NDArray[np.float64]
    """Latitude of each row that is a usual point; NaN for the others."""
    others: NDArray[Any]
    """Shape of each row that is not a usual point; None for the others."""
    errors: dict[int, str]
    """Reason why a row is not a shape, by row."""

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether each row has a shape."""
        return self._is_usual | ~shapely.is_missing(self.others)

    def take(self, rows: NDArray[np.int64]) -> "Shapes":
        """Return the shapes of some rows, all of which have shapes."""
        return Shapes(self.longitude[rows], self.latitude[rows], self.others[rows], {})

    def points(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the longitudes and latitudes of the points; NaN for other shapes."""
        if self._is_usual.all():
            return self.longitude, self.latitude
        x, y = shapely.get_x(self.others), shapely.get_y(self.others)
        return np.where(self._is_usual, self.longitude, x), np.where(self._is_usual, self.latitude, y)

    def are_polygons(self) -> NDArray[np.bool_]:
        """Return whether each shape has an area."""
        return np.isin(shapely.get_type_id(self.others), _POLYGONS)

    def geometries(self) -> NDArray[Any]:
        """Return the shapes as objects of shapely. All but the usual points are prepared for many comparisons."""
        usual = np.flatnonzero(self._is_usual)
        geometries = self.others.copy()
        geometries[usual] = shapely.points(self.longitude[usual], self.latitude[usual])
        return geometries

    @property
    def _is_usual(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.longitude)


def read(column: pa.Array) -> Shapes:
    """Return the shapes of a column; see `columns` for its types."""
    if not pa.types.is_struct(column.type):
        return _read(column, only_wkt=False)
    if column.type.get_field_index(WKT) >= 0:
        return _read(column.field(WKT), only_wkt=True)
    return _points(column.field(LONGITUDE), column.field(LATITUDE))


def _read(texts: pa.Array, only_wkt: bool) -> Shapes:
    longitude, latitude = np.full((2, len(texts)), np.nan)
    rest = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
    for pattern in [_WKT_POINT] if only_wkt else [_GEOJSON_POINT, _WKT_POINT]:
        coordinates = pc.extract_regex(texts.take(pa.array(rest)), pattern)
        longitude[rest], latitude[rest] = _numbers(coordinates, LONGITUDE), _numbers(coordinates, LATITUDE)
        longitude[_outside(longitude, latitude)] = np.nan
        rest = rest[np.isnan(longitude[rest])]
    encoded = texts.take(pa.array(rest)).dictionary_encode()
    shapes, reasons = _checked(encoded.dictionary.to_numpy(zero_copy_only=False), only_wkt)
    codes = encoded.indices.to_numpy()
    others = np.full(len(texts), None)
    others[rest] = shapes[codes]
    wrong = np.flatnonzero(reasons[codes] != np.array(None))
    errors = {int(row): str(reasons[code]) for row, code in zip(rest[wrong], codes[wrong], strict=True)}
    return Shapes(longitude, latitude, others, errors)


def _points(longitudes: pa.Array, latitudes: pa.Array) -> Shapes:
    """Return the points with these coordinates; NULL if one of the two is NULL."""
    longitude, latitude = (_floats(column) for column in (longitudes, latitudes))
    longitude[np.isnan(latitude)] = np.nan
    latitude[np.isnan(longitude)] = np.nan
    wrong = np.flatnonzero(_outside(longitude, latitude))
    errors = {int(row): f"{_OUTSIDE}: CreatePoint({latitude[row]}, {longitude[row]})" for row in wrong}
    longitude[wrong] = np.nan
    return Shapes(longitude, latitude, np.full(len(longitude), None), errors)


def _outside(longitude: NDArray[np.float64], latitude: NDArray[np.float64]) -> NDArray[np.bool_]:
    return (np.abs(longitude) > 180) | (np.abs(latitude) > 90)


def _numbers(coordinates: pa.Array, name: str) -> NDArray[np.float64]:
    """Return a group of a regular expression as numbers, NaN where it did not match."""
    matched: pa.Array = pc.if_else(coordinates.is_valid(), coordinates.field(name), None)
    return _floats(matched.cast(pa.float64()))


def _floats(column: pa.Array) -> NDArray[np.float64]:
    return np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _checked(texts: NDArray[Any], only_wkt: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the shape of each text, and what is wrong with it: one of them is None. The shapes are prepared."""
    is_wkt = np.array([only_wkt or not text.lstrip().startswith("{") for text in texts], dtype=bool)
    shapes = np.full(len(texts), None)
    shapes[is_wkt], shapes[~is_wkt] = _from_wkt(texts[is_wkt]), _from_geojson(texts[~is_wkt])
    west, south, east, north = shapely.bounds(shapes).T
    invalid = np.array([f"is not valid ({reason})" for reason in shapely.is_valid_reason(shapes)], dtype=object)
    reasons = np.select(
        [
            is_wkt & shapely.is_missing(shapes),
            shapely.is_missing(shapes),
            shapely.is_empty(shapes),
            (west < -180) | (east > 180) | (south < -90) | (north > 90),
            ~shapely.is_valid(shapes),
            _is_clockwise(shapes),
            ~is_wkt & (shapely.get_num_interior_rings(shapes) > 0),
        ],
        [_NOT_WKT, _NOT_GEOJSON, _EMPTY, _OUTSIDE, invalid, _CLOCKWISE, _HOLE],
        np.array(None),
    )
    for number in np.flatnonzero(reasons != np.array(None)):
        shapes[number] = None
        reasons[number] += f": {texts[number][:_SHOWN]}"
    shapely.prepare(shapes)
    return shapes, reasons


def _from_wkt(texts: NDArray[Any]) -> NDArray[Any]:
    supported = [text if _SUPPORTED_WKT.match(text) else "" for text in texts]
    return shapely.from_wkt(np.array(supported, dtype=object), on_invalid="ignore")


def _from_geojson(texts: NDArray[Any]) -> NDArray[Any]:
    """Return the shape of each GeoJSON; None for a Feature, of which GEOS reads the geometry."""
    shapes = shapely.from_geojson(texts, on_invalid="ignore")
    for number in np.flatnonzero(np.isin(shapely.get_type_id(shapes), _GEOJSON_TYPES)):
        if '"Feature"' in texts[number] and json.loads(texts[number])["type"] == "Feature":
            shapes[number] = None
    shapes[~np.isin(shapely.get_type_id(shapes), _GEOJSON_TYPES)] = None
    return shapes


def _is_clockwise(shapes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether each shape has an outer ring whose points run clockwise."""
    parts, rows = shapely.get_parts(shapes, return_index=True)
    rings = shapely.get_exterior_ring(parts)
    clockwise = np.zeros(len(shapes), dtype=bool)
    clockwise[rows[(rings != np.array(None)) & ~shapely.is_ccw(rings)]] = True
    return clockwise
