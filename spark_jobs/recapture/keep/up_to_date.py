"""Find out which slices are up to date."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from recapture.definition.pipeline import Pipeline
from recapture.keep.archived import ArchivedSlice
from recapture.keep.compare import Comparison
from recapture.keep.interrupted import recent_changes
from recapture.keep.sources import Sources, sources_of
from recapture.keep.state import read_standing_of
from recapture.run.outdated import is_outdated
from recapture.run.slice_state import Standing
from recapture.run.slices import slices_of
from recapture.time_model import ticks


def is_up_to_date(pipeline: Pipeline, start: datetime, end: datetime) -> bool:
    """Return whether whole slices are published, unchanged since, and of the present definition.

    Slices that are provisional, that a person rolled back, that were stopped by their audit, or that a table does not
    hold, are not.
    """
    sources = sources_of(pipeline)
    if sources.is_never_final:
        return False
    standing = read_standing_of(sources)
    comparison = Comparison(sources, standing, datetime.now(UTC))
    archived = comparison.archived(slice_.start for slice_ in slices_of(pipeline, start, end))
    return next(outstanding(sources, standing, comparison, archived), None) is None


def outstanding(
    sources: Sources, standing: Standing, comparison: Comparison, archived: Iterable[ArchivedSlice]
) -> Iterator[ArchivedSlice]:
    """Yield those slices that are not up to date, as `is_up_to_date`."""
    unfinished = recent_changes(sources, standing.entries, standing.changes.finished).unfinished
    for slice_ in archived:
        text = ticks.to_text(slice_.slice.start)
        entry, differing = comparison.entry(text), standing.outdated.get(text, ())
        is_published = entry.run is not None and not entry.provisional and entry.taken_back is None
        is_open = not is_published or is_outdated(differing) or text in standing.blocked or text in unfinished
        if is_open or comparison.difference(text, slice_) != (None, True):
            yield slice_
