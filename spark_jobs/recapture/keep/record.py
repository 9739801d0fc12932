"""What an update or a check writes down of the archive. Several may write at the same time: nothing is lost."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from recapture.run_files.changes import Changes

Value = TypeVar("Value")


def merged(before: Changes, ours: Changes, theirs: Changes) -> Changes:
    """Return the record with our changes and those that others have written since we read it.

    `before` is the record that we read, `ours` what we made of it, and `theirs` the record now. What others wrote of a
    slice since then stays as it is: they looked later.
    """
    latest = ours if (ours.checked or "") >= (theirs.checked or "") else theirs
    starts = [record.since for record in (ours, theirs) if record.since is not None]
    finished = ours.finished
    if theirs.finished is not None and theirs.finished != before.finished:
        finished = theirs.finished if finished is None else max(finished, theirs.finished)
    updated = [record.updated for record in (ours, theirs) if record.updated is not None]
    unknown = (dict.fromkeys(record.unknown, True) for record in (before, ours, theirs))
    return replace(
        latest,
        slices=_merged(before.slices, ours.slices, theirs.slices),
        noticed=_merged(before.noticed, ours.noticed, theirs.noticed),
        published=_merged(before.published, ours.published, theirs.published),
        last_changes=_merged(before.last_changes, ours.last_changes, theirs.last_changes),
        released=_merged(before.released, ours.released, theirs.released),
        unknown=tuple(sorted(_merged(*unknown))),
        finished=finished,
        since=min(starts, default=None),
        turn=ours.turn,
        updated=max(updated, default=None),
    )


def _merged(before: Mapping[str, Value], ours: Mapping[str, Value], theirs: Mapping[str, Value]) -> dict[str, Value]:
    """Return, for each key, their value if they changed it, else ours; a missing key is a value, too."""
    merged = {}
    for key in sorted({*ours, *theirs}):
        record = theirs if theirs.get(key) != before.get(key) else ours
        if key in record:
            merged[key] = record[key]
    return merged
