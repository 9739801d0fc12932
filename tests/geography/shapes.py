"""Shapes as GeoJSON and WKT, and one comparison of two of them."""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from recapture.geography.columns import LATITUDE, LONGITUDE, WKT
from recapture.geography.comparisons import call
from recapture.model import ShapeComparison

Position = tuple[float, float]
"""Longitude and latitude."""


def geojson(kind: str, coordinates: Any) -> str:
    return json.dumps({"type": kind, "coordinates": coordinates})


def point(longitude: float, latitude: float) -> str:
    return geojson("Point", [longitude, latitude])


def polygon(*ring: Position) -> str:
    """Return a polygon; the first position closes the ring."""
    return geojson("Polygon", [[*ring, ring[0]]])


def rectangle(west: float, south: float, east: float, north: float) -> str:
    return polygon((west, south), (east, south), (east, north), (west, north))


def wkt(text: str | None) -> dict[str, str | None]:
    return {WKT: text}


def created(latitude: float | None, longitude: float | None) -> dict[str, float | None]:
    """Return a point as CreatePoint gives it to a function."""
    return {LONGITUDE: longitude, LATITUDE: latitude}


Shape = str | dict[str, str | None] | dict[str, float | None] | None
"""GeoJSON, WKT as `wkt` gives it, or a point as `created` gives it."""


def rows(function: ShapeComparison, first: Sequence[Shape], second: Sequence[Shape]) -> list[dict[str, Any]]:
    """Return the value and the error of each row."""
    listed: list[dict[str, Any]] = call(function, _column(first), _column(second)).to_pylist()
    return listed


def value(function: ShapeComparison, first: Shape, second: Shape) -> Any:
    """Return the result for two shapes."""
    [row] = rows(function, [first], [second])
    assert row["error"] is None
    return row["value"]


def error(function: ShapeComparison, first: Shape, second: Shape) -> str:
    """Return the error for two shapes."""
    [row] = rows(function, [first], [second])
    assert row["value"] is None
    return str(row["error"])


def _column(shapes: Sequence[Shape]) -> pa.Array:
    fields = {name for shape in shapes if isinstance(shape, dict) for name in shape}
    if not fields:
        return pa.array(shapes, pa.string())
    types = {WKT: pa.string(), LONGITUDE: pa.float64(), LATITUDE: pa.float64()}
    return pa.array(shapes, pa.struct([(name, types[name]) for name in types if name in fields]))
