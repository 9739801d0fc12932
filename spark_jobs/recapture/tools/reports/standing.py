"""How published slices stand now: which are blocked, stale or outdated, and when that was last looked at."""

from collections import Counter
from dataclasses import asdict
from typing import Any

from recapture.archive.hole_sentences import remedy, sentence
from recapture.archive.holes import MAX_HOLES, Hole
from recapture.run.outdated import is_outdated
from recapture.run.slice_state import State
from recapture.time_model import ticks
from recapture.tools.reports.sources import Source

SHOWN_INSTEAD = (State.BLOCKED, State.PROVISIONAL, State.STALE, State.OUTDATED, State.UNCHECKED)
"""States that a report shows instead of the verdict of the audit."""


def states(source: Source) -> dict[str, State | None]:
    """Return the state of each slice of a range, by slice_start; None if nothing is published for it."""
    if source.standing is None:
        return {}
    return {start: source.standing.state(start) for start in source.starts}


def standing(source: Source) -> dict[str, Any] | None:
    """Return how the slices of a range stand now; None for the report of a run."""
    if source.standing is None:
        return None
    known, state_of = source.standing, states(source)
    counts = Counter(state for state in state_of.values() if state is not None)
    differing = {start: known.outdated.get(start, ()) for start, state in state_of.items() if state is not None}
    parts = Counter(name for names in differing.values() if is_outdated(names) for name in names)
    changes = known.changes
    return {
        "states": {state: counts[state] for state in State if counts[state]},
        "differing": dict(parts),
        "other_engine": sum(names == ("engine",) for names in differing.values()),
        "checked": {"at": changes.checked, "from": changes.start, "to": changes.end},
        "covers": changes.covers(source.starts[0], ticks.to_text(source.end)),
        "problems": [
            {**asdict(problem), "slices": [start for start in source.starts if start in set(problem.slices)]}
            for problem in source.problems
        ],
    }


def holes(source: Source) -> dict[str, Any]:
    """Return what is missing from the archive, as the audit of the run says, or as the publications of slices do."""
    name_input = len(source.pipeline.query.inputs) > 1
    if source.single is not None:
        holes = list(source.single.audited.holes) if source.single.audited is not None else []
    else:
        currents = (source.entries[start].current for start in source.starts)
        holes = [hole for current in currents if current is not None for hole in current.holes]
    return {"count": len(holes), "holes": [_hole(hole, name_input) for hole in holes[:MAX_HOLES]]}


def _hole(hole: Hole, name_input: bool) -> dict[str, Any]:
    return {
        "kind": hole.kind,
        "severity": hole.severity,
        "slice_start": ticks.to_text(hole.slice_start),
        "sentence": sentence(hole, name_input=name_input),
        "remedy": remedy(hole),
    }
