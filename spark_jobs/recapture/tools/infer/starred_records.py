"""The records of inputs whose properties a query selects by record.*"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from recapture.query.parse.asaql import parse, selects_of
from recapture.query.parse.names import Path, star_of


@dataclass(frozen=True)
class _Step:
    """A step of WITH, or a query in FROM."""

    selects: Sequence[exp.Select]
    earlier: "Mapping[str, _Step]"
    """Steps that it can read, by key."""


def starred_records(text: str, inputs: Collection[str]) -> dict[str, list[Path]]:
    """Return the records before .*, by the input that FROM reads, itself or as the * of steps.

    SELECT site.*, b.x.y.* … FROM a JOIN b …, [a, b] => {"a": [], "b": [("x", "y")]}, as `site` may be of either input
    WITH s AS (SELECT * FROM a) SELECT s.site.* FROM s => {"a": [("site",)]}

    Names differ in case as the query spells them. Raise DefinitionError for a syntax error.
    """
    script = parse(text)
    aliases = {alias.lower(): alias for alias in inputs}
    records: dict[str, dict[Path, None]] = {alias: {} for alias in inputs}
    steps: Mapping[str, _Step] = {}
    for key, query in [
        *((step.key, step.query) for step in script.steps),
        *(("", query) for query in script.statements),
    ]:
        selects = selects_of(script.source, query)
        for select in selects:
            for item in select.expressions:
                path = tuple(name.name for name in star_of(item))
                for table, record in _read(select, path, steps):
                    if table in aliases:
                        records[aliases[table]].setdefault(record)
        steps = {**steps, key: _Step(selects, steps)}
    return {alias: list(paths) for alias, paths in records.items()}


def _read(select: exp.Select, path: Path, steps: Mapping[str, _Step]) -> Iterator[tuple[str, Path]]:
    """Yield the record that a dotted path of a SELECT names, with its input in lower case; nothing if it has none."""
    names = dict(_names(select))
    if path and path[0].lower() in names:
        table, path = names[path[0].lower()], path[1:]
    else:
        tables = [table for table in names.values() if table]
        table = tables[0] if len(tables) == 1 else ""
    step = steps.get(table)
    if not path or not table:
        return
    if step is None:
        yield table, path
        return
    for below in step.selects:
        sides = dict(_names(below))
        for item in below.expressions:
            side = tuple(name.name for name in star_of(item))
            if item.is_star and (not side or (len(side) == 1 and side[0].lower() in sides)):
                yield from _read(below, (*side, *path), step.earlier)


def _names(select: exp.Select) -> Iterator[tuple[str, str]]:
    """Yield the names that FROM gives, each with that of its table, in lower case; "" for an element of APPLY."""
    clause = select.args.get("from_")
    first = [clause.this, *(clause.this.args.get("joins") or [])] if clause else []
    for node in [*first, *(select.args.get("joins") or [])]:
        table = node.this if isinstance(node, exp.Join) else node
        yield table.alias_or_name.lower(), table.name.lower() if isinstance(table, exp.Table) else ""
