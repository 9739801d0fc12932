"""Find the slices whose last publication or rollback was interrupted between two tables."""

from collections.abc import Mapping

from recapture.keep.sources import Sources
from recapture.storage import in_parallel
from recapture.table.faults import lagging_slices
from recapture.table.publications import NOTHING_SHOWN, ShownEntry

NO_TABLE = -1
"""Version of the publications before there are any."""


def unfinished_slices(
    sources: Sources, entries: Mapping[str, ShownEntry], finished: int | None
) -> tuple[set[str], int | None]:
    """Return the slices that a table does not hold as they are published, and up to which version all are finished.

    `entries` are those of the publications' snapshot. Up to the version `finished`, every change was finished before:
    only slices of later commits count, so that a file that another program removed is not mistaken for one that was
    never added. None means that this is not known, so all slices count. The other tables are opened only if there was
    a commit.
    """
    version = NO_TABLE if sources.publications.version is None else sources.publications.version
    if finished == version:
        return set(), version
    changed = None if finished is None or finished > version else sources.publications.slices_since(finished)
    if changed is not None:
        entries = {start: entries.get(start, NOTHING_SHOWN) for start in changed}
    if not entries:
        return set(), version
    opened = dict(zip(sources.others, in_parallel(sources.open, sources.others.values()), strict=True))
    lagging = {start for name, table in opened.items() for start in lagging_slices(table, name, entries)}
    return lagging, finished if lagging else version
