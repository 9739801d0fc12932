"""Expectations about the metrics of a run: each row has the counts of a slice and partition of an input."""

from typing import Any, ClassVar

import pandas as pd

from recapture.quality import metrics
from recapture.quality.expectations.base import (
    Finding,
    FrameExpectation,
    Mostly,
    NotNegative,
    Share,
    examples,
    number,
)
from recapture.time_model.metrics import VERDICTS

_IDENTIFYING = ["slice_start", "input", "partition"]


class ExpectEventsToBeConserved(FrameExpectation):
    """Expect every event that arrived to have exactly one verdict.

    Judges each row: InputEvents equals DuplicateEvents plus the sum of the verdicts, and no count is missing
    (docs/time-model.md, section 5).
    """

    def needed_columns(self) -> list[str]:
        return [*_IDENTIFYING, "InputEvents", "DuplicateEvents", *VERDICTS]

    def judge(self, frame: pd.DataFrame) -> Finding:
        difference = metrics.unaccounted_events(frame)
        return _by_row(frame, difference != 0, unaccounted_events=difference)


class ExpectCaptureToBeComplete(FrameExpectation):
    """Expect Capture to have written everything that arrived.

    Judges each row: `complete` is true. It is false while a blob of the slice may still be missing. A null fails.
    """

    def needed_columns(self) -> list[str]:
        return [*_IDENTIFYING, "complete"]

    def judge(self, frame: pd.DataFrame) -> Finding:
        return _by_row(frame, ~frame["complete"].eq(True), complete=frame["complete"])


class ExpectSequenceGapsToBeAtMost(FrameExpectation):
    """Expect few gaps in the sequence numbers.

    Judges each row: SequenceGaps is at most `max_value`. The hub numbers the events of a partition consecutively, so
    a missing number is an event that is not in the archive.

    Args:
        max_value: the largest number of gaps of a slice and partition; default 0.
    """

    max_value: NotNegative = 0.0
    success_keys: ClassVar[tuple[str, ...]] = ("max_value",)

    def needed_columns(self) -> list[str]:
        return [*_IDENTIFYING, "SequenceGaps"]

    def judge(self, frame: pd.DataFrame) -> Finding:
        gaps = frame["SequenceGaps"]
        return _by_row(frame, ~(gaps <= number(self.max_value)), SequenceGaps=gaps)


class _ShareOfEvents(FrameExpectation):
    """Base of the expectations on a share of the events that arrived. Rows without events are not judged."""

    max_value: Share
    mostly: Mostly = 1.0
    success_keys: ClassVar[tuple[str, ...]] = ("max_value", "mostly")
    counts: ClassVar[tuple[str, ...]]
    """Metrics whose sum is the share."""
    share: ClassVar[str]
    """Name of the share in examples."""

    def needed_columns(self) -> list[str]:
        return [*_IDENTIFYING, "InputEvents", *self.counts]

    def judge(self, frame: pd.DataFrame) -> Finding:
        frame = frame[frame["InputEvents"] != 0]
        share = metrics.share_of_events(frame, self.counts)
        return _by_row(frame, ~(share <= number(self.max_value)), **{self.share: share.round(6)})


class ExpectShareOfLateEventsToBeAtMost(_ShareOfEvents):
    """Expect few of the events to be late.

    Judges each row in which events arrived: LateInputEvents / InputEvents is at most `max_value`.

    Args:
        max_value: the largest share, 0 to 1.
        mostly: the share of the rows that must meet this, 0 to 1; default 1.
    """

    counts = ("LateInputEvents",)
    share = "late_share"


class ExpectShareOfAdjustedEventsToBeAtMost(_ShareOfEvents):
    """Expect the policies to adjust the times of few events.

    Judges each row in which events arrived: the events with the verdicts early_adjusted, late_adjusted and
    out_of_order_adjusted are at most `max_value` of InputEvents.

    Args:
        max_value: the largest share, 0 to 1.
        mostly: the share of the rows that must meet this, 0 to 1; default 1.
    """

    counts = metrics.ADJUSTED
    share = "adjusted_share"


class ExpectShareOfMalformedEventsToBeAtMost(_ShareOfEvents):
    """Expect few of the events to be malformed.

    Judges each row in which events arrived: the events with the verdict malformed are at most `max_value` of
    InputEvents.

    Args:
        max_value: the largest share, 0 to 1.
        mostly: the share of the rows that must meet this, 0 to 1; default 1.
    """

    counts = ("malformed",)
    share = "malformed_share"


def _by_row(frame: pd.DataFrame, failed: "pd.Series[bool]", **values: Any) -> Finding:
    """Return the rows that fail, with these values, the slice, the input if there are several, and the partition."""
    shown = [name for name in _IDENTIFYING if name != "input" or frame["input"].nunique() > 1]
    failures = frame[shown].assign(**values)[[*values, *shown]][failed]
    return Finding("row", len(frame), len(failures), examples(failures))
