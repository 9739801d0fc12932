"""Tell what a pipeline has published, and take publications back."""

import itertools
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from recapture.definition.pipeline import Pipeline
from recapture.run.publish import warnings
from recapture.run.report import of_the_only_output
from recapture.run.slices import require_whole_slices, slice_length, slices_of
from recapture.run.tables import tables_of
from recapture.table import publish as tables
from recapture.table.delta import OpenTable
from recapture.table.files import is_for_input
from recapture.time_model import ticks


def status(pipeline: Pipeline) -> dict[str, Any]:
    """Return the published slices of each output, their quality and lateness, and the gaps between them.

    If the pipeline has one output, that output's values also stand at the top.
    """
    of_pipeline = tables_of(pipeline)
    entries = OpenTable(of_pipeline.publications).slices()
    published = {start: entry for start, entry in entries.items() if entry["run"] is not None}
    gaps = _gaps(published, slice_length(pipeline))
    outputs = []
    for output in pipeline.outputs:
        held = OpenTable(of_pipeline.others[output.alias]).slices()
        slices = [_published_slice(start, held.get(start), entry) for start, entry in published.items()]
        outputs.append({"alias": output.alias, "table": output.table, "slices": slices, "gaps": gaps})
    return {"pipeline": pipeline.name, "outputs": outputs, **of_the_only_output(outputs, "table", "slices", "gaps")}


def rollback(pipeline: Pipeline, start: datetime, end: datetime, run_id: str | None = None) -> dict[str, Any]:
    """Restore in every table what the range's slices held before their publication: see `table.publish.rollback`.

    If the pipeline has one output, that output's version and slices also stand at the top.
    """
    require_whole_slices(pipeline, start, end)
    starts = [ticks.to_text(slice_.start) for slice_ in slices_of(pipeline, start, end)]
    outcome = tables.rollback(tables_of(pipeline), starts, run_id)
    outputs = [
        {
            "alias": output.alias,
            "table": output.table,
            "version": outcome.versions[output.alias],
            "slices": outcome.changed[output.alias],
        }
        for output in pipeline.outputs
    ]
    slices = [
        {"slice_start": slice_start, "taken_back": entry.taken_back, "run": entry.run}
        for slice_start, entry in outcome.entries.items()
    ]
    return {
        "pipeline": pipeline.name,
        "rolled_back": slices,
        "outputs": outputs,
        "warnings": list(warnings(outcome)),
        **of_the_only_output(outputs, "version", "slices"),
    }


def _published_slice(start: str, held: Mapping[str, Any] | None, entry: Mapping[str, Any]) -> dict[str, Any]:
    events = entry["input_events"]
    holds = held is not None and is_for_input(held["path"], entry["digest"])
    return {
        "slice_start": start,
        "rows": held["rows"] if held is not None and holds else None,
        "quality": entry["quality"],
        "late_share": entry["late_events"] / events if events else None,
        "published": entry["published"],
        "run": entry["run"],
        "finished": holds,
    }


def _gaps(slice_starts: Iterable[str], length: int) -> list[dict[str, str]]:
    """Return the ranges between the first and the last published slice that hold nothing; `length` is in ticks."""
    starts = (ticks.from_datetime(datetime.fromisoformat(start)) for start in slice_starts)
    return [
        {"from": ticks.to_text(before + length), "to": ticks.to_text(after)}
        for before, after in itertools.pairwise(starts)
        if after - before > length
    ]
