"""A message may hold several events: they share its number and arrival, and a duplicate is a whole message."""

import json
from pathlib import Path

from recapture.tools.sample import SampleEvent
from tests.ordering.tasks import (
    BY_ARRIVAL,
    MINUTE,
    TEN,
    at,
    only,
    put,
    put_events,
    quarantined,
    system_times,
    verdicts,
)


def several(*minutes: int) -> bytes:
    return b"[" + b",".join(at(TEN + minute * MINUTE) for minute in minutes) + b"]"


def test_each_event_of_a_message_is_judged_and_counted(tmp_path: Path) -> None:
    put(tmp_path, TEN + 10 * MINUTE, [(1, at(TEN + 5 * MINUTE)), (2, several(7, 6)), (3, at(TEN + 9 * MINUTE))])
    rows, counted = only(tmp_path)
    assert system_times(rows) == [300, 420, 420, 540]
    assert verdicts(counted) == {"on_time": 3, "out_of_order_adjusted": 1}
    assert (counted.events, counted.gaps, counted.duplicates) == (4, 0, 0)


def test_a_message_that_arrives_again_is_one_duplicate(tmp_path: Path) -> None:
    first, again, last = (
        SampleEvent(number, str(number), TEN + 9 * MINUTE, body)
        for number, body in ((1, several(5, 6)), (2, several(7, 8, 9)), (3, several(8)))
    )
    put_events(tmp_path, TEN + 10 * MINUTE, [first, again])
    put_events(tmp_path, TEN + 15 * MINUTE, [again, last])
    _, counted = only(tmp_path, BY_ARRIVAL, None)
    assert verdicts(counted) == {"on_time": 6}
    assert (counted.duplicates, counted.gaps) == (1, 0)


def test_an_event_of_a_message_that_cannot_be_read_is_quarantined_by_itself(tmp_path: Path) -> None:
    body = json.dumps([{"eventTime": (TEN + 5 * MINUTE).isoformat()}, 7]).encode()
    put(tmp_path, TEN + 10 * MINUTE, [(1, body), (2, b"[]")])
    rows, counted = only(tmp_path)
    assert system_times(rows) == [300]
    assert [(row["sequence_number"], row["body"], row["reason"]) for row in quarantined(counted)] == [
        (1, b"7", "not a JSON object"),
        (2, b"[]", "it has no event in it"),
    ]
    assert counted.events == 3
