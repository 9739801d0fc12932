"""The geospatial functions. A shape is a record of GeoJSON or a text of WKT.

The functions that create a shape only write its GeoJSON. Those that compare shapes check them: an error of a shape
stops the run where the result is used (see evaluate.user_functions).
"""

from collections.abc import Callable

from recapture.geography.columns import LATITUDE, LONGITUDE, WKT
from recapture.model import AsaType, ShapeComparison
from recapture.query.analyse.values import Value
from recapture.query.functions.call import MANY, Call, takes
from recapture.query.plan.expressions import NULL, Expr, cast_as, failure, string, struct, user_call
from recapture.query.plan.operations import Op


def point(call: Call) -> Value:
    """CreatePoint(latitude, longitude), a record."""
    takes(call, 2)
    latitude, longitude = (call.argument(index, AsaType.FLOAT).node for index in (0, 1))
    return Value(Expr(Op.POINT, [longitude, latitude]), AsaType.RECORD)


def line_string(call: Call) -> Value:
    """CreateLineString(point, point, …), a record."""
    takes(call, 2, MANY)
    return _joined(call, '{"type":"LineString","coordinates":[', "]}")


def polygon(call: Call) -> Value:
    """CreatePolygon(point, point, point, point, …), a record; the last point is the first one."""
    takes(call, 4, MANY)
    return _joined(call, '{"type":"Polygon","coordinates":[[', "]]}")


def comparing(function: ShapeComparison) -> Callable[[Call], Value]:
    """Return the function of ASAQL that compares two shapes, such as ST_WITHIN(shape, polygon)."""

    def compare(call: Call) -> Value:
        takes(call, 2)
        return Value(user_call(function.internal_name, [_shape(call, 0), _shape(call, 1)]), function.output)

    return compare


def _shape(call: Call, index: int) -> Expr:
    """Return an argument as recapture.geography.columns has it."""
    value = call.argument(index, AsaType.STRING, AsaType.RECORD)
    if value.node == NULL:
        return cast_as(NULL, AsaType.STRING)
    if value.node.op is Op.POINT:
        return struct(list(zip((LONGITUDE, LATITUDE), value.node.arguments, strict=True)))
    known_text = value.type is AsaType.STRING and not (value.undeclared or value.is_json_element)
    return struct([(WKT, value.node)]) if known_text else value.node


def _joined(call: Call, opening: str, closing: str) -> Value:
    """Return the record with the positions of all points; NULL if one of them is NULL."""
    parts: list[Expr] = [string(opening)]
    for index in range(call.count):
        parts += [string(","), _position(call, index)] if index else [_position(call, index)]
    return Value(Expr(Op.CONCAT, [*parts, string(closing)]), AsaType.RECORD)


def _position(call: Call, index: int) -> Expr:
    """Return the coordinates of a point as JSON: {"type":"Point","coordinates":[1.5,2]} => [1.5,2]

    Those of CreatePoint need no check.
    """
    record = call.argument(index, AsaType.RECORD).node
    if record.op is Op.POINT:
        return Expr(Op.POINT_POSITION, record.arguments)
    refused = failure(f"{call.name}: argument {index + 1} is not GeoJSON of a Point")
    return Expr(Op.POSITION_OF_POINT, [record, refused])
