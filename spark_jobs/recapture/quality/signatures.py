"""The names and arguments of Recapture's own expectations.

A suite is checked against them without importing `quality.expectations`, because that imports Great Expectations, which
takes seconds. A test compares them with the classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Asset = Literal["metrics", "aggregates"]


@dataclass(frozen=True)
class History:
    """What an expectation needs of the slices that were published before a run."""

    days: int
    """Number of days before the run, unless the argument `days` says otherwise."""
    same_time: bool
    """Whether only slices at the same time of day as one of the run's are needed."""


@dataclass(frozen=True)
class Signature:
    """Arguments that a suite file may give to an expectation, and what the audit gives to it."""

    asset: Asset
    """What the expectation judges."""
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    history: History | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of all arguments in a suite file."""
        return self.required + self.optional


DEVIATIONS = ("max_deviations", "min_deviation", "min_days", "mostly", "days")
"""Arguments of the expectations that compare slices with earlier days."""
_SHARE = Signature("metrics", ("max_value",), ("mostly",))
SIGNATURES: Mapping[str, Signature] = {
    "expect_events_to_be_conserved": Signature("metrics"),
    "expect_capture_to_be_complete": Signature("metrics"),
    "expect_share_of_late_events_to_be_at_most": _SHARE,
    "expect_share_of_adjusted_events_to_be_at_most": _SHARE,
    "expect_share_of_malformed_events_to_be_at_most": _SHARE,
    "expect_sequence_gaps_to_be_at_most": Signature("metrics", (), ("max_value",)),
    "expect_watermark_to_never_fall": Signature("metrics", (), ("max_fall_seconds", "days"), History(1, False)),
    "expect_table_windows_to_be_complete": Signature(
        "aggregates", ("column", "key_columns", "hop_seconds"), ("mostly", "days"), History(1, False)
    ),
    "expect_column_values_to_be_near_earlier_days": Signature(
        "aggregates", ("column",), ("key_columns", *DEVIATIONS), History(14, True)
    ),
    "expect_table_row_count_to_be_near_earlier_days": Signature("aggregates", (), DEVIATIONS, History(14, True)),
    "expect_column_values_to_vary": Signature("aggregates", ("column",), ("key_columns", "min_rows", "mostly")),
}
"""Recapture's own expectations by type."""
BOUNDS = {"since": {"$PARAMETER": "run_start"}, "until": {"$PARAMETER": "run_end"}}
"""Arguments that the audit gives to an expectation with a history. The rows before `since` are the history."""
