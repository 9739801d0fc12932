"""Recapture's own expectations, as classes of Great Expectations.

They work in a suite file of Recapture, by their type, and in any suite of Great Expectations on a pandas frame:

    from recapture.quality.expectations import ExpectEventsToBeConserved

    batch.validate(ExpectEventsToBeConserved())

Importing this package imports Great Expectations. `quality.signatures` has their names and arguments without it.
"""

from recapture.quality.expectations.history import (
    ExpectColumnValuesToBeNearEarlierDays,
    ExpectTableRowCountToBeNearEarlierDays,
    ExpectTableWindowsToBeComplete,
    ExpectWatermarkToNeverFall,
)
from recapture.quality.expectations.run_metrics import (
    ExpectCaptureToBeComplete,
    ExpectEventsToBeConserved,
    ExpectSequenceGapsToBeAtMost,
    ExpectShareOfAdjustedEventsToBeAtMost,
    ExpectShareOfLateEventsToBeAtMost,
    ExpectShareOfMalformedEventsToBeAtMost,
)
from recapture.quality.expectations.variation import ExpectColumnValuesToVary

__all__ = [
    "ExpectCaptureToBeComplete",
    "ExpectColumnValuesToBeNearEarlierDays",
    "ExpectColumnValuesToVary",
    "ExpectEventsToBeConserved",
    "ExpectSequenceGapsToBeAtMost",
    "ExpectShareOfAdjustedEventsToBeAtMost",
    "ExpectShareOfLateEventsToBeAtMost",
    "ExpectShareOfMalformedEventsToBeAtMost",
    "ExpectTableRowCountToBeNearEarlierDays",
    "ExpectTableWindowsToBeComplete",
    "ExpectWatermarkToNeverFall",
]
