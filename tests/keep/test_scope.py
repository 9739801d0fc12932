"""Whose blobs an update lists."""

from collections.abc import Collection
from datetime import UTC, datetime

from recapture.keep.scope import IN_TURN, Candidates, Scope, scope
from recapture.time_model import ticks
from tests.keep.simulated import LENGTH, TELEMETRY

MIDNIGHT = ticks.from_datetime(datetime(2024, 3, 1, tzinfo=UTC))
LOOK_BACK = 5
"""Hours before the last update that are compared: the search, an interval, the late tolerance, and a margin."""


def hour(number: int) -> int:
    return MIDNIGHT + number * LENGTH


def at(
    now: int,
    *,
    updated: int | None,
    until: int | None = None,
    requested: Collection[int] = range(0),
    known: Collection[int] = range(0),
    published: Collection[int] = range(0),
    older: Collection[int] = range(0),
    turn: int | None = None,
) -> Scope:
    """Return what an update lists; all times are in hours after midnight."""
    candidates = Candidates(
        range(MIDNIGHT, hour(now if until is None else until), LENGTH),
        set(map(hour, requested)),
        set(map(hour, known)),
        set(map(hour, published)),
        set(map(hour, older)),
    )
    times = (None if time is None else hour(time) for time in (updated, turn))
    return scope([TELEMETRY], LENGTH, hour(now), candidates, *times)


def hours(found: Scope) -> list[int]:
    return [(start - MIDNIGHT) // LENGTH for start in found.starts]


def test_the_first_update_lists_every_published_slice() -> None:
    assert hours(at(100, updated=None, known=range(0, 99))) == [*range(0, 100)]


def test_a_later_update_lists_what_a_blob_may_have_changed_since_the_last_one() -> None:
    found = at(100, updated=98, known=range(0, 99))
    assert hours(found) == [*range(98 - LOOK_BACK, 100)]
    assert found.first == hour(98 - LOOK_BACK)


def test_slices_that_capture_may_not_have_written_are_listed_although_nothing_is_published() -> None:
    assert hours(at(100, updated=99)) == [*range(96, 100)]


def test_slices_after_the_last_kept_one_are_listed_only_if_they_are_published_or_requested() -> None:
    assert hours(at(100, updated=99, until=98, known=[99])) == [96, 97, 99]
    assert hours(at(100, updated=99, until=90, requested=[80, 98])) == [98]


def test_slices_published_since_the_last_update_are_listed_if_their_run_may_be_older() -> None:
    older, turns, turn = [3, 4, 10, 20, 21, 22], [], None
    for _ in range(4):
        found = at(100, updated=99, older=older, turn=turn)
        turn = None if found.turn is None else (found.turn - MIDNIGHT) // LENGTH
        turns.append([number for number in hours(found) if number < 90])
    assert turns == [[3, 4], [10], [20, 21, 22], [3, 4]]


def test_a_long_range_of_older_slices_is_listed_in_parts() -> None:
    found = at(100, updated=99, older=range(0, 60))
    assert hours(found)[:IN_TURN] == [*range(IN_TURN)]
    assert found.turn == hour(IN_TURN - 1)
    assert hours(at(100, updated=99, older=range(0, 60), turn=IN_TURN - 1))[0] == IN_TURN
