"""How the rows of a report's slices differ from those that the slices held before."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.types as types

from recapture.definition.sections import Output
from recapture.quality.sentences import value_text
from recapture.storage import open_container
from recapture.table.delta import File
from recapture.table.files import read_slice_table
from recapture.table.publications import Entry, Publication
from recapture.table.unchanged import is_equal
from recapture.time_model import ticks
from recapture.tools.reports.sources import Source

MAX_ROWS = 20
"""Largest number of changed rows that are shown of an output."""
MAX_COMPARED = 2_000_000
"""Largest number of rows that are compared. Slices beyond it are only counted."""


@dataclass
class _Changes:
    """What changed in one output."""

    alias: str
    unchanged: int = 0
    """Slices with the same rows."""
    held_nothing: int = 0
    """Slices that held nothing before."""
    changed: int = 0
    """Slices with other rows."""
    uncompared: int = 0
    """Changed slices whose rows were not compared: too many, gone or damaged in the storage, or with other columns."""
    rows_before: int = 0
    rows_after: int = 0
    added: int = 0
    removed: int = 0
    columns: list[str] = field(default_factory=list)
    examples: list[dict[str, Any]] = field(default_factory=list)


def changes(source: Source) -> dict[str, Any]:
    """Return how the slices of each output differ from their previous publications, and those publications."""
    budget = MAX_COMPARED
    outputs = []
    for output in source.pipeline.outputs:
        result = _Changes(output.alias)
        for start, before, after in _files(source, output):
            if before is None:
                result.held_nothing += 1
            elif before.path == after.path or is_equal(before, after):
                result.unchanged += 1
            else:
                result.changed += 1
                result.rows_before += before.rows
                result.rows_after += after.rows
                budget -= before.rows + after.rows
                container = open_container(output.table)
                old = read_slice_table(container, before.path) if budget >= 0 else None
                new = read_slice_table(container, after.path) if budget >= 0 else None
                if old is None or new is None:
                    result.uncompared += 1
                else:
                    _compare(result, start, old, new)
        outputs.append(vars(result))
    return {"outputs": outputs, "previous": _previous_runs(source)}


def _previous(source: Source, start: str) -> tuple[Publication | None, bool]:
    """Return the publication before what the report covers, and whether the slice holds what the report covers."""
    entry = source.entries.get(start, Entry(None))
    holds = source.single is None or entry.run == source.single.id
    if not holds:
        return entry.current, False
    return (entry.earlier[0] if entry.earlier else None), True


def _files(source: Source, output: Output) -> Iterator[tuple[str, File | None, File]]:
    """Yield each slice with the files that it held before, or None, and after."""
    staged = {
        file.slice_start: File(file.path, file.size, file.rows)
        for file in (source.single.staged if source.single is not None else ())
        if file.output == output.alias
    }
    for start in source.run_of_slice:
        previous, holds = _previous(source, start)
        current = source.entries[start].current
        after = current.files.get(output.alias) if holds and current is not None else staged.get(start)
        if after is not None:
            yield start, None if previous is None else previous.files.get(output.alias), after


def _previous_runs(source: Source) -> list[dict[str, Any]]:
    """Return the publications that the slices held before, with the number of their slices."""
    runs: dict[str, dict[str, Any]] = {}
    for start in source.run_of_slice:
        previous, _ = _previous(source, start)
        if previous is not None:
            text = ticks.whole_seconds(previous.published)
            run = runs.setdefault(previous.run, {"run": previous.run, "published": text, "slices": 0})
            run["slices"] += 1
    return list(runs.values())[-MAX_ROWS:]


def _compare(result: _Changes, start: str, before: pa.Table, after: pa.Table) -> None:
    """Add the differences between the rows of a slice."""
    if before.schema.names != after.schema.names:
        result.uncompared += 1
        return
    removed, added = _only_in(before, after), _only_in(after, before)
    result.removed += removed.num_rows
    result.added += added.num_rows
    result.columns = before.column_names
    for old, new in _paired(removed, added)[: MAX_ROWS - len(result.examples)]:
        digits = 7 if old is None or new is None or _texts(old, 7) != _texts(new, 7) else 17
        result.examples.append({"slice_start": start, "before": _texts(old, digits), "after": _texts(new, digits)})


def _only_in(one: pa.Table, other: pa.Table) -> pa.Table:
    """Return the rows of one table that the other lacks; equal rows count one by one."""
    import duckdb

    with duckdb.connect() as connection:
        connection.register("one", one)
        connection.register("other", other)
        return connection.sql("SELECT * FROM one EXCEPT ALL SELECT * FROM other ORDER BY ALL").to_arrow_table()


def _paired(removed: pa.Table, added: pa.Table) -> list[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    """Return the removed and added rows, those of one window and group side by side.

    The times and texts of a row stand for its window and group, if they tell the rows apart.
    """
    keys = [name for name in removed.column_names if types.is_timestamp(removed.schema.field(name).type)]
    keys += [name for name in removed.column_names if types.is_string(removed.schema.field(name).type)]
    shown = [table.slice(0, 50 * MAX_ROWS).to_pylist() for table in (removed, added)]
    old, new = ({tuple(row[name] for name in keys): row for row in rows} for rows in shown)
    if not keys or len(old) < len(shown[0]) or len(new) < len(shown[1]):
        return [*((row, None) for row in shown[0]), *((None, row) for row in shown[1])]
    return [(old.get(key), new.get(key)) for key in dict.fromkeys([*old, *new])]


def _texts(row: Mapping[str, Any] | None, digits: int) -> list[str] | None:
    return None if row is None else [value_text(value, digits) for value in row.values()]
