"""Report what a pipeline has published."""

import itertools
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from recapture.definition.pipeline import Pipeline
from recapture.run.slice_state import Findings, State, standing_of
from recapture.run.slices import require_whole_slices, slice_length
from recapture.run.tables import tables_of
from recapture.table.delta import OpenTable
from recapture.table.files import is_for_input
from recapture.time_model import ticks
from recapture.wording import values_of_only


def status(
    pipeline: Pipeline,
    start: datetime | None = None,
    end: datetime | None = None,
    states: Collection[State] = (),
) -> dict[str, Any]:
    """Return the state of every slice that is published or blocked, and the unpublished ranges between published ones.

    Only slices of the range from `start` to `end`, and in one of the states, are returned, if these are given. If the
    pipeline has one output, its values are also at the top level of the result.
    """
    if start is not None and end is not None:
        require_whole_slices(pipeline, start, end)
    first, last = (None if bound is None else ticks.to_text(ticks.from_datetime(bound)) for bound in (start, end))
    tables, standing = tables_of(pipeline), standing_of(pipeline)
    entries, findings = standing.entries, standing.findings
    state_of: dict[str, State] = {}
    for slice_start in sorted({*entries, *findings.blocked}):
        state = standing.state(slice_start)
        if state is not None and (first is None or slice_start >= first) and (last is None or slice_start < last):
            state_of[slice_start] = state
    published = [slice_start for slice_start in state_of if entries.get(slice_start, {}).get("run") is not None]
    unpublished = _unpublished_ranges(published, slice_length(pipeline))
    shown = [slice_start for slice_start, state in state_of.items() if not states or state in states]
    outputs = []
    for output in pipeline.outputs:
        files = OpenTable(tables.others[output.alias]).slices()
        slices = [
            _slice(slice_start, state_of[slice_start], files.get(slice_start), entries.get(slice_start, {}), findings)
            for slice_start in shown
        ]
        outputs.append({"alias": output.alias, "table": output.table, "slices": slices, "unpublished": unpublished})
    changes = findings.changes
    return {
        "pipeline": pipeline.name,
        "states": {state: count for state in State if (count := list(state_of.values()).count(state))},
        "checked": {"at": changes.checked, "from": changes.start, "to": changes.end},
        "outputs": outputs,
        **values_of_only(outputs, "table", "slices", "unpublished"),
    }


def _slice(
    start: str, state: State, file: Mapping[str, Any] | None, entry: Mapping[str, Any], findings: Findings
) -> dict[str, Any]:
    """Return the status of a slice from the file that an output's table has, and the entry in the publications."""
    if entry.get("run") is None:
        published = dict.fromkeys(("rows", "quality", "late_share", "published", "run", "finished"))
        published |= {"missing_events": None, "missing_blobs": None}
    else:
        published = _published_slice(file, entry)
    return {
        "slice_start": start,
        "state": state,
        **published,
        "differing": list(findings.outdated.get(start, ())),
        "blocked_run": findings.blocked.get(start),
    }


def _published_slice(file: Mapping[str, Any] | None, entry: Mapping[str, Any]) -> dict[str, Any]:
    events = entry["input_events"]
    is_current = file is not None and is_for_input(file["path"], entry["digest"])
    return {
        "rows": file["rows"] if file is not None and is_current else None,
        "quality": entry["quality"],
        "late_share": entry["late_events"] / events if events else None,
        "published": entry["published"],
        "run": entry["run"],
        "finished": is_current,
        "missing_events": entry.get("missing_events"),
        "missing_blobs": entry.get("missing_blobs"),
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
