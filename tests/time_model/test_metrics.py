"""The metrics that are counted by slice and partition: declared once, documented, and all published."""

import pytest

from recapture.time_model.metrics import COMBINED, COUNTS, Counts
from recapture.time_model.verdicts import Verdict
from tests.paths import ROOT


@pytest.mark.parametrize("page", ["time-model.md", "quality.md"])
def test_every_metric_is_documented(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    assert [name for name in COMBINED if name not in text] == []


def test_counts_are_published_under_the_names_of_their_metrics() -> None:
    counts = Counts(events=3, duplicates=1)
    counts.verdicts[Verdict.EARLY_ADJUSTED] = 2
    published = counts.by_metric()
    assert tuple(published) == COUNTS
    assert {name: count for name, count in published.items() if count} == {
        "InputEvents": 3,
        "DuplicateEvents": 1,
        "early_adjusted": 2,
    }
