"""Records and arrays as JSON text."""

import json
from collections.abc import Sequence
from dataclasses import replace

from recapture.model import AsaType
from recapture.query.analyse.casts import cast
from recapture.query.analyse.values import Value
from recapture.query.plan.expressions import Expr, call, case_when, cast_as, string
from recapture.query.plan.operations import Op


def json_record(columns: Sequence[tuple[str, Value]]) -> Expr:
    """Return a row as the text of a JSON object; a NULL is written as null.

    [("a", r), ("b", l)] => concat('{', '"a":', coalesce(r, 'null'), ',', '"b":', coalesce(l, 'null'), '}')
    """
    if not columns:
        return string("{}")
    parts: list[Expr] = []
    for name, value in columns:
        parts += [string("," if parts else "{"), string(json.dumps(name, ensure_ascii=False) + ":"), json_of(value)]
    return call(Op.CONCAT, *parts, string("}"))


def json_of(value: Value) -> Expr:
    """Return a value as JSON text, which is never NULL: n => coalesce(cast(n), 'null')

    A text with a kind may stand for a value of any type, which its kind tells. Unless that is a text, it is JSON; the
    text of a float that is an integer lacks the fraction, and an infinite float is a string: 5 => 5.0
    """
    text: Expr
    match value.type:
        case AsaType.STRING if value.kind is not None:
            is_text, is_float = (
                call(Op.EQUAL, value.kind, string(type_.value)) for type_ in (AsaType.STRING, AsaType.FLOAT)
            )
            is_integral = call(Op.AND, is_float, call(Op.IS_BIGINT_TEXT, value.node))
            with_fraction = call(Op.CONCAT, value.node, string(".0"))
            infinite = (call(Op.EQUAL, value.node, string(sign + "Infinity")) for sign in ("", "-"))
            is_infinite = call(Op.AND, is_float, call(Op.OR, *infinite))
            quoted = call(Op.CONCAT, string('"'), value.node, string('"'))
            text = case_when(
                [(is_text, json_of(replace(value, kind=None))), (is_integral, with_fraction), (is_infinite, quoted)],
                value.node,
            )
        case AsaType.RECORD | AsaType.ARRAY:
            text = value.node
        case AsaType.BIGINT | AsaType.BIT:
            text = cast_as(value.node, AsaType.STRING)
        case AsaType.DATETIME:
            text = call(Op.CONCAT, string('"'), cast(value, AsaType.STRING, lenient=False), string('"'))
        case _:
            text = call(Op.JSON_OF_ANY, value.node)
    return call(Op.COALESCE, text, string("null"))
