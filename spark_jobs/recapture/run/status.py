"""Report what a pipeline has published."""

import itertools
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from recapture.definition.pipeline import Pipeline
from recapture.run.slices import slice_length
from recapture.run.tables import tables_of
from recapture.table.delta import OpenTable
from recapture.table.files import is_for_input
from recapture.time_model import ticks
from recapture.wording import values_of_only


def status(pipeline: Pipeline) -> dict[str, Any]:
    """Return the published slices of each output, their quality and lateness, and the unpublished ranges between them.

    If the pipeline has one output, its values are also at the top level of the result.
    """
    tables = tables_of(pipeline)
    entries = OpenTable(tables.publications).slices()
    published = {start: entry for start, entry in entries.items() if entry["run"] is not None}
    unpublished = _unpublished_ranges(published, slice_length(pipeline))
    outputs = []
    for output in pipeline.outputs:
        files = OpenTable(tables.others[output.alias]).slices()
        slices = [_published_slice(start, files.get(start), entry) for start, entry in published.items()]
        outputs.append({"alias": output.alias, "table": output.table, "slices": slices, "unpublished": unpublished})
    return {
        "pipeline": pipeline.name,
        "outputs": outputs,
        **values_of_only(outputs, "table", "slices", "unpublished"),
    }


def _published_slice(start: str, file: Mapping[str, Any] | None, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a slice from the file that an output's table has, and the entry in the publications."""
    events = entry["input_events"]
    is_current = file is not None and is_for_input(file["path"], entry["digest"])
    return {
        "slice_start": start,
        "rows": file["rows"] if file is not None and is_current else None,
        "quality": entry["quality"],
        "late_share": entry["late_events"] / events if events else None,
        "published": entry["published"],
        "run": entry["run"],
        "finished": is_current,
    }


def _unpublished_ranges(slice_starts: Iterable[str], length: int) -> list[dict[str, str]]:
    """Return the ranges without publications between the first and the last published slice.

    `length` is the length of a slice in ticks.
    """
    starts = (ticks.from_datetime(datetime.fromisoformat(start)) for start in slice_starts)
    return [
        {"from": ticks.to_text(before + length), "to": ticks.to_text(after)}
        for before, after in itertools.pairwise(starts)
        if after - before > length
    ]
