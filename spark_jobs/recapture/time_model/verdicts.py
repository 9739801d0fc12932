"""The verdicts that an event may get (docs/time-model.md, section 2)."""

from enum import IntEnum


class Verdict(IntEnum):
    """What decoding and the policies did to an event."""

    ON_TIME = 0
    EARLY_DROPPED = 1
    LATE_ADJUSTED = 2
    LATE_DROPPED = 3
    OUT_OF_ORDER_ADJUSTED = 4
    OUT_OF_ORDER_DROPPED = 5
    INVALID_TIMESTAMP = 6
    MALFORMED = 7
    EARLY_ADJUSTED = 8
    """Not ASA's: only if the pipeline asks for it."""

    @property
    def label(self) -> str:
        """Name of the verdict in metrics and in the quarantine."""
        return self.name.lower()


DROPPED = (Verdict.EARLY_DROPPED, Verdict.LATE_DROPPED, Verdict.OUT_OF_ORDER_DROPPED)
"""The verdicts with which the policies drop an event."""
PROCESSED = (Verdict.ON_TIME, Verdict.EARLY_ADJUSTED, Verdict.LATE_ADJUSTED, Verdict.OUT_OF_ORDER_ADJUSTED)
"""The verdicts with which an event has a System.Timestamp and reaches the query."""
TROUBLES = ("early", "late", "out_of_order", "dropped", "malformed", "invalid_timestamp")
"""What is counted for each key, besides its events and those that were processed.

The first three are events beyond the early window, the late tolerance and the watermark, whatever their verdict;
`dropped` are those that the policies dropped.
"""
