"""The properties of records in Spark SQL; a record is its JSON text. A name finds its property in any case."""

import re

from sqlglot import exp

from recapture.query.generate.let import let, once
from recapture.query.generate.trees import spark_call, string, template

_IN_A_PATH = re.compile(r"(?!\s)[^'?*\[\]\\]+")
"""Regular expression of the names that may stand in a JSON path of Spark."""


def json_property(record: exp.Expr, name: exp.Expr, binding: str) -> exp.Expr:
    """Return the text of a property. An exact name wins, or else the first in other letters; NULL if there is none.

    r, 'id' => coalesce(get_json_object(r, '$[\\'id\\']'), …)    `binding` is unique within one expression
    """
    if not (isinstance(name, exp.Literal) and _IN_A_PATH.fullmatch(name.name)):
        return _in_map(record, name, "try_element_at({it}, {name})")
    path = string(f"$['{name.name}']")

    def exact_or_similar(it: exp.Expr) -> exp.Expr:
        return spark_call("coalesce", spark_call("get_json_object", it, path), _in_map(it, name, "NULL"))

    return once(record, binding, exact_or_similar)


def _in_map(record: exp.Expr, name: exp.Expr, exact: str) -> exp.Expr:
    """Return `exact` if a record has the exact name, or else the text of the first property in other letters."""
    properties = template("from_json({record}, 'MAP<STRING, STRING>')", record=record)
    first = "get(map_values(map_filter({it}, (`@@key`, `@@value`) -> lower(`@@key`) = lower({name}))), 0)"
    text = f"CASE WHEN map_contains_key({{it}}, CAST({{name}} AS STRING)) THEN {exact} ELSE {first} END"
    return let(properties, "properties", lambda it: template(text, it=it, name=name))
