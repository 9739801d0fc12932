"""The checks on keys: the events of each key reach the query, and no key disappears from the rows."""

from typing import Any

from recapture.quality.key_checks import VanishedKeys, unreached_result, vanished_result
from recapture.time_model.partition_metrics import KeyEvents, KeyMetrics, PartitionMetrics
from recapture.time_model.verdicts import TROUBLES

NINE, TEN = "2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z"


def row(start: str, *unreached: dict[str, Any], count: int | None = None) -> PartitionMetrics:
    keys = tuple(KeyEvents(trouble.pop("key"), dict.fromkeys(TROUBLES, 0) | trouble) for trouble in unreached)
    return without_key(start, 300, KeyMetrics(("deviceId",), 9, {}, keys, len(keys) if count is None else count))


def without_key(start: str, events: int, keys: KeyMetrics | None = None) -> PartitionMetrics:
    return PartitionMetrics(start, "telemetry", "0", {"InputEvents": events}, keys=keys)


def test_a_key_of_which_no_event_was_processed_is_named_with_the_reason() -> None:
    rows = [
        row(NINE, {"key": "T-009", "events": 240, "early": 240}),
        row(TEN, {"key": "T-009", "events": 1, "late": 1}),
    ]
    result = unreached_result(rows, None)
    assert (result.success, result.severity, result.observed) == (False, "warning", [NINE, TEN])
    assert result.sentence == (
        "no event of these keys (deviceId) reached the query: T-009 (241 events, 240 early); correct the clock, which "
        "is ahead"
    )


def test_the_keys_with_the_most_events_come_first_and_all_are_counted() -> None:
    keys = [{"key": f"k{number}", "events": number, "late": number} for number in range(1, 9)]
    sentence = unreached_result([row(TEN, *keys, count=300)], None).sentence
    assert "k8 (8 events, all late); k7 (7 events, all late)" in sentence
    assert "in all 300 keys, counted in each slice and partition" in sentence


def test_without_a_key_nothing_is_judged() -> None:
    rows = [without_key(TEN, 3), without_key(NINE, 0)]
    result = unreached_result(rows, None)
    assert (result.success, result.proved) == (True, False)
    assert result.sentence.endswith("(not judged: the query has no key of OVER or GROUP BY that is a column)")
    assert unreached_result(rows[1:], None).sentence.endswith("(not judged: no event arrived)")
    assert unreached_result([row(TEN)], None).proved


def test_a_key_that_disappears_is_named() -> None:
    result = vanished_result("rows", [VanishedKeys(TEN, ("a", "b"), 2)], None, why_unjudged=None)
    assert (result.judged, result.success, result.severity) == ("rows", False, "warning")
    assert result.sentence.startswith(
        "keys have no rows, but had some in each of the three slices before: a, b in slice 2026-03-01T10:00:00Z; look"
    )
    many = VanishedKeys(TEN, tuple("abcdefgh"), 40)
    assert "a, b, c, d, e and 35 more in slice" in vanished_result("rows", [many], None, why_unjudged=None).sentence


def test_without_earlier_slices_no_key_can_disappear() -> None:
    result = vanished_result("rows", [], "info", why_unjudged="fewer than 3 slices right before are published")
    assert (result.success, result.proved, result.severity) == (True, False, "info")
