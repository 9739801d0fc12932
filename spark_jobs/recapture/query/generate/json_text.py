"""Records and arrays as JSON text in Spark SQL."""

import json
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from recapture.model import AsaType
from recapture.query.generate.casts import cast
from recapture.query.generate.trees import case_when, cast_as, operation, spark_call, string, template
from recapture.query.generate.values import Value


def json_record(columns: Sequence[tuple[str, Value]]) -> exp.Expr:
    """Return a row as the text of a JSON object; a NULL is written as null.

    [("a", r), ("b", l)] => concat('{', '"a":', coalesce(r, 'null'), ',', '"b":', coalesce(l, 'null'), '}')
    """
    if not columns:
        return string("{}")
    parts: list[exp.Expr] = []
    for name, value in columns:
        parts += [string("," if parts else "{"), string(json.dumps(name, ensure_ascii=False) + ":"), json_of(value)]
    return spark_call("concat", *parts, string("}"))


def json_of(value: Value) -> exp.Expr:
    """Return a value as JSON text, which is never NULL: `n` => coalesce(CAST(`n` AS STRING), 'null')

    A text with a kind may stand for a value of any type, which its kind tells. Unless that is a text, it is JSON.
    """
    text: exp.Expr
    match value.type:
        case AsaType.STRING if value.kind is not None:
            is_text = operation(exp.EQ, value.kind, string(AsaType.STRING.value))
            text = case_when([(is_text, json_of(replace(value, kind=None)))], value.node)
        case AsaType.RECORD | AsaType.ARRAY:
            text = value.node
        case AsaType.BIGINT | AsaType.BIT:
            text = cast_as(value.node, "STRING")
        case AsaType.DATETIME:
            text = spark_call("concat", string('"'), cast(value, AsaType.STRING, lenient=False), string('"'))
        case _:
            text = template(
                "CASE WHEN {value} IS NOT NULL THEN substring({listed}, 2, length({listed}) - 2) END",
                value=value.node,
                listed=spark_call("to_json", spark_call("array", value.node)),
            )
    return spark_call("coalesce", text, string("null"))
