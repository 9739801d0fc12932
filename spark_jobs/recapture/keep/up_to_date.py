"""Find out whether slices are up to date."""

from datetime import UTC, datetime

from recapture.definition.pipeline import Pipeline
from recapture.keep.compare import Comparison
from recapture.keep.interrupted import recent_changes
from recapture.keep.sources import sources_of
from recapture.keep.state import read_standing_of
from recapture.run.outdated import is_outdated
from recapture.run.slices import slices_of
from recapture.time_model import ticks


def is_up_to_date(pipeline: Pipeline, start: datetime, end: datetime) -> bool:
    """Return whether whole slices are published, unchanged since, and of the present definition.

    Slices that are provisional, that a person rolled back, that were stopped by their audit, or that a table does not
    hold, are not.
    """
    sources, now = sources_of(pipeline), datetime.now(UTC)
    if sources.is_never_final:
        return False
    standing = read_standing_of(sources)
    starts = {slice_.start: ticks.to_text(slice_.start) for slice_ in slices_of(pipeline, start, end)}
    unfinished = recent_changes(sources, standing.entries, standing.changes.finished).unfinished
    comparison = Comparison(sources, standing, now)
    for text in starts.values():
        entry, differing = comparison.entry(text), standing.outdated.get(text, ())
        if entry.run is None or entry.provisional or entry.taken_back is not None or is_outdated(differing):
            return False
        if text in standing.blocked or text in unfinished:
            return False
    differences = (
        comparison.difference(starts[archived.slice.start], archived) for archived in comparison.archived(starts)
    )
    return all(difference is None and is_known for difference, is_known in differences)
