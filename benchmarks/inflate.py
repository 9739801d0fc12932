"""`python -m benchmarks.inflate`: peak memory of reading one compressed blob in a new process, per inflated byte."""

import argparse
import gzip
import json
import multiprocessing
from collections.abc import Iterator
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.usage import peak_mib
from recapture.archive.pinning import PinnedBlob
from recapture.formats.event_hubs import CaptureReader
from recapture.formats.events import Reader
from recapture.formats.json_lines import JsonReader
from recapture.storage import Blob
from recapture.tools.sample.capture_file import SampleEvent, capture_file

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BLOB = PinnedBlob("telemetry", "0", Blob("a.avro", "etag", 0, NOON))
BODIES = (100, 1_000, 1_000_000)
"""Sizes of an event's body, in bytes."""


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each kind of blob."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inflate", description=__doc__)
    parser.add_argument("--mib", type=int, default=64, help="MiB of bodies in a blob (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    print("blob                    inflated MiB  peak MiB  peak per inflated byte")
    for name, reader, small, content, inflated in blobs(chosen.mib << 20):
        peak = measure(reader, small, content)
        size = inflated / (1 << 20)
        print(f"{name:23} {size:12,.0f} {peak:9,.0f} {peak / size:12.2f}", flush=True)


def blobs(size: int) -> Iterator[tuple[str, Reader, bytes, bytes, int]]:
    """Yield the name of a kind, its reader, a small blob, a large blob, and the inflated size of the large one."""
    for body in BODIES:
        text = json.dumps({"text": "x" * (body - 12)}).encode()
        count = size // len(text)
        events = [SampleEvent(number, str(number), NOON, text) for number in range(count)]
        plain, deflated = capture_file(events), capture_file(events, codec="deflate")
        for name, content in (("null", plain), ("deflate", deflated)):
            yield f"{name} {body:,} B", CaptureReader(), capture_file(events[:1]), content, len(plain)
        lines = b"\n".join([text] * count)
        array = b"[" + b",".join([text] * count) + b"]"
        for name, text_blob in (("lines", lines), ("array", array)):
            content = gzip.compress(text_blob, 1)
            yield f"gzip {name} {body:,} B", JsonReader(), gzip.compress(text), content, len(text_blob)


def measure(reader: Reader, small: bytes, large: bytes) -> float:
    """Return by how many MiB a reader's process grows for a large blob."""
    fresh = multiprocessing.get_context("spawn")
    receiver, sender = fresh.Pipe(duplex=False)
    process = fresh.Process(target=_read, args=(reader, small, large, sender))
    process.start()
    peak: float = receiver.recv()
    process.join()
    return peak


def _read(reader: Reader, small: bytes, large: bytes, sender: Connection) -> None:
    reader.read(BLOB, small, ())
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_mib()
    reader.read(BLOB, large, ())
    sender.send(peak_mib() - before)


if __name__ == "__main__":
    main()
