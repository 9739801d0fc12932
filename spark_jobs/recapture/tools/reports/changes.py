"""How the rows of a report's slices differ from those that the slices held before."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from recapture.definition.sections import Output
from recapture.quality.sentences import value_text
from recapture.storage import open_container
from recapture.table.delta import File
from recapture.table.files import read_slice_table
from recapture.table.publications import Entry, Publication
from recapture.table.row_changes import CHANGE_TYPE, RowChange, Rows, changed_schema, comparisons, row_changes
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
    if not before.schema.equals(after.schema):
        result.uncompared += 1
        return
    rows = (Rows(table.schema, table.num_rows, table.to_batches) for table in (before, after))
    with comparisons("row-changes-report") as connection:
        batches = [*row_changes(connection, *rows)]
    changed = pa.Table.from_batches(batches, changed_schema(before.schema))
    kinds = Counter(changed[CHANGE_TYPE].to_pylist())
    result.removed += kinds[RowChange.DELETE] + kinds[RowChange.PREIMAGE]
    result.added += kinds[RowChange.INSERT] + kinds[RowChange.POSTIMAGE]
    result.columns = before.column_names
    space = MAX_ROWS - len(result.examples)
    for old, new in itertools.islice(_paired(changed.slice(0, 2 * MAX_ROWS).to_pylist()), space):
        digits = 7 if old is None or new is None or _texts(old, 7) != _texts(new, 7) else 17
        result.examples.append({"slice_start": start, "before": _texts(old, digits), "after": _texts(new, digits)})


def _paired(rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    """Yield the changed rows, each before and after: None for a row that was added or removed."""
    before = None
    for row in rows:
        values = {name: value for name, value in row.items() if name != CHANGE_TYPE}
        match row[CHANGE_TYPE]:
            case RowChange.PREIMAGE:
                before = values
            case RowChange.POSTIMAGE:
                yield before, values
            case RowChange.DELETE:
                yield values, None
            case _:
                yield None, values


def _texts(row: Mapping[str, Any] | None, digits: int) -> list[str] | None:
    return None if row is None else [value_text(value, digits) for value in row.values()]
