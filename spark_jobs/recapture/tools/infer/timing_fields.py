"""The fields without which an event of an input has no place in time."""

from collections.abc import Collection

from sqlglot import exp

from recapture.query.parse.asaql import parse
from recapture.query.parse.names import Path, identifiers


def timing_fields(text: str, inputs: Collection[str]) -> dict[str, set[Path]]:
    """Return the fields after TIMESTAMP BY and OVER in lower case, by input; only those that are fields as they are.

    FROM a TIMESTAMP BY CAST(a.site.time AS datetime) OVER key => {"a": {("site", "time"), ("key",)}}

    An event that lacks such a field is dropped, whatever the query selects. Raise DefinitionError for a syntax error.
    """
    fields: dict[str, set[Path]] = {alias: set() for alias in inputs}
    for query in parse(text).queries:
        for table in query.find_all(exp.Table):
            for alias in inputs:
                if table.name.lower() == alias.lower():
                    nodes = [table.args.get("timestamp_by"), *(table.args.get("over") or [])]
                    names = {table.name.lower(), table.alias_or_name.lower()}
                    fields[alias].update(path for node in nodes if node is not None and (path := _path(node, names)))
    return fields


def _path(node: exp.Expr, names: Collection[str]) -> Path:
    """Return the path of a field in lower case, without the name of its table; nothing for anything else."""
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    path = tuple(name.name.lower() for name in identifiers(node) or ())
    return path[1:] if len(path) > 1 and path[0] in names else path
