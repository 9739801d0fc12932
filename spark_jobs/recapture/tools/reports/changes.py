"""How the rows of a report's slices differ from those that the slices held before."""

from collections.abc import Iterator
from typing import Any

from recapture.definition.sections import Output
from recapture.query.plan.relations import SLICE_START
from recapture.table.publications import Entry, Publication
from recapture.table.snapshot import File
from recapture.time_model import ticks
from recapture.tools.diff.files import SliceFiles, StoredFile, output_difference
from recapture.tools.events.row_command import row_command
from recapture.tools.reports.sources import Source

MAX_RUNS = 20
"""Largest number of previous runs that are shown."""


def changes(source: Source) -> dict[str, Any]:
    """Return how the slices of each output differ from their previous publications, and those publications."""
    outputs = []
    for output in source.pipeline.outputs:
        key = source.pipeline.compiled(output).group_columns
        document = output_difference(output.table, output.alias, key, _files(source, output)).document()
        outputs.append(
            document | {"examples": [_with_command(source, output, document, row) for row in document["examples"]]}
        )
    return {"outputs": outputs, "previous": _previous_runs(source)}


def _with_command(source: Source, output: Output, document: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    """Return a row that differs with the command that explains it; without one if the slice does not hold it now."""
    if example["after"] is None:
        return example
    values = dict(zip(document["example_columns"], example["after"], strict=True))
    run = None if source.single is None else source.single.id
    command = row_command(source.pipeline, output.alias, {SLICE_START: example["slice_start"], **values}, run)
    return example if command is None else example | {"explain": command}


def _previous(source: Source, start: str) -> tuple[Publication | None, bool]:
    """Return the publication before what the report covers, and whether the slice holds what the report covers."""
    entry = source.entries.get(start, Entry(None))
    holds = source.single is None or entry.run == source.single.id
    if not holds:
        return entry.current, False
    return (entry.earlier[0] if entry.earlier else None), True


def _files(source: Source, output: Output) -> Iterator[SliceFiles]:
    """Yield the files that each slice held before and after."""
    staged = {
        file.slice_start: File(file.path, file.size, file.rows)
        for file in (source.single.staged if source.single is not None else ())
        if file.output == output.alias
    }
    for start in source.run_of_slice:
        previous, holds = _previous(source, start)
        current = source.entries[start].current
        after = current.files.get(output.alias) if holds and current is not None else staged.get(start)
        before = None if previous is None else previous.files.get(output.alias)
        if after is not None:
            held = None if before is None else StoredFile(output.table, before)
            yield SliceFiles(start, held, StoredFile(output.table, after))


def _previous_runs(source: Source) -> list[dict[str, Any]]:
    """Return the publications that the slices held before, with the number of their slices."""
    runs: dict[str, dict[str, Any]] = {}
    for start in source.run_of_slice:
        previous, _ = _previous(source, start)
        if previous is not None:
            text = ticks.whole_seconds(previous.published)
            run = runs.setdefault(previous.run, {"run": previous.run, "published": text, "slices": 0})
            run["slices"] += 1
    return list(runs.values())[-MAX_RUNS:]
