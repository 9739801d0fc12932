"""Recapture's own expectations: what passes, what fails with which examples, and what could not be judged."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from recapture.errors import DefinitionError
from recapture.quality import checkpoint, comparisons
from recapture.quality.evaluation import evaluate_frame
from recapture.quality.loading import create_context
from recapture.quality.signatures import BOUNDS, SIGNATURES
from recapture.quality.suites import Expectation

if TYPE_CHECKING:
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext

DAY = datetime(2026, 3, 10, tzinfo=UTC)
TEN = DAY + timedelta(hours=10)
PARAMETERS = {"run_start": TEN, "run_end": TEN + timedelta(hours=1)}


@pytest.fixture(scope="module")
def context(great_expectations: None) -> "EphemeralDataContext":
    return create_context()


def judge(context: "EphemeralDataContext", frame: pd.DataFrame, kind: str, **kwargs: object) -> dict[str, Any]:
    """Return what an expectation of a suite file says about a frame."""
    declared = Expectation("1", kind, SIGNATURES[kind].asset, "critical", kwargs)
    (result,) = evaluate_frame(context, frame, [(declared, checkpoint.load_expectation(declared))], PARAMETERS)
    assert not result["exception_info"]["raised_exception"], result["exception_info"]
    return {"success": result["success"], **result["result"]}


def windows(days: int = 6, devices: tuple[str, ...] = ("a", "b")) -> pd.DataFrame:
    """Return the rows of five-minute windows from ten to eleven, on the day and on the days before it."""
    rows = [
        {
            "slice_start": pd.Timestamp(TEN - timedelta(days=day)),
            "windowEnd": pd.Timestamp(TEN - timedelta(days=day) + timedelta(minutes=5 * number)),
            "deviceId": device,
            "events": 10,
            "temperature": 20 + number / 10 + day / 100,
        }
        for day in reversed(range(days))
        for number in range(1, 13)
        for device in devices
    ]
    return pd.DataFrame(rows)


def today(frame: pd.DataFrame) -> "pd.Series[bool]":
    return frame["slice_start"] == TEN


# Metrics


def test_shares_are_judged_only_where_events_arrived(context: "EphemeralDataContext", metrics: pd.DataFrame) -> None:
    metrics.loc[3, ["InputEvents", "LateInputEvents"]] = [0, 0]
    late = judge(context, metrics, "expect_share_of_late_events_to_be_at_most", max_value=0.1)
    assert (late["success"], late["element_count"], late["unexpected_count"]) == (False, 3, 3)
    assert late["partial_unexpected_list"][0]["late_share"] == 3 / 20
    assert judge(context, metrics, "expect_share_of_late_events_to_be_at_most", max_value=0.15)["success"]


def test_adjusted_events_are_those_of_all_three_policies(
    context: "EphemeralDataContext", metrics: pd.DataFrame
) -> None:
    adjusted = judge(context, metrics, "expect_share_of_adjusted_events_to_be_at_most", max_value=0.1)
    assert adjusted["partial_unexpected_list"][0]["adjusted_share"] == (2 + 1) / 20


def test_mostly_lets_some_rows_fail(context: "EphemeralDataContext", metrics: pd.DataFrame) -> None:
    metrics["malformed"] = [2, 0, 0, 0]
    kind = "expect_share_of_malformed_events_to_be_at_most"
    assert judge(context, metrics, kind, max_value=0.01, mostly=0.75)["success"]
    assert not judge(context, metrics, kind, max_value=0.01, mostly=0.76)["success"]


def test_gaps_are_counted_by_slice_and_partition(context: "EphemeralDataContext", metrics: pd.DataFrame) -> None:
    metrics["SequenceGaps"] = [0, 1, 2, 0]
    assert judge(context, metrics, "expect_sequence_gaps_to_be_at_most")["unexpected_count"] == 2
    assert judge(context, metrics, "expect_sequence_gaps_to_be_at_most", max_value=2)["success"]


def watermarks(*pairs: tuple[int, float | None]) -> pd.DataFrame:
    """Return the metrics of one partition: watermarks in seconds after ten, by slices in hours after ten."""
    rows = [
        {
            "slice_start": TEN + timedelta(hours=hours),
            "input": "in",
            "partition": "0",
            "WatermarkSeconds": None if seconds is None else TEN.timestamp() + seconds,
        }
        for hours, seconds in pairs
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("slices", "judged", "failed"),
    [
        ([(-1, 0), (0, 3600)], 1, 0),
        ([(-1, 0), (0, 0)], 1, 0),
        ([(-1, 3500), (0, 3400)], 1, 1),
        ([(-2, 3500), (-1, None), (0, 3400)], 1, 1),
        ([(-30, 3500), (0, 3400)], 0, 0),
        ([(0, 3400)], 0, 0),
    ],
)
def test_a_watermark_is_compared_with_the_highest_of_the_day_before(
    context: "EphemeralDataContext", slices: list[tuple[int, float | None]], judged: int, failed: int
) -> None:
    result = judge(context, watermarks(*slices), "expect_watermark_to_never_fall")
    assert (result["element_count"], result["unexpected_count"]) == (judged, failed)
    assert result["success"] is (failed == 0)
    assert ("unjudged" in result["details"]) is (judged == 0)


def test_a_watermark_may_fall_by_what_is_allowed(context: "EphemeralDataContext") -> None:
    fallen = watermarks((-1, 3500), (0, 3400))
    kind = "expect_watermark_to_never_fall"
    assert judge(context, fallen, kind, max_fall_seconds=100)["success"]
    (example,) = judge(context, fallen, kind, max_fall_seconds=99)["partial_unexpected_list"]
    assert (example["fell_by_seconds"], example["partition"]) == (100, "0")


# Rows and their history

GRID = {"column": "windowEnd", "key_columns": ["deviceId"], "hop_seconds": 300}


def test_a_key_that_had_rows_before_needs_a_row_in_every_window(context: "EphemeralDataContext") -> None:
    kind, frame = "expect_table_windows_to_be_complete", windows(2)
    whole = judge(context, frame, kind, **GRID)
    assert (whole["success"], whole["element_count"]) == (True, 24)
    silent = frame[~(today(frame) & (frame["deviceId"] == "b") & (frame["temperature"] > 20.3))]
    result = judge(context, silent, kind, **GRID)
    assert (result["success"], result["unexpected_count"]) == (False, 9)
    assert result["partial_unexpected_list"] == [{"deviceId": "b", "missing_windows": 9, "of_windows": 12}]
    assert judge(context, silent, kind, **GRID, mostly=0.6)["success"]


def test_without_any_row_of_the_run_every_window_is_missing(context: "EphemeralDataContext") -> None:
    frame = windows(2)
    result = judge(context, frame[~today(frame)], "expect_table_windows_to_be_complete", **GRID)
    assert (result["success"], result["unexpected_count"]) == (False, 24)


def test_a_new_key_needs_no_windows(context: "EphemeralDataContext") -> None:
    frame = windows(2)
    new = frame[today(frame)].head(1).assign(deviceId="new")
    result = judge(context, pd.concat([frame, new]), "expect_table_windows_to_be_complete", **GRID)
    assert (result["success"], result["element_count"]) == (True, 24)


def test_a_wrong_hop_is_an_error(context: "EphemeralDataContext") -> None:
    declared = Expectation(
        "1", "expect_table_windows_to_be_complete", "aggregates", "info", GRID | {"hop_seconds": 420}
    )
    pairs = [(declared, checkpoint.load_expectation(declared))]
    (result,) = evaluate_frame(context, windows(2), pairs, PARAMETERS)
    assert "hop_seconds is 420, but windows end at" in result["exception_info"]["exception_message"]


NEAR = "expect_column_values_to_be_near_earlier_days"


def test_a_value_is_compared_with_the_same_time_of_earlier_days(context: "EphemeralDataContext") -> None:
    frame = windows()
    usual = judge(context, frame, NEAR, column="temperature", key_columns=["deviceId"])
    assert (usual["success"], usual["element_count"], usual["details"]) == (True, 2, {"item": "value"})
    frame.loc[today(frame) & (frame["deviceId"] == "b"), "temperature"] *= 1.8
    result = judge(context, frame, NEAR, column="temperature", key_columns=["deviceId"])
    assert (result["success"], result["unexpected_count"]) == (False, 1)
    (example,) = result["partial_unexpected_list"]
    assert (example["deviceId"], example["median"], example["earlier_days"]) == ("b", 20.68, 5)


def test_a_column_that_never_changed_may_differ_by_the_smallest_deviation(context: "EphemeralDataContext") -> None:
    frame = windows()
    frame.loc[today(frame), "events"] = 12
    assert judge(context, frame, NEAR, column="events", min_deviation=2)["success"]
    assert not judge(context, frame, NEAR, column="events", min_deviation=1.9)["success"]


@pytest.mark.parametrize(
    ("kind", "kwargs"),
    [
        (NEAR, {"column": "temperature", "key_columns": ["deviceId"]}),
        ("expect_table_row_count_to_be_near_earlier_days", {}),
        ("expect_table_windows_to_be_complete", GRID),
    ],
)
def test_a_first_run_succeeds_and_says_that_nothing_is_proved(
    context: "EphemeralDataContext", kind: str, kwargs: dict[str, Any]
) -> None:
    result = judge(context, windows(1), kind, **kwargs)
    assert (result["success"], result["element_count"]) == (True, 0)
    assert result["details"]["unjudged"] >= 1
    assert result["details"]["why_unjudged"] in ("fewer than 5 earlier days published", "no earlier rows")


def test_a_slice_has_about_as_many_rows_as_on_earlier_days(context: "EphemeralDataContext") -> None:
    kind, frame = "expect_table_row_count_to_be_near_earlier_days", windows()
    assert judge(context, frame, kind)["success"]
    half = frame[~(today(frame) & (frame["temperature"] > 20.6))]
    (example,) = judge(context, half, kind)["partial_unexpected_list"]
    assert (example["rows"], example["median"]) == (12, 24)
    (example,) = judge(context, frame[~today(frame)], kind)["partial_unexpected_list"]
    assert (example["rows"], example["slice_start"]) == (0, TEN.isoformat())


def test_a_key_whose_values_are_all_equal_is_stuck(context: "EphemeralDataContext") -> None:
    frame = windows(1, ("a", "b", "c"))
    frame.loc[frame["deviceId"] == "b", "temperature"] = 21.5
    frame.loc[(frame["deviceId"] == "c") & (frame["windowEnd"] > TEN + timedelta(minutes=25)), "temperature"] = None
    kwargs = {"column": "temperature", "key_columns": ["deviceId"]}
    result = judge(context, frame, "expect_column_values_to_vary", **kwargs)
    assert (result["success"], result["element_count"], result["details"]["unjudged"]) == (False, 2, 1)
    assert result["partial_unexpected_list"] == [{"deviceId": "b", "temperature": 21.5, "rows": 12}]


def test_earlier_days_are_those_of_plain_python() -> None:
    draw = np.random.default_rng(7)
    hours = [DAY + timedelta(hours=int(hour)) for hour in draw.choice(24 * 9, 120, replace=False)]
    known = pd.DataFrame(
        [{"slice": hour, "group": group, "value": draw.normal()} for hour in hours for group in draw.permutation(3)[:2]]
    )
    result = comparisons.with_earlier_days(known, known, days=4)
    by_key = {(row.slice, row.group): row.value for row in known.itertuples()}
    for row in result.itertuples():
        before = [by_key.get((row.slice - timedelta(days=day), row.group)) for day in range(1, 5)]
        values = [value for value in before if value is not None]
        assert row.earlier_days == len(values)
        if values:
            median = float(np.median(values))
            assert (row.median, row.mad) == pytest.approx((median, np.median([abs(v - median) for v in values])))


# Names, arguments, and suites of users


@pytest.mark.parametrize("kind", SIGNATURES)
@pytest.mark.usefixtures("great_expectations")
def test_a_class_has_the_arguments_that_a_suite_file_may_give(kind: str) -> None:
    from great_expectations.expectations.registry import get_expectation_impl

    from recapture.quality import expectations

    class_, signature = get_expectation_impl(kind), SIGNATURES[kind]
    assert class_.__name__ in expectations.__all__
    given = {*BOUNDS, "slice_column"} if signature.history else set()
    assert set(signature.arguments) == set(class_.success_keys) - given
    fields = class_.__fields__
    assert set(signature.required) == {name for name in class_.success_keys if fields[name].required} - given
    if signature.history:
        assert fields["days"].default == signature.history.days
    documentation = class_.__doc__ or ""
    assert all(f"{name}:" in documentation for name in class_.success_keys), "every argument is documented"


@pytest.mark.usefixtures("great_expectations")
def test_the_classes_work_in_a_suite_of_great_expectations() -> None:
    import great_expectations as gx

    from recapture.quality.expectations import ExpectColumnValuesToBeNearEarlierDays, ExpectColumnValuesToVary

    data_context = create_context()
    asset = data_context.data_sources.add_pandas("mine").add_dataframe_asset("rows")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": windows()})
    suite = gx.ExpectationSuite(name="mine")
    suite.add_expectation(
        ExpectColumnValuesToBeNearEarlierDays(
            column="temperature", since=TEN, until={"$PARAMETER": "end"}, max_deviations={"$PARAMETER": "deviations"}
        )
    )
    suite.add_expectation(ExpectColumnValuesToVary(column="events", key_columns=["deviceId"]))
    near, vary = batch.validate(
        suite, expectation_parameters={"end": TEN + timedelta(hours=1), "deviations": 4}
    ).results
    assert (near.success, near.result["element_count"]) == (True, 1)
    assert (vary.success, vary.result["unexpected_count"]) == (False, 2)


@pytest.mark.parametrize(
    ("kind", "kwargs", "message"),
    [
        ("expect_share_of_late_events_to_be_at_most", {"max_value": 1.1}, "max_value"),
        ("expect_share_of_late_events_to_be_at_most", {"max_value": {"$PARAM": "x"}}, 'or {"$PARAMETER": NAME}'),
        ("expect_sequence_gaps_to_be_at_most", {"max_value": "many"}, "max_value"),
        ("expect_table_windows_to_be_complete", GRID | {"hop_seconds": 0}, "hop_seconds"),
    ],
)
@pytest.mark.usefixtures("great_expectations")
def test_an_impossible_value_of_an_argument_is_refused(kind: str, kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message.replace("$", r"\$")):
        checkpoint.load_expectation(Expectation("1", kind, SIGNATURES[kind].asset, "critical", kwargs))
