"""The audit: what blocks a run, what marks it, and what it only notes."""

import cProfile
import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recapture.errors import DefinitionError
from recapture.quality import suites
from recapture.quality.audit import Audit, Result, reason_of, text_of
from recapture.quality.checkpoint import require_valid_arguments
from tests.paths import ROOT
from tests.quality.staging import ALIAS, COLUMNS, Declared, SoundRun, audit

TELEMETRY = ROOT / "expectations" / "telemetry.json"
AT_LEAST_ONE = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "events", "min_value": 1}}


def failures(audited: Audit) -> list[Result]:
    return [result for result in audited.results if not result.success]


def test_a_sound_run_passes(sound: SoundRun) -> None:
    audited = sound.audit(suites.load(TELEMETRY, COLUMNS))
    assert audited.verdict == "passed"
    assert failures(audited) == []
    assert reason_of(audited) == ""


def test_every_declared_expectation_has_a_result_in_the_declared_order(sound: SoundRun) -> None:
    suite = suites.load(TELEMETRY, COLUMNS)
    audited = sound.audit(suite)
    assert [result.expectation for result in audited.results if result.suite == suite.name] == [
        expectation.type
        for asset in ("metrics", "aggregates")
        for expectation in suite.expectations
        if expectation.asset == asset
    ]


def test_the_built_in_suite_always_runs(sound: SoundRun) -> None:
    assert {result.suite for result in sound.audit().results} == {"run_metrics"}


@pytest.mark.parametrize(
    ("severity", "verdict"), [("critical", "failed"), ("warning", "passed with warnings"), ("info", "passed")]
)
def test_critical_blocks_warning_marks_and_info_notes(
    sound: SoundRun, declared: Declared, severity: str, verdict: str
) -> None:
    sound.aggregates.loc[3, "events"] = 0
    audited = sound.audit(declared({**AT_LEAST_ONE, "severity": severity}))
    assert audited.verdict == verdict
    (failure,) = failures(audited)
    assert (failure.severity, failure.unexpected_count, failure.observed) == (severity, 1, [0])
    assert failure.sentence.endswith(
        ": 1 of 48 rows (2.1 %), such as windowEnd 2026-03-01T10:10:00Z, deviceId b, events 0"
    )


@pytest.mark.parametrize("change", [1, -1])
def test_a_broken_law_blocks_and_names_slice_and_partition(sound: SoundRun, change: int) -> None:
    sound.metrics.loc[3, "on_time"] += change
    audited = sound.audit()
    assert audited.verdict == "failed"
    assert reason_of(audited) == (
        "run_metrics: events have no verdict or several, or a count is missing: 1 of 4 slices and partitions (25 %), "
        f"such as slice 2026-03-01T11:00:00Z, partition 1, unaccounted_events {-change}"
    )


def test_partitions_without_events_pass(sound: SoundRun) -> None:
    sound.metrics[sound.metrics.columns.difference(["slice_start", "input", "partition", "complete", "whole"])] = 0
    assert sound.audit().verdict == "passed"


def test_an_evaluation_error_blocks_whatever_its_severity(sound: SoundRun, declared: Declared) -> None:
    on_strings = {**AT_LEAST_ONE, "kwargs": {"column": "deviceId", "min_value": 1}, "severity": "info"}
    audited = sound.audit(declared(on_strings, AT_LEAST_ONE))
    assert audited.verdict == "failed"
    (failure,) = failures(audited)
    assert failure.severity == "critical"
    assert "could not be evaluated" in failure.sentence
    assert "must either be None or of the same type" in failure.sentence


def test_a_missing_column_blocks(sound: SoundRun, declared: Declared) -> None:
    del sound.aggregates["events"]
    audited = sound.audit(declared(AT_LEAST_ONE))
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


def test_rows_outside_the_run_block_the_sample_pipeline(sound: SoundRun) -> None:
    sound.aggregates.loc[0, "windowEnd"] = pd.Timestamp(sound.run.run_start)
    audited = sound.audit(suites.load(TELEMETRY, COLUMNS))
    assert reason_of(audited).startswith(
        "telemetry: windows end outside (from, to] (windowEnd: more than 2026-03-01T10:00:00Z, at most "
        "2026-03-01T12:00:00Z expected): 1 of 48 rows (2.1 %), such as windowEnd 2026-03-01T10:00:00Z, deviceId a"
    )


@pytest.mark.parametrize("dtype", ["datetime64[ns]", "datetime64[us]", "datetime64[us, UTC]"])
def test_times_without_a_zone_are_utc(sound: SoundRun, dtype: str) -> None:
    ends = sound.aggregates["windowEnd"].dt.tz_localize(None).astype(dtype.replace(", UTC", ""))
    sound.aggregates["windowEnd"] = ends.dt.tz_localize("UTC") if dtype.endswith("UTC]") else ends
    assert sound.audit(suites.load(TELEMETRY, COLUMNS)).verdict == "passed"


def test_without_rows_only_the_table_itself_is_judged(sound: SoundRun, declared: Declared) -> None:
    mean = {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "events", "min_value": 1}}
    rows = {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}, "severity": "warning"}
    sound.aggregates = sound.aggregates.iloc[:0]
    audited = sound.audit(declared(mean, AT_LEAST_ONE, rows))
    assert audited.verdict == "passed with warnings"
    first, second, third = (result.sentence for result in audited.results[-3:])
    assert first.endswith(" (no rows to judge)")
    assert second.endswith(" (no rows to judge)")
    assert third == "not met: expect table row count to be between: min_value 1: observed 0"


def test_the_stored_audit_is_valid_json_with_every_result(sound: SoundRun, declared: Declared) -> None:
    sound.aggregates["avgTemperature"] = [np.inf, -np.inf, np.nan] * 16
    hottest = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "avgTemperature", "max_value": 60}}
    latest = {"type": "expect_column_max_to_be_between", "kwargs": {"column": "windowEnd", "max_value": "2020-01-01"}}
    between = {**AT_LEAST_ONE, "kwargs": {"column": "avgTemperature", "max_value": 60}}
    audited = sound.audit(declared(hottest, latest, between))
    document = json.loads(json.dumps(asdict(audited), allow_nan=False))
    assert document["validations"] == list(map(asdict, audited.validations))
    assert document["results"] == list(map(asdict, audited.results))
    assert document["verdict"] == "failed"
    suite_results = [result for result in document["results"] if result["suite"] == "mine"]
    assert len(suite_results) == sum(len(validation["results"]) for validation in document["validations"]) == 3
    assert document["results"][-3]["observed"] == "Infinity"


def test_each_output_is_judged_by_its_own_suite(sound: SoundRun, declared: Declared) -> None:
    few = sound.aggregates.iloc[:1].assign(events=0)
    frames = {"all": sound.aggregates, "few": few, "unjudged": few.iloc[:0]}
    assert audit(sound.metrics, frames, {"all": declared(AT_LEAST_ONE)}, sound.run).verdict == "passed"
    audited = audit(sound.metrics, frames, {"few": declared(AT_LEAST_ONE)}, sound.run)
    assert [(failure.judged, failure.suite) for failure in failures(audited)] == [("few", "mine")]
    assert "FAILED   mine few " in text_of(audited)


def test_outputs_that_share_a_suite_have_the_metrics_judged_once(sound: SoundRun, declared: Declared) -> None:
    late = {
        "type": "expect_column_values_to_be_between",
        "kwargs": {"column": "OutputWatermarkDelaySeconds", "max_value": 12.5},
        "meta": {"asset": "metrics"},
    }
    frames = {"one": sound.aggregates, "two": sound.aggregates}
    audited = audit(sound.metrics, frames, {alias: declared(late, AT_LEAST_ONE) for alias in frames}, sound.run)
    mine = [(result.judged, result.expectation) for result in audited.results if result.suite == "mine"]
    assert mine == [(judged, "expect_column_values_to_be_between") for judged in ("metrics", *frames)]
    assert audited.verdict == "passed"


def test_the_audit_is_quiet_even_when_an_evaluation_fails(
    sound: SoundRun, declared: Declared, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    del sound.aggregates["events"]
    sound.audit(declared(AT_LEAST_ONE))
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_an_audit_of_many_rows_makes_no_more_calls_than_one_of_few(sound: SoundRun) -> None:
    few = sound.aggregates
    many = pd.concat([few.assign(deviceId=f"device-{n}") for n in range(250)], ignore_index=True)
    many = many.drop_duplicates(["windowEnd", "deviceId"])
    many = pd.concat([many, many.assign(deviceId=many["deviceId"] + "b")], ignore_index=True)
    assert len(many) == 12_000
    suite = suites.load(TELEMETRY, COLUMNS)

    def calls(rows: pd.DataFrame) -> int:
        profile = cProfile.Profile()
        with profile:
            assert audit(sound.metrics, {ALIAS: rows}, {ALIAS: suite}, sound.run).verdict == "passed"
        return sum(int(entry.callcount) for entry in profile.getstats())

    calls(few)
    calls_for_few = calls(few)
    assert calls(many) < 1.05 * calls_for_few
