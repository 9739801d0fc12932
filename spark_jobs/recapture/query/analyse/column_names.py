"""Names of the columns of a select list: as written after AS, without AS, and as published."""

import re

from sqlglot import exp

from recapture.query.parse.names import call_name, identifiers
from recapture.query.parse.source import Source

_NOT_IN_DELTA = re.compile(r"[ ,;{}()\n\t=]")
"""Characters that a Delta table does not take in the name of a column."""


def column_name(source: Source, item: exp.Expr, number: int) -> tuple[str, exp.Expr]:
    """Return the name of the item at a place of a select list, from 1, and the node that an error about it shows.

    x * 2 AS y => y    site.id => id    Count(*) => Count    udf.f(x) => f    System.Timestamp() => Timestamp
    CAST(x AS bigint) => CAST    x * 2 => Column1

    Raise DefinitionError if what follows an item is not a name.
    """
    if isinstance(item, exp.Alias):
        alias = item.args["alias"]
        if "start" not in alias.meta:  # sqlglot makes an alias of what follows some signs: x @ y
            raise source.error(item, "a name goes after AS: write AS and a name after this column")
        source.case_sensitive.add(alias.meta["start"])
        return alias.name, alias
    node = item.unnest()
    node = node.this if isinstance(node, exp.Window) else node
    if isinstance(node, exp.Cast):
        return node.sql_name(), item
    part = _last_part(node)
    if part is None:
        return f"Column{number}", item
    source.case_sensitive.add(part.meta["start"])
    return part.name, item


def published_name(name: str) -> str:
    """Return the name under which a column is published: Quantity to date => Quantity_to_date"""
    return _NOT_IN_DELTA.sub("_", name)


def _last_part(node: exp.Expr) -> exp.Expr | None:
    """Return the last name of a dotted path, or the function that an expression calls; None for any other one."""
    names = identifiers(node)
    if names:
        return names[-1]
    part = node.expression if isinstance(node, exp.Dot) else node
    return part if isinstance(part, exp.Identifier) or call_name(part) else None
