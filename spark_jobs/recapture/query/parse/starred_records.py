"""The records of inputs whose properties a query selects by record.*"""

from collections.abc import Collection, Iterator

from sqlglot import exp

from recapture.query.parse.asaql import parse, selects_of
from recapture.query.parse.names import Path, star_of


def starred_records(text: str, inputs: Collection[str]) -> dict[str, list[Path]]:
    """Return the records before .*, by the input that FROM reads.

    SELECT site.*, b.x.y.* … FROM a JOIN b …, [a, b] => {"a": [], "b": [("x", "y")]}, as `site` may be of either input

    Names differ in case as the query spells them. Raise DefinitionError for a syntax error.
    """
    script = parse(text)
    records: dict[str, dict[Path, None]] = {alias: {} for alias in inputs}
    for query in script.queries:
        for select in selects_of(script.source, query):
            names = dict(_names(select))
            tables = [table for table in names.values() if table]
            for item in select.expressions:
                path = tuple(name.name for name in star_of(item))
                if path and path[0].lower() in names:
                    table, path = names[path[0].lower()], path[1:]
                else:
                    table = tables[0] if len(tables) == 1 else ""
                for alias in inputs:
                    if path and alias.lower() == table:
                        records[alias].setdefault(path)
    return {alias: list(paths) for alias, paths in records.items()}


def _names(select: exp.Select) -> Iterator[tuple[str, str]]:
    """Yield the names that FROM gives, each with that of its table, in lower case; "" for an element of APPLY."""
    clause = select.args.get("from_")
    first = [clause.this, *(clause.this.args.get("joins") or [])] if clause else []
    for node in [*first, *(select.args.get("joins") or [])]:
        table = node.this if isinstance(node, exp.Join) else node
        yield table.alias_or_name.lower(), table.name.lower() if isinstance(table, exp.Table) else ""
