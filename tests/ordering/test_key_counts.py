"""What became of the events of each key in a slice: who is late, dropped or gone."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.ordering.key_counts import LONGEST_KEY, SHOWN_KEYS, KeyCounts
from recapture.time_model.partition_metrics import KeyMetrics
from recapture.time_model.policies import Judged
from recapture.time_model.string_codes import StringCodes
from recapture.time_model.verdicts import DROPPED, PROCESSED, Verdict

Event = tuple[str | None, Verdict, bool, bool, bool]
"""Key, verdict, and whether the event is early, late and out of order."""
EVENTS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from(Verdict), *[st.booleans()] * 3), max_size=60
)


def judged(events: list[Event]) -> Judged:
    verdict = np.array([event[1] for event in events], np.int8)
    early, late, out_of_order = (np.array([event[place] for event in events], bool) for place in (2, 3, 4))
    zeros = np.zeros(len(events), np.int64)
    return Judged(verdict, zeros, early, late, out_of_order, zeros, zeros, zeros)


def counted(*chunks: list[Event], columns: tuple[str, ...] = ("deviceId",)) -> KeyCounts:
    counts = KeyCounts(columns)
    for events in chunks:
        keys = {"deviceId": pa.array([event[0] for event in events], pa.string())}
        counts.observe(keys, judged(events), slice(0, len(events)))
    return counts


def metrics(*chunks: list[Event]) -> KeyMetrics:
    result = counted(*chunks).metrics()
    assert result is not None
    return result


ON_TIME: Event = ("a", Verdict.ON_TIME, False, False, False)


def early(key: str) -> Event:
    return (key, Verdict.EARLY_DROPPED, True, False, False)


@given(EVENTS, st.integers(0, 60))
def test_the_counts_are_those_of_one_event_after_the_other(events: list[Event], cut: int) -> None:
    """Whatever the chunks are."""
    expected: dict[str | None, Counter[str]] = {}
    for key, verdict, is_early, is_late, is_out_of_order in events:
        counts = expected.setdefault(key, Counter())
        counts["events"] += 1
        counts["processed"] += verdict in PROCESSED
        counts["early"] += is_early
        counts["late"] += is_late
        counts["out_of_order"] += is_out_of_order
        counts["dropped"] += verdict in DROPPED
        counts["malformed"] += verdict is Verdict.MALFORMED
        counts["invalid_timestamp"] += verdict is Verdict.INVALID_TIMESTAMP
    table = counted(events[:cut], events[cut:]).table()
    actual = {row.pop("key"): +Counter(row) for row in table.to_pylist()}
    assert actual == {key: +counts for key, counts in expected.items()}


def test_a_key_of_which_every_event_was_dropped_is_unreached() -> None:
    result = metrics([ON_TIME, early("gone"), early("gone")], [early("a"), early("gone")])
    assert [(gone.key, gone.counts["events"], gone.counts["early"]) for gone in result.unreached] == [("gone", 3, 3)]
    assert (result.unreached_count, result.keys, result.columns) == (1, 2, ("deviceId",))


def test_the_keys_with_the_most_trouble_come_first_and_equal_ones_by_name() -> None:
    events = [early("b")] * 2 + [early("c")] * 3 + [early("a")] * 2
    assert [early.key for early in metrics(events).most["early"]] == ["c", "a", "b"]
    assert metrics(events).most["late"] == ()


def test_only_some_keys_are_kept_and_all_are_counted() -> None:
    result = metrics([early(f"{number:03}") for number in range(3 * SHOWN_KEYS)])
    assert len(result.unreached) == len(result.most["early"]) == SHOWN_KEYS
    assert (result.unreached_count, result.keys) == (3 * SHOWN_KEYS, 3 * SHOWN_KEYS)


def test_an_event_without_a_key_is_counted_but_is_no_sender() -> None:
    result = metrics([(None, Verdict.MALFORMED, False, False, False)])
    assert result.most["malformed"][0].key is None
    assert result.unreached == ()


def test_a_long_key_is_cut() -> None:
    (row,) = metrics([early("x" * 1000)]).unreached
    assert row.key == "x" * LONGEST_KEY


def test_without_a_key_nothing_is_counted() -> None:
    assert counted([ON_TIME], columns=()).metrics() is None


@pytest.mark.parametrize("rows", [slice(1, 3), np.array([1, 2])])
def test_only_events_that_arrived_in_the_slice_count(rows: Any) -> None:
    events = [early("before"), early("x"), ON_TIME, early("after")]
    counts = KeyCounts(("deviceId",))
    counts.observe({"deviceId": pa.array([event[0] for event in events])}, judged(events), rows)
    assert counts.table()["key"].to_pylist() == ["a", "x"]


def test_the_parts_of_a_key_are_joined() -> None:
    counts = KeyCounts(("site", "number"))
    keys = {"site": pa.array(["s", None]), "number": pa.array([1, 2])}
    counts.observe(keys, judged([ON_TIME, ON_TIME]), slice(0, 2))
    assert counts.table()["key"].to_pylist() == ["NULL, 2", "s, 1"]


def test_counts_are_equal_whatever_the_numbers_of_their_keys() -> None:
    first, second = counted([ON_TIME, early("b")]), counted([early("b")], [ON_TIME])
    assert first == second
    assert first != counted([early("b")])


def test_keys_that_come_with_numbers_are_counted_by_them() -> None:
    codes, counts = StringCodes(), KeyCounts(("deviceId",))
    chunks: list[list[Event]] = [[early("b"), ON_TIME], [early("c"), (None, Verdict.MALFORMED, False, False, False)]]
    for events in chunks:
        keys = {"deviceId": codes.encode(pa.array([event[0] for event in events]))}
        counts.observe(keys, judged(events), slice(0, len(events)))
    assert counts == counted(*chunks)
