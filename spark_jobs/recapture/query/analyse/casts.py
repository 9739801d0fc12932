"""CAST and TRY_CAST between the types of ASA.

Microsoft's page "Data Types (Azure Stream Analytics)" gives few rules. A text is a datetime if it is ISO 8601, UTC
unless it names a zone; its 7 decimals count. A datetime becomes text with 7 decimals and Z, a bit becomes true or
false. Everything else follows T-SQL: a float is truncated towards zero to a bigint, and blanks around a number do not
matter. Unlike in T-SQL, an empty text is not a number.
"""

from recapture.errors import DefinitionError
from recapture.model import AsaType
from recapture.query.analyse.values import Value
from recapture.query.plan.expressions import NULL, Expr, call, cast_as, failure
from recapture.query.plan.operations import Op

_JSON = (AsaType.RECORD, AsaType.ARRAY)
_TO_STRING = {AsaType.DATETIME: Op.DATETIME_TO_STRING, AsaType.FLOAT: Op.FLOAT_TO_STRING}


def cast(value: Value, to: AsaType, lenient: bool) -> Expr:
    """Return the CAST of a value, or its TRY_CAST if `lenient`: a string to a float => string_to_float(x, fail)

    A value that cannot be cast stops the run in CAST, and is NULL in TRY_CAST. Raise DefinitionError for two types
    between which there is no cast.
    """
    source, node = value.type, value.node
    if source is None:
        return cast_as(NULL, to)
    if source is to:
        return node
    if source is AsaType.STRING:
        return _from_string(node, to, lenient)
    if to is AsaType.STRING:
        to_string = _TO_STRING.get(source)
        return node if source in _JSON else call(to_string, node) if to_string else cast_as(node, to)
    if source in _JSON or to in _JSON:
        raise DefinitionError(f"a {source} cannot be cast to {to}")
    if source is AsaType.DATETIME:
        raise DefinitionError(f"a datetime cannot be cast to {to}: count with DATEDIFF(second, '1970-01-01', …)")
    if to is AsaType.DATETIME:
        raise DefinitionError(f"a {source} cannot be cast to datetime: count with DATEADD(second, …, '1970-01-01')")
    return cast_as(node, to, lenient)


def _from_string(text: Expr, to: AsaType, lenient: bool) -> Expr:
    def otherwise(message: str) -> Expr:
        return NULL if lenient else failure(f"CAST: {message}")

    match to:
        case AsaType.FLOAT:
            excess = otherwise("the number does not fit a float")
            return Expr(Op.STRING_TO_FLOAT, (text, excess), (lenient,))
        case AsaType.BIT:
            return Expr(Op.STRING_TO_BIT, (text,), (lenient,))
        case AsaType.DATETIME:
            outside = otherwise("the time lies outside the years 1 to 9999")
            return Expr(Op.STRING_TO_DATETIME, (text, outside), (lenient,))
        case AsaType.RECORD | AsaType.ARRAY:
            op = Op.STRING_TO_RECORD if to is AsaType.RECORD else Op.STRING_TO_ARRAY
            return call(op, text, otherwise(f"the string is not a JSON {to}"))
    return cast_as(text, to, lenient)
