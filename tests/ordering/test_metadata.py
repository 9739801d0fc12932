"""Metadata and TIMESTAMP BY: what the rows have of it, and the times that it makes."""

from dataclasses import replace
from pathlib import Path

import pytest

from recapture.formats.event_hubs import CaptureInput
from recapture.model import AsaType, FirstOf, InputColumn, Instant, Metadata, MetadataColumn, Shifted
from recapture.ordering.counters import FurthestAhead
from recapture.ordering.order import schema
from recapture.time_model.slices import Slice
from recapture.time_model.ticks import TICKS_PER_MILLISECOND, UNIX_EPOCH, from_datetime, from_seconds
from recapture.tools.sample import SampleEvent
from tests.ordering.tasks import (
    HOUR,
    MINUTE,
    PLAIN,
    POLICIES,
    TEN,
    all_tasks,
    at,
    only,
    plain,
    put,
    put_events,
    quarantined,
    system_times,
    verdicts,
)

EVENT_TIME = InputColumn(("eventTime",), AsaType.DATETIME)


KEYED = (Metadata.USER, Metadata.ROUTED)
"""Metadata of which a column has a key."""
MILLISECONDS = InputColumn(("ms",), AsaType.BIGINT)


SINCE_1970 = Shifted(TICKS_PER_MILLISECOND, MILLISECONDS, Instant(UNIX_EPOCH))


def test_the_rows_have_the_metadata_that_the_query_reads(tmp_path: Path) -> None:
    """Only the metadata that the query reads is in the rows, after the body's columns."""
    columns = [MetadataColumn(kind) for kind in CaptureInput.metadata.known if kind not in KEYED]
    columns += [MetadataColumn(Metadata.USER, "firmware"), MetadataColumn(Metadata.USER)]
    query = replace(PLAIN, metadata=tuple(columns))
    arrival = TEN + 10 * MINUTE
    event = SampleEvent(7, "96", TEN + 9 * MINUTE, at(TEN + 8 * MINUTE), "key", {"firmware": 2})
    name = put_events(tmp_path, arrival, [event])
    rows, _ = only(tmp_path, query)
    assert rows.schema == schema(query)
    (row,) = rows.select([column.name for column in columns]).to_pylist()
    assert row == {
        "@PartitionId": 0,
        "@EventEnqueuedUtcTime": from_datetime(TEN + 9 * MINUTE),
        "@EventProcessedUtcTime": from_datetime(arrival),
        "@BlobName": name,
        "@BlobLastModifiedUtcTime": from_datetime(arrival),
        "@SequenceNumber": 7,
        "@Offset": "96",
        "@PartitionKey": "key",
        "@Publisher": None,
        "@User.firmware": "2",
        "@User": '{"firmware":"2"}',
    }


def test_metadata_follows_its_event_when_events_are_reordered(tmp_path: Path) -> None:
    query = replace(PLAIN, metadata=(MetadataColumn(Metadata.SEQUENCE_NUMBER), MetadataColumn(Metadata.USER, "n")))
    arrival = TEN + 10 * MINUTE
    for minute, numbers in ((0, (3, 1)), (1, (4, 2))):
        events = [SampleEvent(n, "", arrival, at(TEN + n * MINUTE), None, {"n": f"n{n}"}) for n in numbers]
        put_events(tmp_path, arrival, events, opened=TEN + minute * MINUTE)
    rows, _ = only(tmp_path, query)
    assert rows["@SequenceNumber"].to_pylist() == [1, 2, 3, 4]
    assert rows["@User.n"].to_pylist() == ["n1", "n2", "n3", "n4"]


def test_blobs_with_the_schema_of_2016_and_with_today_s_are_read_together(tmp_path: Path) -> None:
    query = replace(PLAIN, metadata=(MetadataColumn(Metadata.USER, "n"),))
    for n, with_null in enumerate((False, True)):
        arrival = TEN + (10 + n) * MINUTE
        event = SampleEvent(n, "", arrival, at(arrival), None, {"n": n})
        put_events(tmp_path, arrival, [event], properties_with_null=with_null)
    rows, _ = only(tmp_path, query)
    assert rows["@User.n"].to_pylist() == ["0", "1"]


def test_a_kafka_record_without_a_value_is_malformed_and_no_gap(tmp_path: Path) -> None:
    """A producer deletes a key by a record without a value; Capture writes it without a body, or with an empty one."""
    query = replace(PLAIN, metadata=(MetadataColumn(Metadata.USER, "op"),))
    arrival = TEN + 10 * MINUTE
    bodies = [at(TEN + 8 * MINUTE), None, b"", at(TEN + 9 * MINUTE)]
    put_events(
        tmp_path, arrival, [SampleEvent(n, "", arrival, body, None, {"op": b"d"}) for n, body in enumerate(bodies)]
    )
    rows, counted = only(tmp_path, query)
    assert rows["@User.op"].to_pylist() == ["d", "d"]
    assert verdicts(counted) == {"on_time": 2, "malformed": 2}
    assert [(row["sequence_number"], row["reason"], row["body"]) for row in quarantined(counted)] == [
        (1, "no body", None),
        (2, "not JSON", b""),
    ]
    assert (counted.events, counted.open_gaps) == (4, [])


@pytest.mark.parametrize("kind", [Metadata.PARTITION_KEY, Metadata.PARTITION_ID])
def test_disorder_may_be_judged_by_metadata(tmp_path: Path, kind: Metadata) -> None:
    query = replace(PLAIN, over=(MetadataColumn(kind),))
    arrival = TEN + 10 * MINUTE
    sent = [("a", 9), ("b", 5), (None, 5), ("a", 6), ("b", 6)]
    put_events(
        tmp_path,
        arrival,
        [SampleEvent(n, "", arrival, at(TEN + minute * MINUTE), key) for n, (key, minute) in enumerate(sent)],
    )
    rows, counted = only(tmp_path, query)
    if kind is Metadata.PARTITION_KEY:
        assert system_times(rows) == [540, 300, 540, 360]
        assert [row["reason"] for row in quarantined(counted)] == ["the OVER key @PartitionKey is missing or null"]
    else:
        assert system_times(rows) == [540] * 5


def test_the_application_time_may_come_from_several_fields(tmp_path: Path) -> None:
    """An event without a time is quarantined with the field's name; it is not malformed."""
    query = replace(PLAIN, timestamp_by=FirstOf((EVENT_TIME, SINCE_1970)))
    since = int((TEN + 3 * MINUTE).timestamp() * 1000)
    bodies = [at(TEN + 2 * MINUTE), b'{"ms":%d}' % since, b'{"ms":"x"}', b'{"ms":%d}' % 2**62, b'{"eventTime":"x"}']
    put(tmp_path, TEN + 10 * MINUTE, enumerate(bodies))
    rows, counted = only(tmp_path, query)
    assert system_times(rows) == [120, 180]
    assert [(row["verdict"], row["reason"]) for row in quarantined(counted)] == [
        ("invalid_timestamp", "ms is not a bigint"),
        ("invalid_timestamp", "ms gives a time outside the years 1 to 9999"),
        ("invalid_timestamp", "eventTime is not a time"),
    ]


def test_the_application_time_may_be_the_enqueued_time(tmp_path: Path) -> None:
    query = replace(PLAIN, timestamp_by=MetadataColumn(Metadata.EVENT_ENQUEUED))
    events = [SampleEvent(n, "", TEN + n * MINUTE, b"{}") for n in (1, 2)]
    put_events(tmp_path, TEN + 10 * MINUTE, events)
    rows, counted = only(tmp_path, query)
    assert system_times(rows) == [60, 120]
    assert verdicts(counted) == {"on_time": 2}


def test_an_early_event_may_be_adjusted(tmp_path: Path) -> None:
    """It is moved to its arrival plus the early window, and moves the watermark there."""
    arrival = TEN + 10 * MINUTE
    name = put(tmp_path, arrival, [(1, at(arrival + 6 * MINUTE)), (2, at(arrival)), (3, at(arrival + 5 * MINUTE))])
    rows, counted = only(tmp_path, policies=replace(POLICIES, adjust_early=True))
    assert system_times(rows) == [900, 900, 900]
    assert verdicts(counted) == {"early_adjusted": 1, "out_of_order_adjusted": 1, "on_time": 1}
    assert counted.early == 1
    assert counted.furthest_ahead == FurthestAhead(from_seconds(300), 3, name, True)
    rows, counted = only(tmp_path)
    assert system_times(rows) == [600, 900]
    assert verdicts(counted) == {"early_dropped": 1, "on_time": 2}
    assert counted.early == 1


def test_without_an_early_window_a_slice_gives_the_same_alone_and_in_a_range(tmp_path: Path) -> None:
    """A task of its own reads the slice as if the window were on, and does not see a clock that runs far ahead."""
    without = replace(POLICIES, early_window=None)
    put(tmp_path, TEN - 30 * MINUTE, [(1, at(TEN + 30 * MINUTE))])
    put(tmp_path, TEN + 10 * MINUTE, [(2, at(TEN + 5 * MINUTE)), (3, at(TEN + 50 * MINUTE)), (4, at(TEN + 6 * MINUTE))])
    together = all_tasks(tmp_path, PLAIN, without, 1 << 40, -1, 3)
    for hour in (-1, 0, 1):
        for key, (rows, counted) in all_tasks(tmp_path, PLAIN, without, 1 << 40, hour, 1).items():
            assert rows.equals(together[key][0])
            assert plain(counted) == plain(together[key][1])
    rows, counted = together["0", Slice(from_datetime(TEN), from_datetime(TEN + HOUR))]
    assert system_times(rows) == [300, 3000, 3000]
    assert verdicts(counted) == {"on_time": 2, "out_of_order_adjusted": 1}
