"""What an event, or another row, has to do with a row that was made of it."""

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Role(IntEnum):
    """What a row has to do with another row that was made of it; a larger role counts for more."""

    NONE = 0
    CONSIDERED = 1
    """It was read, but other rows decide: of MIN, a row with a larger value."""
    TIMING = 2
    """It is not among the rows of the window, but a bound of the window depends on it."""
    DECIDING = 3
    """The row depends on it."""


MAX_EVENTS = 10_000
"""Largest number of events of each role that are named, of each input."""


def first_of_each(roles: NDArray[np.int8], most: int = MAX_EVENTS) -> NDArray[np.int8]:
    """Return roles without those after the first `most` of each."""
    few = roles.copy()
    for role in Role:
        few[np.flatnonzero(roles == role)[most:]] = Role.NONE
    return few


def counts_of(roles: Sequence[NDArray[np.int8]]) -> dict[str, int]:
    """Return the number of events of each role that some have."""
    counts = np.bincount(np.concatenate([np.empty(0, np.int8), *roles]), minlength=len(Role)).tolist()
    return {role.name.lower(): counts[role] for role in reversed(Role) if role and counts[role]}


def rest(count: int) -> str:
    """Return where the events of a role are that are not shown."""
    return f"--json has {'all of them' if count <= MAX_EVENTS else f'up to {MAX_EVENTS:,} of each input'}"


HEADINGS = {
    "deciding": "",
    "timing": "not in the row, but the bounds of its window depend on them",
    "considered": "read, but the events above decide",
}
"""What stands above the events of each role, in the order in which they are shown; nothing above the first."""
COUNTED = {"timing": "{:,} for the bounds of its window", "considered": "{:,} considered"}
"""How the events of the other roles are counted."""
