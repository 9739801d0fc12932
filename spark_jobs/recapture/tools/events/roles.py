"""What an event, or another row, has to do with a row that was made of it."""

from enum import IntEnum


class Role(IntEnum):
    """What a row has to do with another row that was made of it; a larger role counts for more."""

    NONE = 0
    CONSIDERED = 1
    """It was read, but other rows decide: of MIN, a row with a larger value."""
    TIMING = 2
    """It is not among the rows of the window, but a bound of the window depends on it."""
    DECIDING = 3
    """The row depends on it."""


HEADINGS = {
    "deciding": "",
    "timing": "not in the row, but the bounds of its window depend on them",
    "considered": "read, but the events above decide",
}
"""What stands above the events of each role, in the order in which they are shown; nothing above the first."""
COUNTED = {"timing": "{:,} for the bounds of its window", "considered": "{:,} considered"}
"""How the events of the other roles are counted."""
