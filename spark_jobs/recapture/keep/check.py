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
    texts = {slice_.start: ticks.to_text(slice_.start) for slice_ in slices_of(pipeline, start, end)}
    runs = {text: run for text in texts.values() if (run := comparison.entry(text).run) is not None}
    listed = [start for start, text in texts.items() if text in runs or text in standing.blocked]
    at, unknown = ticks.whole_seconds(now), []
    last_changes: dict[str, int] = {}
    released: dict[str, str] = {}
    for archived in comparison.archived(listed):
        text = texts[archived.slice.start]
        difference, is_known = comparison.difference(text, archived)
        last_changes |= {} if difference is None else {text: difference.last_change}
        unknown += [] if is_known else [text]
        released |= {text: at} if stops.is_released(text, archived) else {}
    before, looked_at, changed = standing.changes, set(texts.values()), comparison.record(last_changes)
    first, last = ticks.text_of(start), ticks.text_of(end)

    def updated(before: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
        """Return what is recorded of all slices, with ours for those that were looked at."""
        return {**{text: value for text, value in before.items() if text not in looked_at}, **ours}

    ours = Changes(
        slices=updated(before.slices, changed.slices),
        published=updated(before.published, changed.published),
        noticed=updated(before.noticed, changed.noticed),
        last_changes=updated(before.last_changes, changed.last_changes),
        released=updated(before.released, {text: before.released.get(text, at) for text in released}),
        unknown=tuple(sorted({*(text for text in before.unknown if text not in looked_at), *unknown})),
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
