"""Find published slices whose blobs were added, modified or deleted since they were read, and record them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from recapture.definition.pipeline import Pipeline
from recapture.keep.compare import Comparison
from recapture.keep.record import merged
from recapture.keep.sources import sources_of
from recapture.keep.state import read_standing_of
from recapture.keep.stops import Stops
from recapture.run.slices import require_whole_slices, slices_of
from recapture.run_files.changes import Changes, change_record
from recapture.time_model import ticks


def check(pipeline: Pipeline, start: datetime, end: datetime) -> dict[str, Any]:
    """Compare the archives with what the published slices of a range read of them, record the result, and return it.

    `unknown` lists slices that an older version published and whose manifest cannot be read. Slices whose audit stopped
    their run are compared with what that run read, so that updates compute them if their blobs were corrected. Raise
    DefinitionError if the tables belong to another pipeline.
    """
    require_whole_slices(pipeline, start, end)
    sources, now = sources_of(pipeline), datetime.now(UTC)
    sources.publications.require_writable()
    standing = read_standing_of(sources)
    comparison, stops = Comparison(sources, standing, now), Stops(sources, standing)
    slice_starts = {slice_.start: ticks.to_text(slice_.start) for slice_ in slices_of(pipeline, start, end)}
    runs = {
        slice_start: run
        for slice_start in slice_starts.values()
        if (run := comparison.entry(slice_start).run) is not None
    }
    listed = [
        start for start, slice_start in slice_starts.items() if slice_start in runs or slice_start in standing.blocked
    ]
    at, unknown = ticks.whole_seconds(now), []
    last_changes: dict[str, int] = {}
    released: dict[str, str] = {}
    for archived in comparison.archived(listed):
        slice_start = slice_starts[archived.slice.start]
        difference, is_known = comparison.difference(slice_start, archived)
        last_changes |= {} if difference is None else {slice_start: difference.last_change}
        unknown += [] if is_known else [slice_start]
        released |= {slice_start: at} if stops.is_released(slice_start, archived) else {}
    before, looked_at, changed = standing.changes, set(slice_starts.values()), comparison.record(last_changes)
    first, last = ticks.text_of(start), ticks.text_of(end)

    def updated(before: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
        """Return what is recorded of all slices, with ours for those that were looked at."""
        return {**{slice_start: value for slice_start, value in before.items() if slice_start not in looked_at}, **ours}

    ours = Changes(
        slices=updated(before.slices, changed.slices),
        published=updated(before.published, changed.published),
        noticed=updated(before.noticed, changed.noticed),
        last_changes=updated(before.last_changes, changed.last_changes),
        released=updated(
            before.released, {slice_start: before.released.get(slice_start, at) for slice_start in released}
        ),
        unknown=tuple(
            sorted({*(slice_start for slice_start in before.unknown if slice_start not in looked_at), *unknown})
        ),
        checked=at,
        start=first,
        end=last,
        finished=before.finished,
        since=before.since,
        turn=before.turn,
        updated=before.updated,
    )
    change_record(sources.run_files, lambda theirs: merged(before, ours, theirs))
    return {"from": first, "to": last, "checked": len(runs), "changed": list(last_changes), "unknown": unknown}
