"""The properties of records in Spark SQL; a record is its JSON text. A name finds its property in any letter case."""

import re

from sqlglot import exp

from recapture.query.generate.let import let, once
from recapture.query.generate.trees import spark_call, string, template

_IN_A_PATH = re.compile(r"[^'?*\[\]\\]+")
"""Regular expression of the names that may stand in a JSON path of Spark."""


def json_property(record: exp.Expr, name: exp.Expr, binding: str) -> exp.Expr:
    """Return the text of a property. An exact name wins, or else the first in other letters; NULL if there is none.

    r, 'id' => coalesce(get_json_object(r, '$[\\'id\\']'), …)    `binding` is unique within one expression
    """
    return once(record, binding, lambda it: spark_call("coalesce", _exact(it, name), _in_other_letters(it, name)))


def _exact(record: exp.Expr, name: exp.Expr) -> exp.Expr:
    if isinstance(name, exp.Literal) and _IN_A_PATH.fullmatch(name.name):
        return spark_call("get_json_object", record, string(f"$['{name.name}']"))
    return template("try_element_at(from_json({record}, 'MAP<STRING, STRING>'), {name})", record=record, name=name)


def _in_other_letters(record: exp.Expr, name: exp.Expr) -> exp.Expr:
    properties = template("from_json({record}, 'MAP<STRING, STRING>')", record=record)
    return let(
        properties,
        "properties",
        lambda it: template(
            "CASE WHEN NOT map_contains_key({it}, CAST({name} AS STRING)) THEN"
            " get(map_values(map_filter({it}, (`@@key`, `@@value`) -> lower(`@@key`) = lower({name}))), 0) END",
            it=it,
            name=name,
        ),
    )
