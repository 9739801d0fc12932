"""Tasks: which slices of a partition are computed together, and from which blobs."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from recapture.archive.pinning import PinnedBlob, PlannedSlice
from recapture.ordering.task import Task, split
from recapture.storage import Blob
from recapture.time_model.slices import Arrivals, Slice
from recapture.time_model.ticks import from_datetime, from_seconds

TEN = datetime(2026, 3, 1, 10, tzinfo=UTC)


def second(number: int) -> int:
    """Return the ticks of a second after ten."""
    return from_datetime(TEN) + from_seconds(number)


def some_slices(count: int, late: int | None = 2) -> list[PlannedSlice]:
    """Return slices of 10 seconds, with arrivals from 3 seconds before to `late` seconds after them."""
    return [
        PlannedSlice(
            Slice(second(start), second(start + 10)),
            Arrivals(second(start - 3), None if late is None else second(start + 10 + late), late is not None),
            str(start),
            (),
        )
        for start in range(0, 10 * count, 10)
    ]


def some_blobs(partition: str, *seconds: int, size: int = 1) -> list[PinnedBlob]:
    """Return blobs of one partition that arrived so many seconds after ten."""
    return [
        PinnedBlob("telemetry", partition, Blob(f"{partition}/{number}", "", size, TEN + timedelta(seconds=number)))
        for number in seconds
    ]


def shape(tasks: Iterable[Task]) -> list[tuple[str, list[int], list[int]]]:
    """Return each task's partition, starts of slices and arrivals of blobs, in seconds after ten."""

    def after_ten(ticks: Iterable[int]) -> list[int]:
        return [(tick - second(0)) // from_seconds(1) for tick in ticks]

    return [
        (
            task.partition,
            after_ten(planned.slice.start for planned in task.slices),
            after_ten(pinned.arrival for pinned in task.blobs),
        )
        for task in tasks
    ]


def test_a_small_partition_is_one_task() -> None:
    blobs = some_blobs("0", 0, 10, 20, 30) + some_blobs("1", 10, 20)
    assert shape(split(some_slices(3), blobs, 100)) == [
        ("0", [0, 10, 20], [0, 10, 20, 30]),
        ("1", [0, 10, 20], [10, 20]),
    ]


def test_neighbouring_slices_share_a_task_until_it_reads_enough() -> None:
    assert shape(split(some_slices(4), some_blobs("0", 0, 10, 20, 30, 40), 3)) == [
        ("0", [0, 10], [0, 10, 20]),
        ("0", [20, 30], [20, 30, 40]),
    ]


def test_a_partition_that_is_a_little_larger_than_a_task_is_not_divided() -> None:
    assert len(list(split(some_slices(4), some_blobs("0", 0, 10, 20, 30, 40), 4))) == 1


def test_a_slice_that_is_too_large_by_itself_is_a_task() -> None:
    assert shape(split(some_slices(2), some_blobs("0", 0, 10, 20, size=500), 1)) == [
        ("0", [0], [0, 10]),
        ("0", [10], [10, 20]),
    ]


def test_a_slice_whose_arrivals_have_no_end_is_a_task() -> None:
    assert shape(split(some_slices(2, late=None), some_blobs("0", 0, 10, 20), 1000)) == [
        ("0", [0], [0, 10, 20]),
        ("0", [10], [10, 20]),
    ]


@pytest.mark.parametrize("task_bytes", [1, 2, 3, 5, 100])
def test_every_slice_of_every_partition_is_in_one_task_with_all_that_it_reads(task_bytes: int) -> None:
    slices, blobs = some_slices(7), some_blobs("0", *range(-10, 90, 10)) + some_blobs("3", -50, 41, 500)
    tasks = list(split(slices, blobs, task_bytes))
    for partition in ("0", "3"):
        mine = [task for task in tasks if task.partition == partition]
        assert [planned for task in mine for planned in task.slices] == slices
        for task in mine:
            needed = [
                b
                for b in blobs
                if b.partition == partition and any(s.arrivals.contains(b.arrival) for s in task.slices)
            ]
            assert list(task.blobs) == needed


def test_without_blobs_there_are_no_tasks() -> None:
    assert list(split(some_slices(2), [], 10)) == []
