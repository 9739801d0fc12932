"""Records and arrays, which are their JSON text. Their elements are text too, cast where another type is asked for.

A property or element that is missing or null is NULL; so is any of a value that is not a record or an array.
"""

from recapture.model import AsaType
from recapture.query.analyse.values import Value
from recapture.query.functions.call import Call, takes
from recapture.query.plan.expressions import Expr
from recapture.query.plan.operations import Op

_LARGEST_INDEX = 2**31 - 1


def array_element(call: Call) -> Value:
    """GetArrayElement(array, index): the index counts from 0; NULL beyond the end, or if it is negative."""
    takes(call, 2)
    array, index = call.argument(0, AsaType.ARRAY), call.argument(1, AsaType.BIGINT)
    if index.text is not None:
        element = Expr(Op.ARRAY_ELEMENT_AT, [array.node], [min(int(index.text), _LARGEST_INDEX)])
    else:
        element = Expr(Op.ARRAY_ELEMENT, [array.node, index.node])
    return Value(element, AsaType.STRING, is_json_element=True)


def record_property(call: Call) -> Value:
    """GetRecordPropertyValue(record, name): a name in any case; the record may be a whole row."""
    takes(call, 2)
    name = call.argument(1, AsaType.STRING)
    row_property = call.property_of_row(0, name)
    if row_property is not None:
        return row_property
    record = call.argument(0, AsaType.RECORD)
    return Value(Expr(Op.JSON_PROPERTY, [record.node, name.node]), AsaType.STRING, is_json_element=True)
