"""Names of metrics for people: each number once, with ASA's name behind it."""

from recapture.quality.metric_titles import SUMS, TITLES, name_behind, titled
from recapture.quality.metrics import OUTPUT_METRICS
from recapture.time_model.metrics import COMBINED, VERDICTS


def test_every_metric_has_a_name_for_people() -> None:
    assert TITLES.keys() == {*COMBINED, *OUTPUT_METRICS}
    assert all(part in VERDICTS for parts in SUMS.values() for part in parts)


def test_a_number_that_two_metrics_have_is_shown_once_under_the_name_of_asa() -> None:
    values = {"malformed": 4.0, "DeserializationError": 4.0, "early_dropped": 40.0, "EarlyInputEvents": 40.0}
    assert titled(values) == [
        ("early, dropped", "EarlyInputEvents", 40.0),
        ("malformed", "DeserializationError", 4.0),
    ]


def test_a_sum_that_says_more_than_its_parts_is_shown_with_them() -> None:
    values = {"late_dropped": 2.0, "LateInputEvents": 5.0, "out_of_order_dropped": 3.0, "DroppedOrAdjustedEvents": 3.0}
    assert titled(values) == [
        ("late, dropped", "late_dropped", 2.0),
        ("late in all", "LateInputEvents", 5.0),
        ("out of order, dropped", "DroppedOrAdjustedEvents", 3.0),
    ]


def test_a_verdict_that_counts_all_that_its_metric_counts_has_its_name_without_its_value() -> None:
    assert name_behind("malformed", {"malformed": 1}) == "DeserializationError"
    assert name_behind("out_of_order_adjusted", {"out_of_order_adjusted": 1, "out_of_order_dropped": 2}) == (
        "out_of_order_adjusted"
    )
    assert name_behind("on_time", {"on_time": 5}) == "on_time"


def test_what_is_0_or_unknown_is_left_out() -> None:
    assert titled({"InputEvents": 0.0, "OutputWatermarkDelaySeconds": None}) == []
