"""The sentences about expectations: what holds, what is wrong and by how much, and where the worst of it is."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from recapture.quality import sentences, suites
from recapture.quality.audit import Audit, Result
from recapture.quality.signatures import SIGNATURES
from recapture.quality.suites import Expectation
from tests.paths import ROOT
from tests.quality.staging import ALIAS, COLUMNS, Declared, audit

TELEMETRY = ROOT / "expectations" / "telemetry.json"
MALFORMED = {"type": "expect_share_of_malformed_events_to_be_at_most", "kwargs": {"max_value": 0.01}}
LATE = {"type": "expect_share_of_late_events_to_be_at_most", "kwargs": {"max_value": 0.1, "mostly": 0.9}}
TEMPERATURE = {"column": "avgTemperature", "max_value": 60}
BETWEEN = {"type": "expect_column_values_to_be_between", "kwargs": TEMPERATURE}


def audited_with(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, suite: suites.Suite | None, run: dict[str, Any]
) -> Audit:
    return audit(metrics, {ALIAS: aggregates}, {} if suite is None else {ALIAS: suite}, **run)


def failed(audited: Audit) -> Iterator[Result]:
    return (result for result in audited.results if not result.success and result.severity != "info")


def malformed(metrics: pd.DataFrame, rows: int, events: int) -> pd.DataFrame:
    """Return the metrics with malformed events instead of events on time, in the last rows; the last has one more."""
    counts = [0] * (len(metrics) - rows) + [events] * rows
    counts[-1] += 1
    return metrics.assign(malformed=counts, DeserializationError=counts, on_time=metrics["on_time"] - counts)


def test_a_share_that_is_too_large_is_stated_with_the_worst_slices_and_partitions(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any], declared: Declared
) -> None:
    suite = declared({**MALFORMED, "description": "few events are malformed"})
    (failure,) = failed(audited_with(malformed(metrics, 3, 5), aggregates, suite, run))
    assert failure.title == "few events are malformed"
    assert failure.sentence == (
        "26.7 % of the events are malformed (at most 1 % expected): 3 of 4 slices and partitions (75 %), such as "
        "slice 2026-03-01T11:00:00Z, partition 1, 30 % malformed; slice 2026-03-01T10:00:00Z, partition 1, "
        "25 % malformed; slice 2026-03-01T11:00:00Z, partition 0, 25 % malformed"
    )


def test_a_share_that_some_may_exceed_says_how_many_may_not(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any], declared: Declared
) -> None:
    (failure,) = failed(audited_with(metrics, aggregates, declared({**LATE}), run))
    assert failure.sentence.startswith(
        "15 % of the events are late (at most 10 % expected in at least 90 % of the slices and partitions): 4 of 4 "
    )


def test_rows_that_are_not_as_expected_are_named_by_their_times_and_keys(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any], declared: Declared
) -> None:
    aggregates.loc[[3, 4], "avgTemperature"] = [61.5, 99.0]
    rows = "2 of 48 rows (4.2 %), such as windowEnd 2026-03-01T10:10:00Z, deviceId b, avgTemperature 61.5; "
    suite = declared({**BETWEEN, "description": "no room is too warm"})
    (failure,) = failed(audited_with(metrics, aggregates, suite, run))
    assert failure.sentence.startswith(f"not met: no room is too warm (avgTemperature: at most 60 expected): {rows}")
    suite = declared({**BETWEEN, "description": "no room is too warm", "meta": {"failure": "rooms are too warm"}})
    (failure,) = failed(audited_with(metrics, aggregates, suite, run))
    assert failure.sentence.startswith(f"rooms are too warm (avgTemperature: at most 60 expected): {rows}")
    (failure,) = failed(audited_with(metrics, aggregates, declared(BETWEEN), run))
    assert failure.sentence.startswith(
        f"not met: expect column values to be between: column avgTemperature, max_value 60: {rows}"
    )


def test_an_expectation_on_a_whole_column_says_what_was_observed(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any], declared: Declared
) -> None:
    kwargs = {"min_value": {"$PARAMETER": "slice_count"}, "max_value": 40}
    suite = declared({"type": "expect_table_row_count_to_be_between", "kwargs": kwargs, "description": "as many rows"})
    (failure,) = failed(audited_with(metrics, aggregates, suite, run))
    assert failure.sentence == "not met: as many rows (at least 2, at most 40 expected): observed 48"


BROKEN = {
    "expect_table_row_count_to_be_between": "slices were not counted (at least 3 expected): observed 2",
    "expect_column_unique_value_count_to_be_between": (
        "the metrics do not cover the slices of the run (slice_start: at least 3, at most 3 expected): observed 2"
    ),
    "expect_events_to_be_conserved": (
        "events have no verdict or several, or a count is missing: 1 of 2 slices and partitions (50 %), such as slice "
        "2026-03-01T10:00:00Z, partition 0, unaccounted_events -1"
    ),
    "expect_capture_to_be_complete": (
        "Capture may not have written everything that arrived: 2 of 2 slices and partitions (100 %), such as slice "
        "2026-03-01T10:00:00Z, partition 0; slice 2026-03-01T11:00:00Z, partition 0"
    ),
    "expect_share_of_late_events_to_be_at_most": (
        "95 % of the events are late (at most 50 % expected in at least 50 % of the slices and partitions): 2 of 2 "
        "slices and partitions (100 %), such as slice 2026-03-01T10:00:00Z, partition 0, 95 % late; slice "
        "2026-03-01T11:00:00Z, partition 0, 95 % late"
    ),
    "expect_sequence_gaps_to_be_at_most": (
        "sequence numbers are missing: 2 of 2 slices and partitions (100 %), such as slice 2026-03-01T10:00:00Z, "
        "partition 0, gaps 2; slice 2026-03-01T11:00:00Z, partition 0, gaps 2"
    ),
}


def test_every_built_in_expectation_says_what_is_wrong_and_not_what_should_be(
    metrics: pd.DataFrame, aggregates: pd.DataFrame, run: dict[str, Any]
) -> None:
    broken = metrics[metrics["partition"] == "0"].reset_index(drop=True)
    broken = broken.assign(complete=False, whole=False, SequenceGaps=2, LateInputEvents=19, DuplicateEvents=1)
    broken = broken.assign(InputEvents=20, on_time=[14, 13], malformed=0, invalid_timestamp=0)
    audited = audited_with(broken, aggregates, None, run | {"slice_count": 3})
    wrong = {result.expectation: result.sentence for result in audited.results if not result.success}
    assert {name: wrong[name] for name in BROKEN} == BROKEN
    titles = tuple(result.title for result in audited.results)
    assert not any(sentence.startswith(titles) for sentence in wrong.values())


def test_every_expectation_of_the_sample_says_what_is_wrong() -> None:
    """Recapture's own expectations say it themselves."""
    for expectation in suites.load(TELEMETRY, COLUMNS).expectations:
        assert expectation.failure or expectation.type in SIGNATURES


def test_an_expectation_without_a_description_is_shown_by_its_type_and_arguments() -> None:
    expectation = Expectation(
        "mine.json: expectation 1",
        "expect_column_values_to_be_between",
        "aggregates",
        "critical",
        {"column": "events", "min_value": 1, "max_value": {"$PARAMETER": "slice_count"}},
    )
    assert sentences.title(expectation) == (
        "expect column values to be between: column events, min_value 1, max_value slice_count"
    )


def test_rows_that_may_fail_are_counted_all_the_same() -> None:
    expectation = Expectation("mine.json: expectation 1", "expect_it", "aggregates", "critical", {}, "it is so")
    result = {"element_count": 12_000, "unexpected_count": 120}
    assert sentences.success(expectation, result, [None, {"a": 1, "b": "x"}]) == (
        "it is so (120 of 12,000 rows (1 %), such as null; a 1, b x)"
    )
    assert sentences.success(expectation, {"element_count": 1, "unexpected_count": 0}, []) == (
        "it is so (true for 1 row)"
    )
