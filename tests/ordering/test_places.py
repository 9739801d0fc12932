"""Events without sequence numbers keep the places that their blobs give them."""

import json
import os
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from recapture.archive.pinning import PinnedBlob, PlannedSlice
from recapture.formats.csv import CsvReader
from recapture.formats.event_hubs import CaptureInput
from recapture.formats.json_lines import JsonReader
from recapture.ordering.counters import Counters
from recapture.ordering.order import Reading, order, schema
from recapture.ordering.task import Task
from recapture.query.compile import compile_query
from recapture.storage import open_container
from recapture.time_model.policies import Policies
from recapture.time_model.slices import Arrivals, Slice
from recapture.time_model.ticks import from_datetime, from_seconds
from recapture.time_model.verdicts import Verdict
from recapture.tokens import of_number as token
from tests.formats.blobs import MINUTE, TEN

QUERY = compile_query(
    "SELECT COUNT(n) AS n INTO out FROM t TIMESTAMP BY eventTime GROUP BY TumblingWindow(minute, 5)",
    inputs={"t": CaptureInput.metadata},
    output_aliases=["out"],
).inputs[0]
POLICIES = Policies(
    out_of_order_tolerance=from_seconds(60),
    late_tolerance=from_seconds(3600),
    early_window=from_seconds(300),
    adjust=True,
)


def event(number: int, second: int) -> str:
    return json.dumps({"n": number, "eventTime": (TEN + timedelta(seconds=second)).isoformat()})


def ordered(
    folder: Path, texts: dict[str, str], reader: JsonReader | CsvReader
) -> tuple[list[tuple[str, int]], Counters]:
    """Return the events in order, as (n, second), and the counters; all blobs arrived together."""
    for name, text in texts.items():
        (folder / name).write_text(text)
        os.utime(folder / name, ((TEN + 5 * MINUTE).timestamp(),) * 2)
    container = open_container(folder.as_uri())
    start = from_datetime(TEN)
    hour = Slice(start, start + from_seconds(3600))
    planned = PlannedSlice(hour, Arrivals(start - from_seconds(3 * 3600), hour.end), "", ())
    task = Task("telemetry", "0", (planned,), tuple(PinnedBlob("telemetry", "0", blob) for blob in container.list()))
    batches, counters = order(task, container, Reading(QUERY, POLICIES, reader))
    rows = pa.Table.from_batches(batches, schema(QUERY)).to_pylist()
    return [(row["n"], (row["_system_timestamp"] - start) // from_seconds(1)) for row in rows], counters[hour]


def test_blobs_that_arrived_together_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    texts = {"b": "\n".join([event(3, 30), event(4, 20)]), "a": "\n".join([event(1, 40), event(2, 10)])}
    rows, counted = ordered(tmp_path, texts, JsonReader())
    assert rows == [(token(1), 40), (token(2), 10), (token(3), 30), (token(4), 20)]
    assert (counted.events, counted.duplicates, counted.open_gaps) == (4, 0, [])


def test_the_same_line_twice_is_two_events(tmp_path: Path) -> None:
    _, counted = ordered(tmp_path, {"a": f"{event(1, 1)}\n{event(1, 1)}", "b": event(1, 1)}, JsonReader())
    assert (counted.events, counted.duplicates, counted.verdicts[Verdict.ON_TIME]) == (3, 0, 3)


def test_an_unusable_event_is_quarantined_with_its_place(tmp_path: Path) -> None:
    text = 'n,eventTime\n1,2026-03-01T10:01:00Z\n{"n": 1}\n2,yesterday\n3,4,5\n'
    rows, counted = ordered(tmp_path, {"a.csv": text}, CsvReader(",", ("n",)))
    assert rows == [("1", 60)]
    assert (counted.events, counted.verdicts.sum()) == (4, 4)
    unusable = [row for batch in counted.quarantine for row in batch.to_pylist()]
    assert [(row["place"], row["sequence_number"], row["verdict"], row["reason"], row["body"]) for row in unusable] == [
        (1, None, "malformed", "1 fields, the header has 2", b'{"n": 1}'),
        (2, None, "invalid_timestamp", "eventTime is not a time", b'{"n":"2","eventTime":"yesterday"}'),
        (3, None, "malformed", "3 fields, the header has 2", b"3,4,5"),
    ]


def test_the_event_that_is_furthest_ahead_is_reported_with_its_place(tmp_path: Path) -> None:
    _, counted = ordered(tmp_path, {"a": f"{event(1, 1)}\n{event(2, 500)}"}, JsonReader())
    ahead = counted.furthest_ahead
    assert ahead is not None
    assert (ahead.number, ahead.blob, ahead.numbered) == (1, "a", False)
