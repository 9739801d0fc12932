"""Archives of Service Bus messages, in the order of their sequence numbers."""

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recapture.archive.pinning import PinnedBlob, PlannedSlice
from recapture.formats.event_hubs import CaptureInput
from recapture.formats.service_bus import ServiceBusFields, ServiceBusReader
from recapture.model import Metadata
from recapture.ordering.counters import Counters
from recapture.ordering.order import Reading, order, schema
from recapture.ordering.sequence_partitions import ContinuousNumbers, ranges_of
from recapture.ordering.task import Task
from recapture.query.compile import compile_query
from recapture.storage import open_container
from recapture.time_model.policies import Policies
from recapture.time_model.slices import Arrivals, Slice
from recapture.time_model.ticks import from_datetime, from_seconds
from recapture.time_model.verdicts import Verdict
from tests.formats.blobs import MINUTE, TEN, bodies, column, read, reasons, values

BUS = ServiceBusReader()
NUMBER, PARTITION = column(Metadata.SEQUENCE_NUMBER), column(Metadata.PARTITION_ID)
ROUND = 1 << 48
QUERY = compile_query(
    "SELECT PartitionId, COUNT(*) AS n INTO out FROM t TIMESTAMP BY eventTime "
    "GROUP BY PartitionId, TumblingWindow(minute, 5)",
    inputs={"t": CaptureInput.metadata},
    output_aliases=["out"],
).inputs[0]
POLICIES = Policies(
    out_of_order_tolerance=0, late_tolerance=from_seconds(3600), early_window=from_seconds(300), adjust=True
)


def line(number: object, body: object, **more: object) -> str:
    return json.dumps({"SequenceNumber": number, "EnqueuedTimeUtc": "2026-03-01T09:59:00Z", "Body": body} | more)


def message(partition: int, low: int, time: datetime) -> str:
    return line(partition * ROUND + low, {"eventTime": time.isoformat()})


def ordered(folder: Path, *blobs: tuple[datetime, list[str]]) -> tuple[list[dict[str, Any]], Counters]:
    """Return the rows and the counters of a task that reads blobs with these arrivals and lines."""
    pinned = []
    for place, (arrival, lines) in enumerate(blobs):
        path = folder / f"{place}.jsonl"
        path.write_text("\n".join(lines))
        os.utime(path, (arrival.timestamp(),) * 2)
    for blob in open_container(folder.as_uri()).list():
        pinned.append(PinnedBlob("telemetry", "0", blob))
    start = from_datetime(TEN)
    hour = Slice(start, start + from_seconds(3600))
    planned = PlannedSlice(hour, Arrivals(start - from_seconds(3 * 3600), hour.end), "", ())
    task = Task("telemetry", "0", (planned,), tuple(pinned))
    batches, counters = order(task, open_container(folder.as_uri()), Reading(QUERY, POLICIES, BUS))
    rows = pa.Table.from_batches(batches, schema(QUERY)).to_pylist()
    return rows, counters[hour]


def test_a_line_is_a_message_and_its_number_shows_the_partition() -> None:
    events = read(
        BUS,
        "\n".join([line(5, {"a": 1}), line(str(2 * ROUND + 7), '{"b": 1.10}'), line(6, None)]).encode(),
        NUMBER,
        PARTITION,
    )
    assert bodies(events) == [b'{"a":1}', b'{"b": 1.10}', None]
    assert values(events, NUMBER) == [5, 2 * ROUND + 7, 6]
    assert values(events, PARTITION) == [0, 2, 0]
    assert reasons(events) == [None] * 3


def test_the_fields_are_those_that_the_pipeline_names() -> None:
    fields = ServiceBusFields(sequence_number="system.Sequence", enqueued_time="when", body="message")
    reader = ServiceBusReader(fields)
    content = json.dumps({"system": {"Sequence": 9}, "when": "2026-03-01T10:00:00Z", "message": {"a": 1}}).encode()
    events = read(reader, content, NUMBER, column(Metadata.EVENT_ENQUEUED))
    assert (values(events, NUMBER), bodies(events)) == ([9], [b'{"a":1}'])
    assert values(events, column(Metadata.EVENT_ENQUEUED)) == [from_datetime(TEN)]


@pytest.mark.parametrize("number", [None, "x", 1.5, -1, True, {"a": 1}, 1 << 63])
def test_a_line_without_a_number_is_quarantined_with_its_bytes(number: object) -> None:
    lines = [line(7, {}), line(number, {}), "no JSON"]
    events = read(BUS, "\n".join(lines).encode(), NUMBER)
    assert reasons(events) == [None, "its line has no integer in SequenceNumber", "its line is not JSON"]
    assert bodies(events)[1:] == [text.encode() for text in lines[1:]]
    assert values(events, NUMBER) == [7, None, None]


def test_messages_are_in_the_order_of_their_numbers_whatever_their_times_and_lines(tmp_path: Path) -> None:
    later = [message(0, number, TEN + timedelta(seconds=second)) for number, second in [(3, 2), (1, 9), (2, 5)]]
    rows, counted = ordered(tmp_path, (TEN + MINUTE, later))
    assert [row["_system_timestamp"] for row in rows] == [from_datetime(TEN + timedelta(seconds=9))] * 3
    assert (counted.out_of_order, counted.open_gaps) == (2, [])


def test_each_partition_of_the_entity_has_a_watermark_of_its_own(tmp_path: Path) -> None:
    lines = [message(1, 1, TEN + 9 * MINUTE), message(0, 1, TEN + MINUTE), message(1, 2, TEN + 5 * MINUTE)]
    rows, counted = ordered(tmp_path, (TEN + 10 * MINUTE, lines))
    times = {(row["@PartitionId"], row["_system_timestamp"]) for row in rows}
    assert times == {(0, from_datetime(TEN + MINUTE)), (1, from_datetime(TEN + 9 * MINUTE))}
    assert counted.verdicts[Verdict.ON_TIME] == 2


def test_a_number_that_rolled_over_follows_the_largest(tmp_path: Path) -> None:
    first = [message(4, 1, TEN + 3 * MINUTE), message(4, ROUND - 1, TEN + MINUTE), message(4, 0, TEN + 2 * MINUTE)]
    rows, counted = ordered(tmp_path, (TEN + 4 * MINUTE, first), (TEN + 9 * MINUTE, [message(4, 3, TEN + 8 * MINUTE)]))
    assert [(row["_system_timestamp"] - from_datetime(TEN)) // from_seconds(60) for row in rows] == [1, 2, 3, 8]
    assert counted.out_of_order == 0
    assert [ranges_of(gaps) for gaps in counted.open_gaps] == [[(4 * ROUND + 2, 4 * ROUND + 2)]]


def test_duplicates_and_gaps_are_counted_in_each_partition(tmp_path: Path) -> None:
    blobs = [
        (TEN + MINUTE, [message(0, 1, TEN), message(1, 1, TEN), message(1, 1, TEN)]),
        (TEN + 2 * MINUTE, [message(0, 1, TEN), message(0, 4, TEN), message(1, 3, TEN), "", "nothing"]),
        (TEN + 3 * MINUTE, [message(1, 2, TEN)]),
    ]
    _, counted = ordered(tmp_path, *blobs)
    assert (counted.events, counted.duplicates, counted.verdicts.sum()) == (8, 2, 6)
    assert [ranges_of(gaps) for gaps in counted.open_gaps] == [[(2, 3)]]
    (row,) = [row for batch in counted.quarantine for row in batch.to_pylist()]
    assert (row["sequence_number"], row["place"], row["body"]) == (None, 3, b"nothing")


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(-50, 50)), min_size=1, max_size=30),
    st.integers(0, ROUND - 1),
    st.integers(1, 30),
)
def test_continuous_numbers_keep_their_distances_wherever_they_roll_over_and_reading_stops(
    steps: list[tuple[int, int]], first: int, size: int
) -> None:
    true = np.array([first + ROUND + step for _, step in steps])
    partition = np.array([partition for partition, _ in steps], np.int64)
    number = partition * ROUND + true % ROUND
    numbers = ContinuousNumbers()
    parts = [slice(begin, begin + size) for begin in range(0, len(steps), size)]
    continuous = np.concatenate([numbers.continued(number[part], partition[part]) for part in parts])
    for one in set(partition.tolist()):
        rows = partition == one
        assert len(set((continuous[rows] - true[rows]).tolist())) == 1
