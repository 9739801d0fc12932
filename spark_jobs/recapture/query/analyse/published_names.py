"""Names of published columns: a Delta table takes no blanks and ,;{}()= in the name of a column."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from recapture.query.parse.source import Source
from recapture.query.plan.relations import Item

if TYPE_CHECKING:
    from recapture.query.analyse.selects import CompiledSelect

_NOT_IN_DELTA = re.compile(r"[ ,;{}()\n\t=]")


def published_name(name: str) -> str:
    """Return the name under which a column is published: Quantity to date => Quantity_to_date"""
    return _NOT_IN_DELTA.sub("_", name)


def with_published_names(
    source: Source, parts: Sequence["CompiledSelect"]
) -> tuple[list["CompiledSelect"], dict[str, str]]:
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


def _renamed(part: "CompiledSelect") -> "CompiledSelect":
    columns = [(published_name(name), value) for name, value in part.columns]
    items = tuple(Item(published_name(item.name), item.expression) for item in part.selection.items)
    return replace(part, columns=columns, selection=replace(part.selection, items=items))
