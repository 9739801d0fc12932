"""The programs that a backfill is compared with run by themselves, and their use is measured."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import fastavro
import pytest
from deltalake import DeltaTable

from benchmarks import guard, performance, usage
from benchmarks.capture_blobs import SYNC_SIZE, batches
from benchmarks.performance import RECAPTURE
from benchmarks.run import pipeline_file, require_same, rows_of
from benchmarks.usage import Usage
from benchmarks.world import START, World
from tests.commands import Command
from tests.paths import ROOT

SMALL = World(3001, hours=1, devices=7, codec="deflate")
RANGE = ("2026-03-01T00:00:00Z", "2026-03-01T02:00:00Z")
"""The hour of the small world, and that in which its last blobs arrive."""
PEERS = ("polars_program", "duckdb_program")
CUT, MARKER_CHANGED = "cut off in a block", "a byte of a sync marker changed"


def test_the_hand_written_programs_compute_the_same(command: Command, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    SMALL.make(archive)
    spoil(archive)
    pipeline = pipeline_file(tmp_path, archive)
    metrics = command.json("backfill", pipeline, "--from", RANGE[0], "--to", RANGE[1])["metrics"]
    rows = rows_of(DeltaTable(tmp_path / "table").file_uris(), START.replace(hour=2))
    expected = {
        "read": metrics["InputEvents"],
        "duplicates": metrics["DuplicateEvents"],
        "damaged": metrics["DeserializationError"] + metrics["InvalidInputTimeStamp"],
        "early": metrics["EarlyInputEvents"],
        "late": metrics["LateInputEvents"],
    }
    assert expected == {"read": 3001 + 14, "duplicates": 13, "damaged": 7, "early": 2, "late": 3}
    for peer in PEERS:
        out = tmp_path / f"{peer}.parquet"
        printed = output_of(start([f"benchmarks.{peer}", str(archive), str(out), *RANGE]))
        require_same(rows, rows_of(out, START.replace(hour=2)))
        counts = {name: int(count) for count, name in re.findall(r"(\d+) (?:events |of them )?(\w+)", printed)}
        used = counts.pop("used")
        assert counts == expected
        assert used == counts["read"] - counts["duplicates"] - counts["damaged"] - counts["early"]


def test_the_hand_written_programs_refuse_damaged_blobs(tmp_path: Path) -> None:
    SMALL.make(tmp_path / CUT)
    shutil.copytree(tmp_path / CUT, tmp_path / MARKER_CHANGED)
    cut, changed = (sorted((tmp_path / damage).rglob("*.avro"))[20] for damage in (CUT, MARKER_CHANGED))
    cut.write_bytes(cut.read_bytes()[: -SYNC_SIZE - 100])
    changed.write_bytes(flipped(changed.read_bytes(), -1))
    outs = [tmp_path / f"{peer} {damage}.parquet" for peer, damage in product(PEERS, (CUT, MARKER_CHANGED))]
    processes = [
        start([f"benchmarks.{peer}", str(blob.parents[8]), str(out), *RANGE])
        for (peer, blob), out in zip(product(PEERS, (cut, changed)), outs, strict=True)
    ]
    for process, blob in zip(processes, [cut, changed] * 2, strict=True):
        _, error = process.communicate()
        assert process.returncode == 1
        assert f"{blob} is damaged: " in error
    assert not any(out.exists() for out in outs)


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_a_blob_is_refused_wherever_it_is_cut_except_after_a_block(tmp_path: Path, codec: str) -> None:
    World(24, hours=1, partitions=1, codec=codec).make(tmp_path)
    path = next(tmp_path.rglob("*.avro"))
    content = path.read_bytes()
    block = content.index(content[-SYNC_SIZE:]) + SYNC_SIZE
    content += content[block:]
    ends = {block, block + (len(content) - block) // 2}
    assert sum(map(len, batches(path, "SequenceNumber"))) == 2
    for length in {*range(0, block - 1, 50), *range(block - 1, len(content))} - ends:
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=re.escape(f"{path} is damaged: ")):
            list(batches(path, "SequenceNumber"))


def start(module: list[str]) -> subprocess.Popen[str]:
    """Start a module with its arguments."""
    command = [sys.executable, "-m", *module]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def output_of(process: subprocess.Popen[str]) -> str:
    """Return what a process prints. Raise AssertionError if it fails."""
    output, error = process.communicate()
    assert process.returncode == 0, error
    return output


def flipped(content: bytes, place: int) -> bytes:
    """Return bytes, one of them changed."""
    changed = bytearray(content)
    changed[place] ^= 1
    return bytes(changed)


def spoil(archive: Path) -> None:
    """Change events of a partition, and add duplicates and a number that is used again."""
    blobs = sorted((archive / "contoso/telemetry/0").rglob("*.avro"))
    bodies = [
        b"not JSON",
        b"[1]",
        b"",
        b'{"deviceId": "device-1"}',
        b'{"deviceId": "device-1", "eventTime": "soon"}',
        b'{"deviceId": null, "eventTime": "2026-03-01T00:20:00.0000000Z"}',
        b'{"eventTime": "2026-03-01T00:20:00.0000000Z"}',
        timed("00:40:00"),
        timed("00:50:00"),
        timed("00:00:01"),
        timed("00:02:00"),
    ]
    with events_of(blobs[4]) as events:
        for event, body in zip(events, bodies, strict=False):
            event["Body"] = body
        spoiled = events[:9:4]
        again = events[20] | {"EnqueuedTimeUtc": "3/1/2026 12:29:00 AM"}
        again["SystemProperties"] = {"x-opt-enqueued-time": 1772325000000 - 60000}
    with events_of(blobs[1]) as events:
        events += events[5:8]
        earlier = events[10:14]
    with events_of(blobs[6]) as events:
        events[:0] = [*earlier, *spoiled, again]
    with events_of(blobs[8]) as events:
        events += [earlier[0], again, again]
    with events_of(blobs[-1]) as events:
        events[-1]["Body"] = timed("01:00:01")


def timed(time: str) -> bytes:
    return json.dumps({"deviceId": "device-1", "eventTime": f"2026-03-01T{time}.0000000Z", "temperature": 90}).encode()


@contextmanager
def events_of(blob: Path) -> Iterator[list[dict[str, Any]]]:
    """Let a test change the events of a blob, and write them."""
    modified = blob.stat().st_mtime
    with blob.open("rb") as file:
        reader = fastavro.reader(file)
        events: list[dict[str, Any]] = list(reader)  # type: ignore[arg-type]
    yield events
    with blob.open("wb") as file:
        fastavro.writer(file, reader.writer_schema, events, codec="deflate")
    os.utime(blob, (modified, modified))


def test_a_world_is_always_the_same_and_made_once(tmp_path: Path) -> None:
    def contents(folder: str) -> dict[str, tuple[float, int]]:
        files = (tmp_path / folder).rglob("*.avro")
        return {str(file.relative_to(tmp_path / folder)): (file.stat().st_mtime, file.stat().st_size) for file in files}

    SMALL.make(tmp_path / "first")
    SMALL.make(tmp_path / "second")
    assert contents("first") == contents("second")
    assert len(contents("first")) == SMALL.blob_count
    next((tmp_path / "first").rglob("*.avro")).unlink()
    SMALL.make(tmp_path / "first")
    assert len(contents("first")) == SMALL.blob_count - 1


def test_the_use_of_a_program_covers_its_processes(tmp_path: Path) -> None:
    child = "import time; data = b'x' * 80_000_000; time.sleep(0.5)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    used = usage.run([sys.executable, "-c", parent], tmp_path)
    assert used.peak_bytes > 80_000_000
    assert used.seconds > 0.5
    assert (used.worker_bytes, used.shuffled_bytes, used.spilled_bytes) == (0, 0, 0)


def test_a_fork_of_a_program_is_a_worker(tmp_path: Path) -> None:
    forked = "data = b'x' * 80_000_000; time.sleep(0.5)"
    used = usage.run([sys.executable, "-c", f"import os, time\nif os.fork(): os.wait()\nelse: {forked}"], tmp_path)
    assert used.worker_bytes > 80_000_000


def test_a_program_that_fails_is_an_error_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no such world"):
        usage.run([sys.executable, "-c", "raise SystemExit('no such world')"], tmp_path)


def test_the_table_has_ratios_of_medians(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(performance, "DOCS", tmp_path)
    rounds = [
        {RECAPTURE: Usage(10, 20, 2**21, 2**20, 2**20, 2**22, 0), "peer": Usage(seconds, 5, 2**20, 0, 0, 0, 0)}
        for seconds in (1, 5, 30)
    ]
    measured = performance.medians(iter(rounds))
    assert performance.table(measured).splitlines()[2:] == [
        "| recapture backfill | 1.00 | 1.00 | 2 | 1 | 4 | 0 |",
        "| peer | 0.50 | 0.25 | 1 | 0 | 0 | 0 |",
    ]
    performance.write({"1 million": measured, "5 million": measured})
    assert (tmp_path / "results.md").read_text().count("| peer | 0.50 |") == 2
    assert "million events" in (tmp_path / "seconds.svg").read_text()


def test_a_stage_above_its_limit_is_slower_than_before() -> None:
    assert guard.slower(dict.fromkeys(guard.LIMITS, 0.01)) == []
    assert guard.slower({**guard.LIMITS, "order": guard.LIMITS["order"] + 0.01}) == ["order"]
