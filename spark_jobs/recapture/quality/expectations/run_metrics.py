"""Expectations about the metrics of a run, for suites; `quality.metrics_rules` has their rules.

Each row of the metrics has the counts of a slice and partition of an input.
"""

from abc import abstractmethod
from typing import ClassVar

import pandas as pd

from recapture.quality import metrics_rules as rules
from recapture.quality.expectations.base import FrameExpectation, Mostly, NotNegative, Share, number, rows_of
from recapture.quality.finding import Finding
from recapture.quality.metrics import ADJUSTED
from recapture.quality.metrics_rules import PLACE, Rows
from recapture.time_model.metrics import VERDICTS


class _MetricsExpectation(FrameExpectation):
    """Base of the expectations that judge the rows of the metrics."""

    judged_columns: ClassVar[tuple[str, ...]]

    @abstractmethod
    def judge_rows(self, rows: Rows) -> Finding:
        """Return what is wrong with rows that have the needed columns."""

    def needed_columns(self) -> list[str]:
        return [*PLACE, *self.judged_columns]

    def judge(self, frame: pd.DataFrame) -> Finding:
        return self.judge_rows(rows_of(frame[self.needed_columns()]))


class ExpectEventsToBeConserved(_MetricsExpectation):
    """Expect every event that arrived to have exactly one verdict.

    Judges each row: InputEvents equals DuplicateEvents plus the sum of the verdicts, and no count is missing
    (docs/time-model.md, section 5).
    """

    judged_columns = ("InputEvents", "DuplicateEvents", *VERDICTS)

    def judge_rows(self, rows: Rows) -> Finding:
        return rules.events_are_conserved(rows)


class ExpectCaptureToBeComplete(_MetricsExpectation):
    """Expect Capture to have written everything that arrived.

    Judges each row: `complete` is true. It is false while a blob of the slice may still be missing. A null fails.
    """

    judged_columns = ("complete",)

    def judge_rows(self, rows: Rows) -> Finding:
        return rules.capture_is_complete(rows)


class ExpectSequenceGapsToBeAtMost(_MetricsExpectation):
    """Expect few gaps in the sequence numbers.

    Judges each row: SequenceGaps is at most `max_value`. The hub numbers the events of a partition consecutively, so
    a missing number is an event that is not in the archive.

    Args:
        max_value: the largest number of gaps of a slice and partition; default 0.
    """

    max_value: NotNegative = 0.0
    success_keys: ClassVar[tuple[str, ...]] = ("max_value",)
    judged_columns = ("SequenceGaps",)

    def judge_rows(self, rows: Rows) -> Finding:
        return rules.gaps_are_at_most(rows, number(self.max_value))


class _ShareOfEvents(_MetricsExpectation):
    """Base of the expectations on a share of the events that arrived. Rows without events are not judged."""

    max_value: Share
    mostly: Mostly = 1.0
    success_keys: ClassVar[tuple[str, ...]] = ("max_value", "mostly")
    counts: ClassVar[tuple[str, ...]]
    """Metrics whose sum is the share."""
    are: ClassVar[str]
    """What the counted events are."""

    def needed_columns(self) -> list[str]:
        return [*PLACE, "InputEvents", *self.counts]

    def judge_rows(self, rows: Rows) -> Finding:
        return rules.share_is_at_most(rows, self.counts, self.are, number(self.max_value), number(self.mostly))


class ExpectShareOfLateEventsToBeAtMost(_ShareOfEvents):
    """Expect few of the events to be late.

    Judges each row in which events arrived: LateInputEvents / InputEvents is at most `max_value`.

    Args:
        max_value: the largest share, 0 to 1.
        mostly: the share of the rows that must meet this, 0 to 1; default 1.
    """

    counts = ("LateInputEvents",)
    are = "late"


class ExpectShareOfAdjustedEventsToBeAtMost(_ShareOfEvents):
    """Expect the policies to adjust the times of few events.

    Judges each row in which events arrived: the events with the verdicts early_adjusted, late_adjusted and
    out_of_order_adjusted are at most `max_value` of InputEvents.

    Args:
        max_value: the largest share, 0 to 1.
        mostly: the share of the rows that must meet this, 0 to 1; default 1.
    """

    counts = ADJUSTED
    are = "adjusted"


class ExpectShareOfMalformedEventsToBeAtMost(_ShareOfEvents):
    """Expect few of the events to be malformed.

    Judges each row in which events arrived: the events with the verdict malformed are at most `max_value` of
    InputEvents.

    Args:
        max_value: the largest share, 0 to 1.
        mostly: the share of the rows that must meet this, 0 to 1; default 1.
    """

    counts = ("malformed",)
    are = "malformed"
