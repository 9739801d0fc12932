"""The audit: what blocks a run, what marks it, and what it only notes."""

import cProfile
import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recapture.errors import DefinitionError, RunError
from recapture.quality import suites
from recapture.quality.audit import Audit, Result, reason_of, text_of
from recapture.quality.checkpoint import require_valid_arguments
from tests.paths import ROOT
from tests.quality.staging import ALIAS, COLUMNS, Declared, audit

TELEMETRY = ROOT / "expectations" / "telemetry.json"
AT_LEAST_ONE = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "events", "min_value": 1}}


def failures(audited: Audit) -> list[Result]:
    return [result for result in audited.results if not result.success]


def test_a_sound_run_passes(metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any]) -> None:
    audited = audit(metrics, {ALIAS: aggregates}, {ALIAS: suites.load(TELEMETRY, COLUMNS)}, **run)
    assert audited.verdict == "passed"
    assert failures(audited) == []
    assert reason_of(audited) == ""


def test_every_declared_expectation_has_a_result_in_the_declared_order(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any]
) -> None:
    suite = suites.load(TELEMETRY, COLUMNS)
    audited = audit(metrics, {ALIAS: aggregates}, {ALIAS: suite}, **run)
    assert [result.expectation for result in audited.results if result.suite == suite.name] == [
        expectation.type
        for asset in ("metrics", "aggregates")
        for expectation in suite.expectations
        if expectation.asset == asset
    ]


def test_the_built_in_suite_always_runs(metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any]) -> None:
    assert {result.suite for result in audit(metrics, {ALIAS: aggregates}, {}, **run).results} == {"run_metrics"}


@pytest.mark.parametrize(
    ("severity", "verdict"), [("critical", "failed"), ("warning", "passed with warnings"), ("info", "passed")]
)
def test_critical_blocks_warning_marks_and_info_notes(
    metrics: pd.DataFrame,
    aggregates: pd.DataFrame,
    run: dict[str, Any],
    declared: Declared,
    severity: str,
    verdict: str,
) -> None:
    aggregates.loc[3, "events"] = 0
    audited = audit(metrics, {ALIAS: aggregates}, {ALIAS: declared({**AT_LEAST_ONE, "severity": severity})}, **run)
    assert audited.verdict == verdict
    (failure,) = failures(audited)
    assert (failure.severity, failure.unexpected_count, failure.observed) == (severity, 1, [0])
    assert failure.sentence.endswith(
        ": 1 of 48 rows (2.1 %), such as windowEnd 2026-03-01T10:10:00Z, deviceId b, events 0"
    )


@pytest.mark.parametrize("change", [1, -1])
def test_a_broken_law_blocks_and_names_slice_and_partition(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any], change: int
) -> None:
    metrics.loc[3, "on_time"] += change
    audited = audit(metrics, {ALIAS: aggregates}, {}, **run)
    assert audited.verdict == "failed"
    assert reason_of(audited) == (
        "run_metrics: events have no verdict or several, or a count is missing: 1 of 4 slices and partitions (25 %), "
        f"such as slice 2026-03-01T11:00:00Z, partition 1, unaccounted_events {-change}"
    )


def test_broken_laws_that_cancel_out_block(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any]
) -> None:
    metrics.loc[0, "on_time"] += 1
    metrics.loc[1, "on_time"] -= 1
    assert audit(metrics, {ALIAS: aggregates}, {}, **run).verdict == "failed"


def test_a_missing_count_blocks(metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any]) -> None:
    metrics["malformed"] = metrics["malformed"].astype("float").where(metrics.index != 2)
    audited = audit(metrics, {ALIAS: aggregates}, {}, **run)
    assert audited.verdict == "failed"
    assert "a count is missing" in reason_of(audited)


@pytest.mark.parametrize("column", ["late_dropped", "input"])
def test_metrics_without_a_column_are_an_error(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any], column: str
) -> None:
    with pytest.raises(RunError, match=f"lack {column}"):
        audit(metrics.drop(columns=column), {ALIAS: aggregates}, {}, **run)


@pytest.mark.parametrize("complete", [False, None])
def test_an_incomplete_slice_blocks(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any], complete: bool | None
) -> None:
    metrics["complete"] = [True, True, complete, True]
    audited = audit(metrics, {ALIAS: aggregates}, {}, **run)
    assert audited.verdict == "failed"
    assert "slice 2026-03-01T11:00:00Z, partition 0" in reason_of(audited)


def test_an_incomplete_partition_blocks_and_is_named_with_its_input_if_there_are_several(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any]
) -> None:
    """Partitions of two inputs may have one name."""
    both = pd.concat([metrics, metrics.assign(input="alarms")], ignore_index=True)
    assert audit(both, {ALIAS: aggregates}, {}, **run).verdict == "passed"
    both.loc[5, "complete"] = False
    assert reason_of(audit(both, {ALIAS: aggregates}, {}, **run)) == (
        "run_metrics: Capture may not have written everything that arrived: 1 of 8 slices and partitions (12.5 %), "
        "such as slice 2026-03-01T10:00:00Z, input alarms, partition 1"
    )


def test_a_slice_without_metrics_blocks(metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any]) -> None:
    assert audit(metrics.iloc[:2], {ALIAS: aggregates}, {}, **run).verdict == "failed"


def test_a_partition_counted_twice_blocks(metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any]) -> None:
    assert audit(pd.concat([metrics, metrics.iloc[:1]]), {ALIAS: aggregates}, {}, **run).verdict == "failed"


def test_a_run_that_read_nothing_blocks(metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any]) -> None:
    audited = audit(metrics.iloc[:0], {ALIAS: aggregates.iloc[:0]}, {}, **run)
    assert audited.verdict == "failed"
    assert reason_of(audited) == "run_metrics: slices were not counted (at least 2 expected): observed 0"


def test_mostly_late_events_are_marked(metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any]) -> None:
    metrics["LateInputEvents"] = [15, 15, 15, 0]
    audited = audit(metrics, {ALIAS: aggregates}, {}, **run)
    assert audited.verdict == "passed with warnings"
    assert failures(audited)[0].title == "in most partitions at most half of the events are late"


def test_partitions_without_events_pass(metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any]) -> None:
    counts = metrics.columns.difference(["slice_start", "input", "partition", "complete", "whole"])
    metrics[counts] = 0
    assert audit(metrics, {ALIAS: aggregates}, {}, **run).verdict == "passed"


def test_malformed_events_are_noted(metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any]) -> None:
    metrics[["on_time", "malformed", "DeserializationError"]] = [13, 1, 1]
    audited = audit(metrics, {ALIAS: aggregates}, {}, **run)
    assert audited.verdict == "passed"
    assert [(result.severity, result.unexpected_count) for result in failures(audited)] == [("info", 4)]


def test_an_evaluation_error_blocks_whatever_its_severity(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any], declared: Declared
) -> None:
    of_text = {**AT_LEAST_ONE, "kwargs": {"column": "deviceId", "min_value": 1}, "severity": "info"}
    audited = audit(metrics, {ALIAS: aggregates}, {ALIAS: declared(of_text, AT_LEAST_ONE)}, **run)
    assert audited.verdict == "failed"
    (failure,) = failures(audited)
    assert failure.severity == "critical"
    assert "could not be evaluated" in failure.sentence
    assert "must either be None or of the same type" in failure.sentence


def test_a_missing_column_blocks(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any], declared: Declared
) -> None:
    audited = audit(metrics, {ALIAS: aggregates.drop(columns="events")}, {ALIAS: declared(AT_LEAST_ONE)}, **run)
    assert audited.verdict == "failed"
    assert 'could not be evaluated: Error: The column "events"' in reason_of(audited)


@pytest.mark.parametrize(
    ("expectation", "message"),
    [
        ({**AT_LEAST_ONE, "kwargs": {"column": "events"}}, "min_value and max_value cannot both be None"),
        ({**AT_LEAST_ONE, "kwargs": {"column": "events", "min_value": 1, "mostly": 2}}, "mostly"),
        ({"type": "expect_column_values_to_be_increasing", "kwargs": {"colum": "events"}}, "colum"),
    ],
)
@pytest.mark.usefixtures("great_expectations")
def test_an_impossible_argument_is_refused_before_anything_runs(
    declared: Declared, expectation: dict[str, Any], message: str
) -> None:
    with pytest.raises(DefinitionError, match=r"mine\.json: expectation 1 \(expect_") as error:
        require_valid_arguments([declared(expectation)])
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_rows_outside_the_run_block_the_sample_pipeline(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any]
) -> None:
    aggregates.loc[0, "windowEnd"] = pd.Timestamp(run["run_start"])
    audited = audit(metrics, {ALIAS: aggregates}, {ALIAS: suites.load(TELEMETRY, COLUMNS)}, **run)
    assert reason_of(audited).startswith(
        "telemetry: windows end outside (from, to] (windowEnd: more than 2026-03-01T10:00:00Z, at most "
        "2026-03-01T12:00:00Z expected): 1 of 48 rows (2.1 %), such as windowEnd 2026-03-01T10:00:00Z, deviceId a"
    )


@pytest.mark.parametrize("dtype", ["datetime64[ns]", "datetime64[us]", "datetime64[us, UTC]"])
def test_times_without_a_zone_are_utc(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any], dtype: str
) -> None:
    aggregates["windowEnd"] = aggregates["windowEnd"].dt.tz_localize(None).astype(dtype.replace(", UTC", ""))
    if dtype.endswith("UTC]"):
        aggregates["windowEnd"] = aggregates["windowEnd"].dt.tz_localize("UTC")
    assert audit(metrics, {ALIAS: aggregates}, {ALIAS: suites.load(TELEMETRY, COLUMNS)}, **run).verdict == "passed"


def test_without_rows_only_the_table_itself_is_judged(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any], declared: Declared
) -> None:
    mean = {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "events", "min_value": 1}}
    rows = {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}, "severity": "warning"}
    audited = audit(metrics, {ALIAS: aggregates.iloc[:0]}, {ALIAS: declared(mean, AT_LEAST_ONE, rows)}, **run)
    assert audited.verdict == "passed with warnings"
    first, second, third = (result.sentence for result in audited.results[-3:])
    assert first.endswith(" (no rows to judge)")
    assert second.endswith(" (no rows to judge)")
    assert third == "not met: expect table row count to be between: min_value 1: observed 0"


def test_the_stored_audit_is_valid_json_with_every_result(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any], declared: Declared
) -> None:
    aggregates["avgTemperature"] = [np.inf, -np.inf, np.nan] * 16
    hottest = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "avgTemperature", "max_value": 60}}
    latest = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "windowEnd", "max_value": "2020-01-01"}}
    between = {**AT_LEAST_ONE, "kwargs": {"column": "avgTemperature", "max_value": 60}}
    audited = audit(metrics, {ALIAS: aggregates}, {ALIAS: declared(hottest, latest, between)}, **run)
    document = json.loads(json.dumps(asdict(audited), allow_nan=False))
    assert document["validations"] == list(map(asdict, audited.validations))
    assert document["results"] == list(map(asdict, audited.results))
    assert document["verdict"] == "failed"
    of_suite = [result for result in document["results"] if result["suite"] == "mine"]
    assert len(of_suite) == sum(len(validation["results"]) for validation in document["validations"]) == 3
    assert document["results"][-3]["observed"] == "Infinity"


def test_each_output_is_judged_by_its_own_suite(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any], declared: Declared
) -> None:
    few = aggregates.iloc[:1].assign(events=0)
    frames = {"all": aggregates, "few": few, "unjudged": few.iloc[:0]}
    audited = audit(metrics, frames, {"all": declared(AT_LEAST_ONE)}, **run)
    assert audited.verdict == "passed"
    audited = audit(metrics, frames, {"few": declared(AT_LEAST_ONE)}, **run)
    assert [(failure.judged, failure.suite) for failure in failures(audited)] == [("few", "mine")]
    assert "FAILED   mine few " in text_of(audited)


def test_outputs_that_share_a_suite_have_the_metrics_judged_once(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any], declared: Declared
) -> None:
    late = {
        "type": "expect_column_values_to_be_between",
        "kwargs": {"column": "OutputWatermarkDelaySeconds", "max_value": 12.5},
        "meta": {"asset": "metrics"},
    }
    shared = declared(late, AT_LEAST_ONE)
    audited = audit(
        metrics, {"one": aggregates, "two": aggregates}, {"one": shared, "two": declared(late, AT_LEAST_ONE)}, **run
    )
    mine = [(result.judged, result.expectation) for result in audited.results if result.suite == "mine"]
    assert mine == [
        ("metrics", "expect_column_values_to_be_between"),
        ("one", "expect_column_values_to_be_between"),
        ("two", "expect_column_values_to_be_between"),
    ]
    assert audited.verdict == "passed"


def test_the_audit_is_quiet_even_when_an_evaluation_fails(
    metrics: pd.DataFrame,
    aggregates: pd.DataFrame,
    run: dict[str, Any],
    declared: Declared,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    audit(metrics, {ALIAS: aggregates.drop(columns="events")}, {ALIAS: declared(AT_LEAST_ONE)}, **run)
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_an_audit_of_many_rows_makes_no_more_calls_than_one_of_few(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any]
) -> None:
    many = pd.concat([aggregates.assign(deviceId=f"device-{n}") for n in range(250)], ignore_index=True)
    many = many.drop_duplicates(["windowEnd", "deviceId"])
    many = pd.concat([many, many.assign(deviceId=many["deviceId"] + "b")], ignore_index=True)
    assert len(many) == 12_000
    suite = suites.load(TELEMETRY, COLUMNS)

    def calls(rows: pd.DataFrame) -> int:
        profile = cProfile.Profile()
        with profile:
            assert audit(metrics, {ALIAS: rows}, {ALIAS: suite}, **run).verdict == "passed"
        return sum(int(entry.callcount) for entry in profile.getstats())

    calls(aggregates)
    few = calls(aggregates)
    assert calls(many) < 1.05 * few
