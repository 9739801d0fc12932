"""Report what a pipeline has published."""

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from recapture.definition.pipeline import Pipeline
from recapture.process.wording import values_of_only
from recapture.run.problems import Problem, TableState, read_tables
from recapture.run.slice_state import Standing, State
from recapture.run.slices import require_whole_slices, slice_length
from recapture.table.publications import NOTHING_SHOWN
from recapture.table.snapshot import HeldFile
from recapture.time_model import ticks


def status(
    pipeline: Pipeline,
    start: datetime | None = None,
    end: datetime | None = None,
    states: Collection[State] = (),
    tables: TableState | None = None,
) -> dict[str, Any]:
    """Return the state of every slice that is published, blocked or failed, and the unpublished ranges between these.

    Only slices of the range from `start` to `end`, and in one of the states, are returned, if these are given.
    `problems` has what is wrong in any table of the pipeline, whatever the range, and what to do. If the pipeline has
    one output, its values are also at the top level of the result. The tables are read, unless they are given.
    """
    if start is not None and end is not None:
        require_whole_slices(pipeline, start, end)
    tables = tables or read_tables(pipeline)
    standing = tables.standing
    state_of = _states(standing, start, end)
    unpublished = _unpublished_ranges(
        (start for start in state_of if start in standing.published), slice_length(pipeline)
    )
    shown = [start for start, state in state_of.items() if not states or state in states]
    outputs = []
    for output in pipeline.outputs:
        held, fault_by_slice = tables.others[output.alias].held(), tables.faults[output.alias]
        slices = [_slice(start, standing, held.get(start, ()), fault_by_slice.get(start)) for start in shown]
        outputs.append({"alias": output.alias, "table": output.table, "slices": slices, "unpublished": unpublished})
    changes = standing.changes
    unreadable = [Problem(pipeline.outputs[0].table, problem, [], None) for problem in standing.problems]
    return {
        "pipeline": pipeline.name,
        "states": {state: count for state in State if (count := list(state_of.values()).count(state))},
        "checked": {"at": changes.checked, "from": changes.start, "to": changes.end},
        "outputs": outputs,
        "problems": [asdict(problem) for problem in (*unreadable, *tables.problems())],
        **values_of_only(outputs, "table", "slices", "unpublished"),
    }


def _states(standing: Standing, start: datetime | None, end: datetime | None) -> dict[str, State]:
    """Return the states of the slices of a range of which something is known, by slice_start and in order."""
    first, last = (None if bound is None else ticks.text_of(bound) for bound in (start, end))
    states: dict[str, State] = {}
    for slice_start in sorted({*standing.entries, *standing.blocked, *standing.failures}):
        state = standing.state(slice_start)
        if state is not None and (first is None or slice_start >= first) and (last is None or slice_start < last):
            states[slice_start] = state
    return states


def _slice(start: str, standing: Standing, held: Sequence[HeldFile], fault: str | None) -> dict[str, Any]:
    """Return the status of a slice from what an output's table holds, and from its entry in the publications."""
    entry = standing.published.get(start, NOTHING_SHOWN)
    is_published, state = entry.run is not None, standing.state(start)
    return {
        "slice_start": start,
        "state": state,
        "rows": held[0].rows if is_published and fault is None else None,
        "quality": entry.quality,
        "late_share": entry.late_share,
        "published": entry.published,
        "run": entry.run,
        "finished": fault is None if is_published else None,
        "problem": fault if is_published else None,
        "missing_events": entry.missing_events,
        "missing_blobs": entry.missing_blobs,
        "differing": list(standing.outdated.get(start, ())),
        "blocked_run": standing.blocked.get(start),
        "staged_run": standing.staged.get(start),
        "error": standing.failures[start].error if state is State.FAILED else None,
        "checkable": start not in standing.changes.unknown,
    }


def _unpublished_ranges(slice_starts: Iterable[str], length: int) -> list[dict[str, str]]:
    """Return the ranges without publications between published slices; `length` is that of a slice, in ticks."""
    starts = (ticks.from_datetime(datetime.fromisoformat(start)) for start in slice_starts)
    return [
        {"from": ticks.to_text(before + length), "to": ticks.to_text(after)}
        for before, after in itertools.pairwise(starts)
        if after - before > length
    ]
