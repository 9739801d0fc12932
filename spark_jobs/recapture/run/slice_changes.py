"""What a publication changes in a table, for those who read it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

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
        previous = _previous(before[start], run)
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
