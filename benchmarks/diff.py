"""`python -m benchmarks.diff`: what it costs to compare many rows, in CPU and memory.

The slices lie in a local folder, on both sides with the same keys. A line is printed for each share of rows that
differ. The peak is the resident memory of the whole process that compares them.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from recapture.storage import open_container
from recapture.table.files import write_slice_file
from recapture.table.snapshot import File
from recapture.time_model import ticks
from recapture.tools.diff.files import SliceFiles, StoredFile, output_difference

START = datetime(2026, 3, 1, tzinfo=UTC)
WINDOWS = 60
"""Number of windows of a slice; each has a row for every device."""
KEY = ("windowEnd", "deviceId")


def main() -> None:
    """Print a line for each share."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diff", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000, help="rows of each side")
    parser.add_argument("--slices", type=int, default=24)
    parser.add_argument("--share", type=float, nargs="*", default=[0.01, 1.0], help="share of rows that differ")
    parser.add_argument("--compare", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.compare is not None:
        _compare(arguments.compare)
        return
    for share in arguments.share:
        with tempfile.TemporaryDirectory() as folder:
            _write(Path(folder), arguments.rows // arguments.slices, arguments.slices, share)
            command = [sys.executable, "-m", "benchmarks.diff", "--compare", folder]
            print(f"{arguments.rows:,} rows on each side, {share:.0%} differ: ", end="", flush=True)
            subprocess.run(command, check=True)


def _write(folder: Path, rows: int, slices: int, share: float) -> None:
    """Write the files of both sides."""
    for number in range(slices):
        for side in ("before", "after"):
            start = START + number * timedelta(hours=1)
            table = open_container((folder / side).as_uri())
            write_slice_file(table, ticks.from_datetime(start), "0" * 16, _rows(start, rows, number, side, share))


def _rows(start: datetime, count: int, seed: int, side: str, share: float) -> pa.Table:
    random = np.random.default_rng(seed)
    place = np.arange(count)
    first = int(start.timestamp()) * 1_000_000
    values, events, changes = random.normal(20, 3, count), random.integers(0, 1000, count), random.random(count) < share
    if side == "after":
        values = np.where(changes, values + 0.5, values)
    return pa.table(
        {
            "windowEnd": pa.array(first + (place % WINDOWS + 1) * 60_000_000, pa.timestamp("us", tz="UTC")),
            "deviceId": pc.binary_join_element_wise("device", pc.cast(pa.array(place // WINDOWS), pa.string()), "-"),
            "events": pa.array(events),
            "avgTemperature": pa.array(values),
        }
    )


def _compare(folder: Path) -> None:
    """Compare both sides, and print what it took."""

    def stored(path: Path, side: str) -> StoredFile:
        name = path.relative_to(folder / side).as_posix()
        return StoredFile((folder / side).as_uri(), File(name, path.stat().st_size, 0))

    pairs = zip(*(sorted((folder / side).rglob("*.parquet")) for side in ("before", "after")), strict=True)
    slices = [
        SliceFiles(str(number), stored(before, "before"), stored(after, "after"))
        for number, (before, after) in enumerate(pairs)
    ]
    size = sum(files.size for files in slices)
    begin, cpu = time.perf_counter(), time.process_time()
    document = output_difference(str(folder), "aggregates", KEY, slices).document()
    took, cpu = time.perf_counter() - begin, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    rows = document["rows"]
    print(
        f"{rows['changed']:,} changed; {cpu:,.0f} s of CPU, {took:,.0f} s, peak {peak / 2**20:,.0f} MiB, "
        f"files of {size / 2**20:,.0f} MiB",
        flush=True,
    )


if __name__ == "__main__":
    main()
