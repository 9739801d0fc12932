"""A slice that lost its events is not published as if nothing had happened."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.quality.slice_checks import (
    COUNTS,
    CRITICAL_UNUSABLE_SHARE,
    DROPPED,
    PROCESSED,
    WARNING_UNUSABLE_SHARE,
    Example,
    InputCounts,
    SliceCounts,
    explanation,
    results,
)
from recapture.time_model.metrics import VERDICTS

START = "2026-03-01T10:00:00Z"
NO_JSON = Example("malformed", "not a JSON object", b"deviceId,temperature\na,1")
counted = st.dictionaries(st.sampled_from(VERDICTS), st.integers(0, 300))


def counts_of(rows: int = 1, duplicates: int = 0, **verdicts: int) -> SliceCounts:
    return SliceCounts(START, [input_counts("telemetry", duplicates, **verdicts)], {"aggregates": rows})


def input_counts(alias: str, duplicates: int = 0, **verdicts: int) -> InputCounts:
    counts = dict.fromkeys(VERDICTS, 0) | verdicts | {"DuplicateEvents": duplicates}
    return InputCounts(alias, counts | {"InputEvents": sum(verdicts.values()) + duplicates})


def failures(
    *slices: SliceCounts, severities: Mapping[str, Any] | None = None, short_windows: bool = True
) -> dict[str, str]:
    """Return the severity of each check that fails."""
    judged = results(slices, lambda start, alias: NO_JSON, severities or {}, short_windows)
    assert [result.expectation for result in judged if result.judged != "aggregates"] == [
        "events_can_be_used",
        "events_reach_the_query",
    ]
    return {result.expectation: result.severity for result in judged if not result.success}


@pytest.mark.parametrize(
    ("slice_", "expected"),
    [
        (counts_of(0), {}),
        (counts_of(0, duplicates=5), {}),
        (counts_of(on_time=100), {}),
        (counts_of(on_time=99, malformed=1), {}),
        (counts_of(on_time=98, malformed=2), {"events_can_be_used": "warning"}),
        (counts_of(on_time=10, malformed=45, invalid_timestamp=45), {"events_can_be_used": "warning"}),
        (counts_of(on_time=9, malformed=45, invalid_timestamp=46), {"events_can_be_used": "critical"}),
        (counts_of(0, malformed=677), {"events_can_be_used": "critical"}),
        (counts_of(0, late_dropped=5), {"events_reach_the_query": "critical"}),
        (counts_of(0, on_time=5), {"query_returns_rows": "warning"}),
        (counts_of(0, late_dropped=95, late_adjusted=5), {"query_returns_rows": "warning"}),
        (counts_of(0, on_time=99), {"query_returns_rows": "warning"}),
        (counts_of(0, on_time=60, late_adjusted=40), {"query_returns_rows": "critical"}),
    ],
)
def test_each_way_to_lose_everything_has_its_check(slice_: SliceCounts, expected: dict[str, str]) -> None:
    assert failures(slice_) == expected


@given(verdicts=counted, rows=st.integers(0, 2))
def test_a_slice_with_events_and_without_rows_never_passes(verdicts: dict[str, int], rows: int) -> None:
    slice_ = counts_of(rows, **verdicts)
    failed = failures(slice_)
    total = sum(verdicts.values())
    unusable = verdicts.get("malformed", 0) + verdicts.get("invalid_timestamp", 0)
    assert bool(failed) or not total or rows or not slice_.events
    assert ("events_can_be_used" in failed) == (total > 0 and unusable / total > WARNING_UNUSABLE_SHARE)
    if total and not rows and not any(verdicts.get(name) for name in PROCESSED):
        dropped = any(verdicts.get(name) for name in DROPPED)
        assert "critical" in failed.values() or (dropped and unusable / total <= CRITICAL_UNUSABLE_SHARE)


def test_each_input_is_judged_by_itself_and_its_message_names_it() -> None:
    """Many good events of one input do not hide that another one lost all of its own."""
    lost = SliceCounts(START, [input_counts("a", on_time=1000), input_counts("b", malformed=3)], {"aggregates": 1})
    late = SliceCounts(START, [input_counts("a", on_time=1000), input_counts("b", late_dropped=3)], {"aggregates": 1})
    asked = []

    def example(start: str, alias: str) -> Example:
        asked.append((start, alias))
        return NO_JSON

    judged = {result.expectation: result for result in results([lost, late], example, {})}
    assert asked == [(START, "b")]
    unusable, dropped = judged["events_can_be_used"], judged["events_reach_the_query"]
    assert (unusable.severity, dropped.severity) == ("critical", "critical")
    assert unusable.sentence.startswith(
        "events cannot be used (at most 1 % expected): 1 of 2 slices with events (50 %): "
        f"in slice {START} of input b, 3 malformed of 3 events (100 %)"
    )
    assert (
        f"in slice {START} of input b, the policies dropped all usable events (3 late_dropped of 3)" in dropped.sentence
    )
    assert judged["query_returns_rows"].success


def test_windows_that_end_in_few_slices_warn_however_many_events_there_are() -> None:
    assert failures(counts_of(0, on_time=1000), short_windows=False) == {"query_returns_rows": "warning"}


def test_one_bad_slice_of_many_is_enough() -> None:
    assert failures(counts_of(on_time=1000), counts_of(0, malformed=3))["events_can_be_used"] == "critical"


def test_a_suite_chooses_the_severity_of_a_check_and_the_strictest_choice_holds_for_events() -> None:
    silent = counts_of(0, on_time=5)
    lenient = {"aggregates": {"query_returns_rows": "info"}}
    assert failures(silent, severities=lenient) == {"query_returns_rows": "info"}
    dropped = counts_of(0, late_dropped=5)
    two = {"a": {"events_reach_the_query": "info"}, "b": {"events_reach_the_query": "warning"}}
    assert failures(dropped, severities=two) == {"events_reach_the_query": "warning"}


def test_an_output_that_may_have_no_rows_is_not_judged_by_them() -> None:
    judged = results([counts_of(0, on_time=500)], lambda start, alias: NO_JSON, {}, True, {"aggregates"})
    assert [result.expectation for result in judged] == ["events_can_be_used", "events_reach_the_query"]
    assert all(result.success for result in judged)


def test_the_sentence_says_how_many_events_of_which_slice_and_why() -> None:
    (failure,) = [
        result
        for result in results([counts_of(0, malformed=677)], lambda start, alias: NO_JSON, {})
        if not result.success
    ]
    assert failure.sentence == (
        "events cannot be used (at most 1 % expected): 1 of 1 slice with events (100 %): in slice "
        "2026-03-01T10:00:00Z, 677 malformed of 677 events (100 %): not a JSON object; the body is not a JSON object "
        "(it starts with 'deviceId,temperature\\na,1'): "
        "if the blobs are not those of Event Hubs Capture, try input.format IotHub, ServiceBus, Json or Csv; if the "
        "bodies are CSV, set input.body_format to Csv"
    )


def test_a_time_under_another_name_or_in_another_unit_is_explained_with_the_existing_fields() -> None:
    body = json.dumps({"deviceId": "a", "ts": 1_772_359_200_000}).encode()
    assert explanation(Example("invalid_timestamp", "eventTime is missing or null", body)) == (
        "eventTime is missing or null; its fields are deviceId, ts; correct the field of TIMESTAMP BY, which must be "
        "an ISO 8601 time; ts looks like milliseconds since 1970: TIMESTAMP BY DATEADD(millisecond, ts, "
        "'1970-01-01T00:00:00Z')"
    )


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        (b"\x1f\x8b\x08", "looks like gzip"),
        (b"Obj\x01", "looks like an Avro file"),
        (b'{"a": 1', "starts like JSON but is not valid ('{\"a\": 1')"),
        (b"\xff\xfe", "starts with '\\\\xff\\\\xfe'"),
    ],
)
def test_a_body_that_is_not_json_is_shown_with_a_guess_at_its_format(body: bytes, hint: str) -> None:
    assert hint in explanation(Example("malformed", "not a JSON object", body))


def test_a_body_that_the_input_says_is_avro_is_not_said_to_look_like_avro() -> None:
    example = Example("malformed", "its schema has bytes in x", b"Obj\x01", read_as="body_format Avro")
    assert explanation(example) == (
        "its schema has bytes in x; the input has body_format Avro, and the body starts with 'Obj\\x01': check the "
        "sender, or correct the setting"
    )


def test_the_checks_need_no_other_counts_than_they_say() -> None:
    inputs = InputCounts("telemetry", dict.fromkeys(COUNTS, 1))
    assert results([SliceCounts(START, [inputs], {"aggregates": 0})], lambda start, alias: NO_JSON, {})


def test_query_returns_rows_counts_only_the_slices_whose_events_the_query_read() -> None:
    judged = results([counts_of(on_time=5), counts_of(0, late_dropped=5)], lambda start, alias: NO_JSON, {})
    sentences = {result.expectation: result.sentence for result in judged}
    assert sentences["events_can_be_used"].endswith("(true for all 2 slices with events)")
    assert sentences["query_returns_rows"].endswith("(true for 1 slice with events that the query read)")
