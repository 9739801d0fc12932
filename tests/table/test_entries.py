"""What an entry of the publications says of the runs that its slice held."""

from datetime import UTC, datetime

import pytest

from recapture.table.publications import Entry, Publication

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


def entry_after(*changes: str) -> Entry:
    """Return the entry after these changes: the name of a run publishes it, and `back` is a rollback."""
    entry = Entry(None)
    for change in changes:
        publication = Publication(change, "passed", NOON, change, "manifest", "query", 7, 2, {})
        entry = entry.after_rollback() if change == "back" else entry.after_publishing(publication)
    return entry


@pytest.mark.parametrize(
    ("changes", "since", "is_newer"),
    [
        (["a"], "a", False),
        (["a"], None, True),
        (["a", "b"], "a", True),
        (["a", "b", "back"], "a", False),
        (["a", "back"], "a", False),
        (["a", "b", "back"], "b", False),
        (["a", "b", "c", "back"], "a", True),
        (["a", "back", "b"], "a", True),
        (["a", "back", "b", "c", "back"], "a", True),
        (["a", "b", "a"], "b", True),
    ],
)
def test_a_slice_holds_something_newer_if_it_was_published_after_the_run(
    changes: list[str], since: str | None, is_newer: bool
) -> None:
    assert entry_after(*changes).is_newer(since) is is_newer


def test_what_a_rollback_restored_counts_as_newer_if_another_run_was_published_in_between() -> None:
    """The entry does not say when `a` was published, and an approval is rather refused than too much replaced."""
    assert entry_after("a", "b", "back", "c", "back").is_newer("b")
