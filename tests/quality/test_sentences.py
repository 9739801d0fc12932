"""The sentences about expectations: what holds, what is wrong and by how much, and where the worst of it is."""

from collections.abc import Iterator

import pandas as pd

from recapture.quality import sentences, suites
from recapture.quality.audit import Audit, Result
from recapture.quality.signatures import SIGNATURES
from recapture.quality.suites import Expectation
from tests.paths import ROOT
from tests.quality.staging import COLUMNS, Declared, SoundRun

TELEMETRY = ROOT / "expectations" / "telemetry.json"
MALFORMED = {"type": "expect_share_of_malformed_events_to_be_at_most", "kwargs": {"max_value": 0.01}}
LATE = {"type": "expect_share_of_late_events_to_be_at_most", "kwargs": {"max_value": 0.1, "mostly": 0.9}}
TEMPERATURE = {"column": "avgTemperature", "max_value": 60}
BETWEEN = {"type": "expect_column_values_to_be_between", "kwargs": TEMPERATURE}


def failed(audited: Audit) -> Iterator[Result]:
    return (result for result in audited.results if not result.success and result.severity != "info")


def malformed(metrics: pd.DataFrame, rows: int, events: int) -> pd.DataFrame:
    """Return the metrics with malformed events instead of events on time, in the last rows; the last has one more."""
    counts = [0] * (len(metrics) - rows) + [events] * rows
    counts[-1] += 1
    return metrics.assign(malformed=counts, DeserializationError=counts, on_time=metrics["on_time"] - counts)


def test_a_share_that_is_too_large_is_stated_with_the_worst_slices_and_partitions(
    sound: SoundRun, declared: Declared
) -> None:
    suite = declared({**MALFORMED, "description": "few events are malformed"})
    sound.metrics = malformed(sound.metrics, 3, 5)
    (failure,) = failed(sound.audit(suite))
    assert failure.title == "few events are malformed"
    assert failure.sentence == (
        "26.7 % of the events are malformed (at most 1 % expected): 3 of 4 slices and partitions (75 %), such as "
        "slice 2026-03-01T11:00:00Z, partition 1, 30 % malformed; slice 2026-03-01T10:00:00Z, partition 1, "
        "25 % malformed; slice 2026-03-01T11:00:00Z, partition 0, 25 % malformed"
    )


def test_a_share_that_some_may_exceed_says_how_many_may_not(sound: SoundRun, declared: Declared) -> None:
    (failure,) = failed(sound.audit(declared(LATE)))
    assert failure.sentence.startswith(
        "15 % of the events are late (at most 10 % expected in at least 90 % of the slices and partitions): 4 of 4 "
    )


def test_rows_that_are_not_as_expected_are_named_by_their_times_and_keys(sound: SoundRun, declared: Declared) -> None:
    sound.aggregates.loc[[3, 4], "avgTemperature"] = [61.5, 99.0]
    rows = "2 of 48 rows (4.2 %), such as windowEnd 2026-03-01T10:10:00Z, deviceId b, avgTemperature 61.5; "
    suite = declared({**BETWEEN, "description": "no room is too warm"})
    (failure,) = failed(sound.audit(suite))
    assert failure.sentence.startswith(f"not met: no room is too warm (avgTemperature: at most 60 expected): {rows}")
    suite = declared({**BETWEEN, "description": "no room is too warm", "meta": {"failure": "rooms are too warm"}})
    (failure,) = failed(sound.audit(suite))
    assert failure.sentence.startswith(f"rooms are too warm (avgTemperature: at most 60 expected): {rows}")
    (failure,) = failed(sound.audit(declared(BETWEEN)))
    assert failure.sentence.startswith(
        f"not met: expect column values to be between: column avgTemperature, max_value 60: {rows}"
    )


def test_an_expectation_on_a_whole_column_says_what_was_observed(sound: SoundRun, declared: Declared) -> None:
    kwargs = {"min_value": {"$PARAMETER": "slice_count"}, "max_value": 40}
    suite = declared({"type": "expect_table_row_count_to_be_between", "kwargs": kwargs, "description": "as many rows"})
    (failure,) = failed(sound.audit(suite))
    assert failure.sentence == "not met: as many rows (at least 2, at most 40 expected): observed 48"


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
