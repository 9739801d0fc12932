"""Damaged blobs: they stop a task, or are quarantined and counted (docs/time-model.md, section 2)."""

import errno
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from recapture.archive.definitions import ArrivalTime
from recapture.archive.pinning import PinnedBlob
from recapture.errors import RunError
from recapture.formats.event_hubs import CaptureReader
from recapture.formats.events import Events, Reader
from recapture.formats.inflate import DEFAULT
from recapture.formats.json_bodies.decoder import JsonBodies
from recapture.model import MetadataColumn
from recapture.ordering import decoding
from recapture.ordering.counters import Counters
from recapture.ordering.order import Reading, order
from recapture.ordering.task import split
from recapture.storage import open_container
from tests.ordering.tasks import (
    MINUTE,
    PLAIN,
    POLICIES,
    TEN,
    at,
    gaps,
    only,
    ordered,
    planned,
    put,
    quarantined,
    spoil,
    system_times,
    verdicts,
)


def test_a_damaged_blob_stops_the_task(tmp_path: Path) -> None:
    name = put(tmp_path, TEN + 10 * MINUTE, [(1, at(TEN))])
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-5])
    os.utime(path, ((TEN + 10 * MINUTE).timestamp(),) * 2)
    with pytest.raises(RunError, match=rf"^blob {name} is damaged: it is cut off"):
        only(tmp_path)


def test_a_blob_that_changed_since_it_was_planned_stops_the_task(tmp_path: Path) -> None:
    name = put(tmp_path, TEN + 10 * MINUTE, [(1, at(TEN))])
    plan = planned(tmp_path, PLAIN)
    put(tmp_path, TEN + 11 * MINUTE, [(1, at(TEN + MINUTE))], opened=TEN + 5 * MINUTE)
    (task,) = split(plan.slices, plan.blobs, 1)
    with pytest.raises(RunError, match=rf"^blob {name} changed since it was planned"):
        ordered(tmp_path, PLAIN, POLICIES, task)


@pytest.mark.parametrize("arrival_time", list(ArrivalTime))
def test_a_damaged_blob_may_be_quarantined_with_its_bytes(tmp_path: Path, arrival_time: ArrivalTime) -> None:
    put(tmp_path, TEN + 10 * MINUTE, [(1, at(TEN + 5 * MINUTE))])
    name = put(tmp_path, TEN + 20 * MINUTE, [(2, at(TEN + 15 * MINUTE))])
    put(tmp_path, TEN + 30 * MINUTE, [(3, at(TEN + 25 * MINUTE))])
    content = (tmp_path / name).read_bytes()[:-5]
    spoil(tmp_path / name, content)
    rows, counted = only(tmp_path, arrival_time=arrival_time, quarantine_damaged=True)
    assert system_times(rows) == [300, 1500]
    assert (counted.events, counted.blobs, counted.damaged, counted.whole) == (2, 3, 1, False)
    assert verdicts(counted) == {"on_time": 2}
    assert gaps(counted) == [(2, 2)], "what it held is missing"
    (row,) = quarantined(counted)
    assert row.pop("etag")
    assert row.pop("reason").startswith("it is cut off: its block at byte ")
    nothing = {"sequence_number": None, "place": None}
    place = {"input": "telemetry", "partition": "0", "blob": name}
    assert row == nothing | place | {"verdict": "damaged", "body": content}


NO_MEMORY = "no memory is left; give this machine more memory, or run fewer tasks at once"


@dataclass(frozen=True)
class Stumbling:
    """A `Reader` that raises an error for every blob with events."""

    error: Exception
    limits = DEFAULT
    numbered = True
    decoder = JsonBodies()
    messages = None

    def read(self, pinned: PinnedBlob, content: bytes, metadata: Sequence[MetadataColumn]) -> Events:
        events = CaptureReader().read(pinned, content, metadata)
        if len(events.number):
            raise self.error
        return events


def read_by(folder: Path, reader: Reader, quarantine_damaged: bool) -> Counters:
    """Return the counters of the hour from ten, read by this reader."""
    plan = planned(folder, PLAIN)
    (task,) = split(plan.slices, plan.blobs, 1)
    batches, counters = order(
        task, open_container(folder.as_uri()), Reading(PLAIN, POLICIES, reader, quarantine_damaged=quarantine_damaged)
    )
    assert list(batches) == []
    return counters[plan.slices[0].slice]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RecursionError("maximum recursion depth exceeded"), "RecursionError: maximum recursion depth exceeded"),
        (pa.ArrowInvalid("offset overflow"), "ArrowInvalid: offset overflow"),
        (OverflowError("too large\nin two lines"), "OverflowError: too large"),
    ],
)
def test_any_error_that_a_blob_causes_in_its_reader_is_damage_of_that_blob(
    tmp_path: Path, error: Exception, reason: str
) -> None:
    name = put(tmp_path, TEN + 10 * MINUTE, [(1, at(TEN))])
    put(tmp_path, TEN + 20 * MINUTE, [])
    with pytest.raises(RunError, match=rf"^blob {name} is damaged: it cannot be read \({re.escape(reason)}\); restore"):
        read_by(tmp_path, Stumbling(error), quarantine_damaged=False)
    counted = read_by(tmp_path, Stumbling(error), quarantine_damaged=True)
    assert (counted.blobs, counted.damaged) == (2, 1)
    assert [(row["blob"], row["reason"]) for row in quarantined(counted)] == [(name, f"it cannot be read ({reason})")]


@pytest.mark.parametrize("quarantine_damaged", [False, True])
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "No space left on device"),
        (MemoryError(), NO_MEMORY),
        (pa.ArrowMemoryError("malloc of size 64 failed"), NO_MEMORY),
        (duckdb.OutOfMemoryException("failed to allocate"), NO_MEMORY),
    ],
)
def test_a_full_disk_or_memory_is_not_damage_of_a_blob(
    tmp_path: Path, error: Exception, reason: str, quarantine_damaged: bool
) -> None:
    name = put(tmp_path, TEN + 10 * MINUTE, [(1, at(TEN))])
    with pytest.raises(RunError, match=rf"^cannot unpack blob {name}: {reason}$"):
        read_by(tmp_path, Stumbling(error), quarantine_damaged)


def test_avro_files_with_only_a_header_are_empty_and_counted(tmp_path: Path) -> None:
    put(tmp_path, TEN + 10 * MINUTE, [(1, at(TEN + 5 * MINUTE))])
    put(tmp_path, TEN + 15 * MINUTE, [])
    names = [put(tmp_path, TEN + minutes * MINUTE, []) for minutes in (20, 25)]
    for name in names:
        spoil(tmp_path / name, (tmp_path / name).read_bytes()[:-18])
    rows, counted = only(tmp_path)
    assert rows.num_rows == 1
    assert (counted.blobs, counted.damaged, counted.without_block) == (4, 0, names)


def test_a_large_damaged_blob_is_quarantined_without_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "LARGEST_QUARANTINED", 3)
    for minute, content in ((10, b"abc"), (20, b"abcd")):
        spoil(tmp_path / put(tmp_path, TEN + minute * MINUTE, []), content)
    _, counted = only(tmp_path, quarantine_damaged=True)
    assert [row["body"] for row in quarantined(counted)] == [b"abc", None]


def test_a_blob_that_does_not_match_its_content_md5_is_quarantined_without_its_bytes(tmp_path: Path) -> None:
    """The bytes that were written are not known."""
    name = put(tmp_path, TEN + 20 * MINUTE, [(2, at(TEN + 15 * MINUTE))])
    plan = planned(tmp_path, PLAIN)
    (task,) = split(plan.slices, plan.blobs, 1)
    (pinned,) = task.blobs
    mismatched = replace(pinned, blob=replace(pinned.blob, md5="AAAAAAAAAAAAAAAAAAAAAA=="))
    _, counters = ordered(tmp_path, PLAIN, POLICIES, replace(task, blobs=(mismatched,)), True)
    (row,) = quarantined(counters[plan.slices[0].slice])
    assert (row["blob"], row["verdict"], row["body"]) == (name, "damaged", None)
    assert row["reason"].startswith("its Content-MD5 is AAAAAAAAAAAAAAAAAAAAAA==")


def test_a_slice_knows_of_all_damage_that_it_reads_and_counts_what_arrived_in_it(tmp_path: Path) -> None:
    """It reads from a quarter to nine, for duplicates, to ten past eleven, for late events."""
    for minutes, whole in ((-75, False), (-76, True), (30, False), (65, False), (80, True)):
        name = put(tmp_path, TEN + minutes * MINUTE, [])
        spoil(tmp_path / name, b"")
        put(tmp_path, TEN + 40 * MINUTE, [(2, at(TEN + 35 * MINUTE))])
        plan = planned(tmp_path, PLAIN, hours=3, first=-1)
        (task,) = split(plan.slices, plan.blobs, 1 << 30)
        _, counters = ordered(tmp_path, PLAIN, POLICIES, task, True)
        counted = counters[plan.slices[1].slice]
        assert (counted.whole, counted.damaged) == (whole, int(minutes == 30)), minutes
        (tmp_path / name).unlink()
