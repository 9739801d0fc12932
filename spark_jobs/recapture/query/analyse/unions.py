"""SELECTs that are written together: those of a UNION, and all that write to one output."""

from collections.abc import Sequence
from dataclasses import replace

from recapture.query.analyse.coercion import Coercion
from recapture.query.analyse.column_names import published_name
from recapture.query.analyse.field_types import FieldTypes
from recapture.query.analyse.selects import CompiledSelect
from recapture.query.analyse.tokens import is_dynamic, key_of, of_token, token_of
from recapture.query.analyse.values import Value
from recapture.query.parse.source import Source
from recapture.query.plan.expressions import NULL
from recapture.query.plan.relations import Item, Selection


def check_union(source: Source, parts: list[CompiledSelect]) -> None:
    """Raise DefinitionError unless the SELECTs of a UNION have the same columns in the same order."""
    first = parts[0].columns
    for part in parts[1:]:
        names = [name.lower() for name, _ in part.columns]
        if names != [name.lower() for name, _ in first]:
            expected = ", ".join(name for name, _ in first)
            raise source.error(part.node, f"UNION needs the same columns in the same order: {expected}")


def united(
    source: Source, types: FieldTypes, parts: list[CompiledSelect], is_output: bool = False
) -> tuple[list[tuple[str, Value]], tuple[Selection, ...]]:
    """Unify the columns of SELECTs by name, ignoring case; a column that one lacks is NULL there.

    SELECT 1 AS x …, SELECT 2.5 AS x, k … => x as float in both, k as NULL in the first
    """
    if len(parts) == 1:
        return parts[0].columns, (parts[0].selection,)
    coercion = Coercion(source, types)
    columns_by_part = [{name.lower(): value for name, value in part.columns} for part in parts]
    names: dict[str, str] = {}
    for name, _ in (column for part in parts for column in part.columns):
        names.setdefault(name.lower(), name)
    columns: list[tuple[str, Value]] = []
    items: list[list[Item]] = [[] for _ in parts]
    for key, name in names.items():
        values = [types.refreshed(part_columns.get(key, Value(NULL, None))) for part_columns in columns_by_part]
        unified, kind = coercion.unify(values, parts[-1].node)
        undeclared = tuple(path for value in values for path in value.undeclared)
        if any(map(is_dynamic, unified)) and not is_output:
            unified = [of_token(value, token_of(value)) for value in unified]
        columns.append((name, replace(unified[0], type=kind, undeclared=undeclared, kind=None)))
        for part_items, value in zip(items, unified, strict=True):
            part_items.append(Item(name, value.node if is_output else key_of(value)))
    selections = [
        replace(part.selection, items=tuple(part_items)) for part, part_items in zip(parts, items, strict=True)
    ]
    return columns, tuple(selections)


def with_published_names(
    source: Source, parts: Sequence[CompiledSelect]
) -> tuple[list[CompiledSelect], dict[str, str]]:
    """Return the SELECTs that write to an output with the published names of their columns, and the written names.

    The written names are those in the query, by published name, of the columns for which they differ.

    SELECT a AS [my a], b … => SELECT a AS my_a, b …, {"my_a": "my a"}

    Raise DefinitionError if two columns would be published under one name.
    """
    written: dict[str, str] = {}
    for part in parts:
        for name, _ in part.columns:
            published = published_name(name)
            other = written.setdefault(published.lower(), name)
            if other.lower() != name.lower():
                reason = f"`{other}` and `{name}` would both be the column `{published}` of the table"
                raise source.error(part.node, f"{reason}, which takes no blanks and ,;{{}}()=: rename one with AS")
    return [_renamed(part) for part in parts], {
        published_name(name): name for name in written.values() if published_name(name) != name
    }


def _renamed(part: CompiledSelect) -> CompiledSelect:
    columns = [(published_name(name), value) for name, value in part.columns]
    items = tuple(Item(published_name(item.name), item.expression) for item in part.selection.items)
    return replace(part, columns=columns, selection=replace(part.selection, items=items))
