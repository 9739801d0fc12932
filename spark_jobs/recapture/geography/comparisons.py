"""The functions that compare two shapes, as ASA computes them at compatibility level 1.2.

Distances are geodesic, on the ellipsoid WGS 84. Everything else is planar: an edge is a straight line between two pairs
of longitude and latitude. docs/query-language.md has the sources.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray
from pyproj import Geod

from recapture.geography.shapes import Shapes, read
from recapture.model import TYPES, ShapeComparison

_WGS_84 = Geod(ellps="WGS84")


def call(function: ShapeComparison, left: pa.Array, right: pa.Array) -> pa.Array:
    """Return, for each row, a struct of the function's value and its error. Both are NULL if an argument is NULL."""
    first, second = read(left), read(right)
    rows = np.flatnonzero(first.known & second.known)
    values = np.full(len(left), np.nan)
    values[rows] = _RELATIONS[function](first.take(rows), second.take(rows))
    errors = np.full(len(left), None)
    errors[rows[np.isnan(values[rows])]] = f"{function} takes two points, or a polygon and another polygon or a point"
    for number, shapes, others in ((2, second, first), (1, first, second)):
        for row, reason in shapes.errors.items():
            if others.known[row] or row in others.errors:
                errors[row] = f"{function}: argument {number} {reason}"
    computed = pa.array(values, mask=np.isnan(values)).cast(TYPES[function.output].view)
    return pa.StructArray.from_arrays([computed, pa.array(errors, pa.string())], ["value", "error"])


def _distance(left: Shapes, right: Shapes) -> NDArray[np.float64]:
    """Return distances in metres: between points, or 0 if one of the shapes is a polygon; NaN for other shapes."""
    (x1, y1), (x2, y2) = left.points(), right.points()
    _, _, distances = _WGS_84.inv(x1, y1, x2, y2)
    polygons = [shapes.are_polygons() for shapes in (left, right)]
    with_area = (polygons[0] & (polygons[1] | ~np.isnan(x2))) | (polygons[1] & ~np.isnan(x1))
    return np.where(with_area, 0.0, distances)


def _relation(holds: Callable[[Any, Any], NDArray[np.bool_]]) -> Callable[[Shapes, Shapes], NDArray[np.float64]]:
    return lambda left, right: holds(left.geometries(), right.geometries()).astype(np.float64)


_RELATIONS: Mapping[ShapeComparison, Callable[[Shapes, Shapes], NDArray[np.float64]]] = {
    ShapeComparison.DISTANCE: _distance,
    ShapeComparison.INTERSECTS: _relation(shapely.intersects),
    ShapeComparison.OVERLAPS: _relation(shapely.overlaps),
    # contains, not within: GEOS uses a prepared shape only as the container.
    ShapeComparison.WITHIN: _relation(lambda left, right: shapely.contains(right, left)),
}
