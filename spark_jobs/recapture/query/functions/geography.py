"""The geospatial functions. A shape is a record of GeoJSON or a text of WKT.

The functions that create a shape only write its GeoJSON. Those that compare shapes check them: an error of a shape
stops the run where the result is used (see generate.user_functions).
"""

from collections.abc import Callable

from sqlglot import exp

from recapture.geography.columns import LATITUDE, LONGITUDE, WKT
from recapture.model import AsaType, ShapeComparison
from recapture.query.functions.call import MANY, Call, takes
from recapture.query.generate.let import failure, once_in
from recapture.query.generate.select_items import SelectItem, struct
from recapture.query.generate.trees import Template, cast_as, spark_call, string, template
from recapture.query.generate.user_functions import result_of
from recapture.query.generate.values import Value

_POSITION_OF_POINT = "CAST({longitude} AS STRING), ',', CAST({latitude} AS STRING)"
_POINT = f"""concat('{{{{"type":"Point","coordinates":[', {_POSITION_OF_POINT}, ']}}}}')"""
"""Template of a point. The text of a float is as in JSON; concat of NULL is NULL."""
_POSITION = r"^\[-?[0-9][^,\[\]]*(,-?[0-9][^,\[\]]*){1,2}\]$"
"""Regular expression of the coordinates of a point."""


def point(call: Call) -> Value:
    """CreatePoint(latitude, longitude), a record."""
    takes(call, 2)
    latitude, longitude = (call.argument(index, AsaType.FLOAT).node for index in (0, 1))
    return Value(template(_POINT, longitude=longitude, latitude=latitude), AsaType.RECORD)


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
        return Value(result_of(function.spark_name, [_shape(call, 0), _shape(call, 1)]), function.output)

    return compare


def _shape(call: Call, index: int) -> exp.Expr:
    """Return an argument as recapture.geography.columns has it."""
    value = call.argument(index, AsaType.STRING, AsaType.RECORD)
    if isinstance(value.node, exp.Null):
        return cast_as(value.node, "STRING")
    if _is_point(value.node):
        return struct(SelectItem(name, value.node.args[name]) for name in (LONGITUDE, LATITUDE))
    known_text = value.type is AsaType.STRING and not (value.undeclared or value.is_json_element)
    return struct([SelectItem(WKT, value.node)]) if known_text else value.node


def _joined(call: Call, opening: str, closing: str) -> Value:
    """Return the record with the positions of all points; NULL if one of them is NULL."""
    parts: list[exp.Expr] = [string(opening)]
    for index in range(call.count):
        parts += [string(","), _position(call, index)] if index else [_position(call, index)]
    return Value(spark_call("concat", *parts, string(closing)), AsaType.RECORD)


def _position(call: Call, index: int) -> exp.Expr:
    """Return the coordinates of a point as JSON: {"type":"Point","coordinates":[1.5,2]} => [1.5,2]

    Those of CreatePoint need no check, so that Spark can compute a constant shape beforehand.
    """
    record = call.argument(index, AsaType.RECORD).node
    if _is_point(record):
        places = {name: record.args[name] for name in (LONGITUDE, LATITUDE)}
        return template(f"concat('[', {_POSITION_OF_POINT}, ']')", **places)
    refused = failure(f"{call.name}: argument {index + 1} is not GeoJSON of a Point")
    coordinates = "get_json_object({it}, '$.coordinates')"
    checked = (
        f"CASE WHEN get_json_object({{it}}, '$.type') = 'Point' AND {coordinates} RLIKE {{position}} THEN {coordinates}"
        " WHEN {it} IS NOT NULL THEN {refused} END"
    )
    return once_in(checked, "point", record, position=string(_POSITION), refused=refused)


def _is_point(tree: exp.Expr) -> bool:
    """Return whether a tree is that of CreatePoint."""
    return isinstance(tree, Template) and tree.name == _POINT
