"""Find the slices that were published or rolled back since the last update, and those where that was interrupted."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from recapture.keep.sources import Sources
from recapture.storage import in_parallel
from recapture.table.faults import lagging_slices
from recapture.table.publications import NOTHING_SHOWN, ShownEntry

NO_TABLE = -1
"""Version of the publications before there are any."""


@dataclass(frozen=True)
class Recent:
    """Changes of the publications since a version; slices are given by slice_start."""

    changed: Collection[str]
    """Slices that were published or rolled back."""
    unfinished: Collection[str]
    """Slices that a table does not hold as they are published."""
    finished: int | None
    """Version up to which all changes are finished in every table; None if that is not known."""


def recent_changes(sources: Sources, entries: Mapping[str, ShownEntry], finished: int | None) -> Recent:
    """Return the changes of the publications after the version `finished`, up to which every change was finished.

    `entries` are those of the publications' snapshot. A file that another program removed from a slice of an earlier
    commit is so not mistaken for one that was never added. If `finished` is None, or too long ago, all slices count.
    The other tables are opened only if there was a commit.
    """
    version = NO_TABLE if sources.publications.version is None else sources.publications.version
    if finished == version:
        return Recent((), (), version)
    changed = None if finished is None or finished > version else sources.publications.slices_since(finished)
    if changed is not None:
        entries = {start: entries.get(start, NOTHING_SHOWN) for start in changed}
    if not entries:
        return Recent((), (), version)
    opened = dict(zip(sources.others, in_parallel(sources.open, sources.others.values()), strict=True))
    lagging = {start for name, table in opened.items() for start in lagging_slices(table, name, entries)}
    return Recent(entries.keys(), lagging, finished if lagging else version)
