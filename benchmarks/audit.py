"""`python -m benchmarks.audit 1000000`: memory and time of an audit of that many rows, in a process of its own.

The rows have the five columns of the sample: window end, device (10,000 of them), a count, a mean, and the slice. They
are in one file per hour, as a run stages them, and are audited without a suite and with the sample's suite.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.usage import peak_mib
from recapture.quality import suites
from recapture.quality.metrics import COLUMNS
from recapture.quality.rows import Rows, SliceFile
from recapture.time_model.metrics import COUNTS

START = datetime(2026, 3, 1, tzinfo=UTC)
SLICES = 24
DEVICES = 10_000
TELEMETRY = Path(__file__).parents[1] / "expectations" / "telemetry.json"
NAMES = ("windowEnd", "deviceId", "events", "avgTemperature", "slice_start")


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each number of rows, without and with a suite."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("rows", type=int, nargs="*", default=[1_000_000, 5_000_000, 20_000_000])
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--suite", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.folder:
        print(json.dumps(measure(chosen.folder, chosen.suite)))
        return
    print("      rows  suite     peak MiB  seconds  verdict")
    for rows in chosen.rows:
        with tempfile.TemporaryDirectory() as folder:
            fill(Path(folder), rows)
            for suite in (None, TELEMETRY):
                command = [sys.executable, "-m", "benchmarks.audit", "--folder", folder]
                command += ["--suite", str(suite)] if suite else []
                result = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
                shown = f"{result['peak']:8,.0f} {result['seconds']:8.1f}  {result['verdict']}"
                print(f"{rows:10,}  {suite.stem if suite else 'none':9} {shown}", flush=True)


def fill(folder: Path, rows: int) -> None:
    """Write the rows, one file per slice."""
    slice_rows = rows // SLICES
    devices = pa.array([f"device-{number:05}" for number in range(DEVICES)])
    for number in range(SLICES):
        places = np.arange(slice_rows)
        windows = -(-slice_rows // DEVICES)
        step = 3600 * 10**6 // windows
        start = np.datetime64((START + timedelta(hours=number)).replace(tzinfo=None), "us")
        ends = start + (places // DEVICES + 1) * np.timedelta64(step, "us")
        means = np.random.default_rng(number).normal(20, 5, slice_rows)
        table = {
            "windowEnd": pa.array(ends, pa.timestamp("us", "UTC")),
            "deviceId": devices.take(pa.array(places % DEVICES)),
            "events": pa.array(places % 7 + 1),
            "avgTemperature": pa.array(means, mask=places % 50 == 0),
        }
        pq.write_table(pa.table(table), folder / f"{number:02}.parquet", compression="zstd")


def measure(folder: Path, suite: Path | None) -> dict[str, object]:
    """Audit the rows of a folder; return the peak of this process's memory, the seconds and the verdict."""
    from recapture.quality import checkpoint

    hours = [START + timedelta(hours=number) for number in range(SLICES)]
    row = dict.fromkeys(COLUMNS, 0) | dict.fromkeys(COUNTS, 0) | {"partition": "0", "complete": True, "whole": True}
    counts = [row | {"slice_start": hour.isoformat(), "InputEvents": 1, "on_time": 1} for hour in hours]
    files = [SliceFile(folder / f"{number:02}.parquet", hour) for number, hour in enumerate(hours)]
    rows = Rows(pq.read_schema(files[0].path), "slice_start", files)
    begin = time.perf_counter()
    result = checkpoint.audit(
        counts,
        {"aggregates": rows} if suite else {},
        {"aggregates": suites.load(suite, NAMES)} if suite else {},
        suites.RunParameters(SLICES, START, START + timedelta(hours=SLICES)),
    )
    seconds = time.perf_counter() - begin
    return {"peak": peak_mib(), "seconds": seconds, "verdict": result.verdict}


if __name__ == "__main__":
    main()
