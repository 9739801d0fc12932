"""Sequence numbers of an entity whose partitions share its blobs, as those of Service Bus (capture format, cousins).

The topmost 16 bits of a number are the partition, the lower 48 count within it and roll over to 0.
"""

from collections import defaultdict
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from recapture.formats.events import ENTITY_BITS, UNNUMBERED
from recapture.ordering.sequence import Missing, Numbers, SequenceNumbers, Step

_ROUND = 1 << ENTITY_BITS


def told(missing: Missing) -> list[tuple[int, int]]:
    """The first and the last number of each range, as the entity gave them."""
    ranges = zip(missing.ranges.first.tolist(), missing.ranges.last.tolist(), strict=True)
    if missing.entity is None:
        return list(ranges)
    return [(_number(missing.entity, first), _number(missing.entity, last)) for first, last in ranges]


def _number(entity: int, turn: int) -> int:
    return entity << ENTITY_BITS | turn % _ROUND


class Unrolled:
    """Counts the numbers of each partition on where they roll over, from wherever reading begins."""

    def __init__(self) -> None:
        self._newest: dict[int, int] = {}

    def read(self, number: Numbers, entity: Numbers) -> Numbers:
        """The turn of each event: of two in a partition, the lesser one is the earlier."""
        turn = number.copy()
        for each in np.unique(entity[entity != UNNUMBERED]).tolist():
            here = entity == each
            low = number[here] % _ROUND
            newest = self._newest.get(each, int(low[0]))
            turn[here] = newest + (low - newest + _ROUND // 2) % _ROUND - _ROUND // 2
            self._newest[each] = int(turn[here].max())
        return turn


class EntityNumbers:
    """What is remembered of the numbers of each partition of an entity; of a blob's partition where that is the one."""

    def __init__(self) -> None:
        self._numbers: defaultdict[int | None, SequenceNumbers] = defaultdict(SequenceNumbers)

    def read(
        self, turn: Numbers, entity: Numbers | None, group: Numbers, arrival: Numbers, enqueued: Numbers
    ) -> tuple[NDArray[np.bool_], list[Step]]:
        """As `SequenceNumbers.read`, for each partition by itself; an event without a number is no copy."""
        if entity is None:
            return self._numbers[None].read(turn, group, arrival, enqueued)
        copies = np.zeros(len(turn), bool)
        steps = []
        for each in np.unique(entity[entity != UNNUMBERED]).tolist():
            rows = np.flatnonzero(entity == each)
            copies[rows], found = self._numbers[each].read(turn[rows], group[rows], arrival[rows], enqueued[rows])
            steps += [_among_all(step, rows, each) for step in found]
        return copies, steps


def _among_all(step: Step, rows: NDArray[np.intp], entity: int) -> Step:
    missing = None if step.missing is None else replace(step.missing, entity=entity)
    return replace(step, rows=rows[step.rows], before=rows[step.before], missing=missing, entity=entity)
