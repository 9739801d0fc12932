"""What a publication changes for those who read a table."""

from dataclasses import replace
from pathlib import Path

from recapture import cli
from recapture.definition.pipeline import load
from recapture.run.slice_changes import SliceChanges, entries_of, slice_changes
from recapture.table.publications import Entry
from tests.worlds import HOUR, TEN, World, at, body, one_event

SLICES = FIRST, SECOND = "2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z"
Entries = dict[str, Entry]


def published(world: World) -> Entries:
    """Publish two hours; return what is published then."""
    bounds = ["--from", TEN.isoformat(), "--to", (TEN + 2 * HOUR).isoformat()]
    assert cli.main(["backfill", str(world.file), *bounds]) == 0
    return entries_of(load(world.file), SLICES)


def test_a_slice_is_new_then_revised_if_its_rows_differ_and_otherwise_unchanged(tmp_path: Path) -> None:
    world = one_event(tmp_path, hours=2)
    nothing = entries_of(world.define(), SLICES)
    first = published(world)
    world.put("0", at(72.5), [body("late", at(71))], 7)
    second = published(world)

    def changes(before: Entries, after: Entries) -> SliceChanges:
        current = after[SECOND].current
        assert current is not None
        return slice_changes(before, after, current.run, "aggregates")

    assert changes(nothing, first) == SliceChanges([FIRST, SECOND], [], [])
    assert changes(first, second) == SliceChanges([], [SECOND], [FIRST])
    assert changes(second, second).revised == [SECOND], "a publication that is repeated is told again"
    assert changes(first, first).new == [FIRST, SECOND]


def test_a_slice_that_is_provisional_and_later_complete_is_told_as_completed(tmp_path: Path) -> None:
    world = one_event(tmp_path, hours=2)
    world.define()
    complete = published(world)
    current = complete[FIRST].current
    assert current is not None
    early = {**complete, FIRST: Entry(replace(current, run="early", provisional=True))}
    assert slice_changes({start: Entry(None) for start in SLICES}, early, "early", "aggregates").provisional == [FIRST]
    changes = slice_changes(early, complete, current.run, "aggregates")
    assert (changes.completed, changes.provisional, FIRST in changes.unchanged) == ([FIRST], [], True)
