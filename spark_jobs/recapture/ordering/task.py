"""Tasks: a run divided by partition and slices, so that tasks share nothing."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from recapture.archive.pinning import PinnedBlob, PlannedSlice, blobs_that_may_hold
from recapture.time_model.slices import Arrivals


@dataclass(frozen=True)
class Task:
    """Consecutive slices of one partition, and the blobs that decide them in arrival order."""

    input: str
    """Alias of the input."""
    partition: str
    slices: tuple[PlannedSlice, ...]
    blobs: tuple[PinnedBlob, ...]

    @property
    def first_judged_index(self) -> int:
        """Index of the first blob whose events are judged; of the blobs before, only sequence numbers are read."""
        judged = Arrivals(self.slices[0].arrivals.first_judged, None)
        return len(self.blobs) - len(blobs_that_may_hold(self.blobs, judged))

    def number_of_blobs_until(self, planned: PlannedSlice) -> int:
        """Return the number of blobs up to the last one that may hold an arrival of a slice."""
        return len(blobs_that_may_hold(self.blobs, Arrivals(0, planned.arrivals.last)))


def split(slices: Sequence[PlannedSlice], blobs: Iterable[PinnedBlob], task_bytes: int) -> Iterator[Task]:
    """Yield the tasks of a run: neighbouring slices of a partition share a task that reads about `task_bytes`.

    A slice whose events depend on where reading begins has a task to itself, so that its rows are the same whatever
    other slices the run has.
    """
    alone = not all(planned_slice.arrivals.independent_of_start for planned_slice in slices)
    for (alias, partition), group in itertools.groupby(blobs, key=lambda pinned: (pinned.input, pinned.partition)):
        pinned = list(group)
        size = sum(blob.blob.size for blob in pinned)
        tasks = len(slices) if alone else min(len(slices), max(1, round(size / task_bytes)))
        for indices in np.array_split(np.arange(len(slices)), tasks):
            neighbours = tuple(slices[index] for index in indices)
            # The ranges of neighbours' arrivals overlap, so there is no hole.
            arrivals = Arrivals(neighbours[0].arrivals.first, neighbours[-1].arrivals.last)
            yield Task(alias, partition, neighbours, tuple(blobs_that_may_hold(pinned, arrivals)))
