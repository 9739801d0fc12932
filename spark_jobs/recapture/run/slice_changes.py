"""What a publication changes in a table, for those who read it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from recapture.definition.pipeline import Pipeline
from recapture.run.tables import tables_of
from recapture.table.publications import Entry, Publication, Publications


@dataclass(frozen=True)
class SliceChanges:
    """Slices of a run, by what its publication changes for readers of a table; each by its start in ISO 8601."""

    new: list[str]
    """Slices that held nothing before."""
    revised: list[str]
    """Slices whose rows are replaced."""
    unchanged: list[str]
    """Slices that hold the same rows already."""
    provisional: list[str] = field(default_factory=list)
    """Slices of these that Capture had not written completely, so that they will be computed again."""
    completed: list[str] = field(default_factory=list)
    """Slices of these that were provisional before, and no longer are."""


def entries_of(pipeline: Pipeline, slices: Collection[str]) -> dict[str, Entry]:
    """Return what is published for slices, by their starts."""
    return Publications(tables_of(pipeline).publications).entries(slices)


def slice_changes(before: Mapping[str, Entry], after: Mapping[str, Entry], run: str, table: str) -> SliceChanges:
    """Return what the publication of a run changes in a table; `table` is its name in the publications.

    If the run was published before this call already, because the caller was interrupted or repeats it, the changes are
    those since the publication before: readers had rather hear of a change twice than never.
    """
    changes = SliceChanges([], [], [])
    for start, entry in sorted(after.items()):
        previous, was_published = _previous(before[start], run), before[start].current
        if entry.current is not None and entry.current.provisional:
            changes.provisional.append(start)
        elif was_published is not None and was_published.provisional:
            changes.completed.append(start)
        if previous is None:
            changes.new.append(start)
        elif entry.current is not None and previous.files.get(table) == entry.current.files.get(table):
            changes.unchanged.append(start)
        else:
            changes.revised.append(start)
    return changes


def _previous(before: Entry, run: str) -> Publication | None:
    if before.current is None or before.current.run != run:
        return before.current
    return next(iter(before.earlier), None)
