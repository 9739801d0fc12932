"""How the values of metrics are shown."""

import pytest

from recapture.quality.metrics import value_text
from recapture.time_model.metrics import WATERMARK, WATERMARK_DELAY


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        (WATERMARK, 1_795_528_666.746, "2026-11-24T13:57:46.746000Z"),
        (WATERMARK, 0.0, "1970-01-01T00:00:00Z"),
        (WATERMARK, None, "\N{EN DASH}"),
        (WATERMARK_DELAY, 5_025.0, "1 h 23 min"),
        ("InputEvents", 10_824.0, "10,824"),
        ("InputEvents", None, "\N{EN DASH}"),
    ],
)
def test_a_watermark_is_shown_as_a_time_and_a_delay_as_a_duration(name: str, value: float | None, text: str) -> None:
    assert value_text(name, value) == text
