"""Expectations about the metrics of a run: each row has the counts of a slice and partition of an input."""

from typing import Any, ClassVar

import pandas as pd

from recapture.pages import page as pages
from recapture.process.wording import counted
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
        return _by_row(
            frame,
            difference != 0,
            "events have no verdict or several, or a count is missing",
            unaccounted_events=difference,
        )


class ExpectCaptureToBeComplete(FrameExpectation):
    """Expect Capture to have written everything that arrived.

    Judges each row: `complete` is true. It is false while a blob of the slice may still be missing. A null fails.
    """

    def needed_columns(self) -> list[str]:
        return [*_IDENTIFYING, "complete"]

    def judge(self, frame: pd.DataFrame) -> Finding:
        return _by_row(frame, ~frame["complete"].eq(True), "Capture may not have written everything that arrived")


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
        gaps, most = frame["SequenceGaps"], number(self.max_value)
        failure = "sequence numbers are missing" + (f" (at most {counted(int(most), 'gap')} expected)" if most else "")
        return _by_row(frame, ~(gaps <= most), failure, gaps=gaps)


class _ShareOfEvents(FrameExpectation):
    """Base of the expectations on a share of the events that arrived. Rows without events are not judged."""

    max_value: Share
    mostly: Mostly = 1.0
    success_keys: ClassVar[tuple[str, ...]] = ("max_value", "mostly")
    counts: ClassVar[tuple[str, ...]]
    """Metrics whose sum is the share."""
    are: ClassVar[str]
    """What the counted events are."""

    def needed_columns(self) -> list[str]:
        return [*_IDENTIFYING, "InputEvents", *self.counts]

    def judge(self, frame: pd.DataFrame) -> Finding:
        frame = frame[frame["InputEvents"] != 0]
        share, most = metrics.share_of_events(frame, self.counts), number(self.max_value)
        failed = ~(share <= most)
        worst = frame[failed]
        events = pages.share(worst[list(self.counts)].sum().sum(), worst["InputEvents"].sum())
        limit = f"at most {pages.share(most, 1)} expected"
        if number(self.mostly) < 1:
            limit += f" in at least {pages.share(number(self.mostly), 1)} of the slices and partitions"
        failure = f"{events} of the events are {self.are} ({limit})"
        return _by_row(frame, failed, failure, **{f"{self.are}_share": share})


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

    counts = metrics.ADJUSTED
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


def _by_row(frame: pd.DataFrame, failed: "pd.Series[bool]", failure: str, **measure: Any) -> Finding:
    """Return the rows that fail, those with the largest measure first.

    An example has the slice, the input if there are several, the partition, and the measure if there is one.
    """
    shown = [name for name in _IDENTIFYING if name != "input" or frame["input"].nunique() > 1]
    failures = frame[shown].assign(**measure)[failed]
    for name in measure:
        failures = failures.sort_values(name, key=abs, ascending=False, kind="stable")
    return Finding(None, len(frame), len(failures), examples(failures), failure=failure)
