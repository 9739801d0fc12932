"""What a check of Recapture's own says about the items that it judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SHOWN = 20
"""Number of failed items that a result shows."""


@dataclass(frozen=True)
class Finding:
    """What an expectation or a built-in check found."""

    item: str | None
    """What was judged, in the singular: slice, window, key, value or watermark; None for rows of the frame."""
    judged: int
    failed: int
    examples: Sequence[Mapping[str, Any]]
    """The first failed items, with JSON values."""
    unjudged: int = 0
    """Number of items that could not be judged."""
    why_unjudged: str = ""
    """Reason, such as "fewer than 5 earlier days"."""
    failure: str = ""
    """What is wrong, without the number of items."""

    def is_met(self, mostly: float) -> bool:
        """Return whether at least this share of the judged items, 0 to 1, is as expected."""
        return self.failed == 0 or (self.judged - self.failed) / self.judged >= mostly
