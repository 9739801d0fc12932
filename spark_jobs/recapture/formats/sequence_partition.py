"""The partition in a sequence number of Service Bus.

The topmost 16 bits of a number are the partition of the queue or topic; the lower 48 count within the partition and
roll over to 0.
"""

import numpy as np
from numpy.typing import NDArray

BITS = 48
ROUND = 1 << BITS
"""How many numbers a partition gives out before it begins at 0 again."""


def partition_of(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the partition that gave out each number."""
    return numbers >> BITS


def join(partition: int, number: int) -> int:
    """Return the sequence number of the `number`th message of a partition, counted on where it rolled over."""
    return partition << BITS | number % ROUND
