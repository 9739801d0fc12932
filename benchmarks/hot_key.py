"""A slice of many events of one key in a bounded memory: python -m benchmarks.hot_key [EVENTS] [--share MIB]

Events are written as the tasks of a run write them, in order. Then the slice is computed as a run computes it: LAG
and a JOIN, with one key for all events. The seconds and the largest memory of the process are printed, without the
files that are mapped into it.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

from benchmarks.kinds import DECLARED
from recapture.execute.division import Bucket, buckets_of_slice
from recapture.execute.memory import bytes_per_event
from recapture.execute.processes.slice_parts import merge_runs, write_bucket
from recapture.execute.processes.task_files import WrittenBatch
from recapture.execute.shared_keys import shared_keys
from recapture.execute.slice_rows import slice_query
from recapture.execute.task_batches import event_schema
from recapture.formats.event_hubs import CaptureInput
from recapture.query.compile import compile_query
from recapture.query.model import CompiledInput
from recapture.time_model.slices import Slice
from recapture.time_model.ticks import TICKS_PER_SECOND

HOUR = Slice(63_000_000_000 * TICKS_PER_SECOND, 63_000_003_600 * TICKS_PER_SECOND)
QUERY = (
    f"{DECLARED} WITH alarms AS (SELECT deviceId, temperature FROM telemetry TIMESTAMP BY eventTime "
    "WHERE temperature > 99.9), lagged AS (SELECT deviceId, temperature, LAG(temperature) "
    "OVER (PARTITION BY deviceId LIMIT DURATION(minute, 1)) AS p FROM telemetry TIMESTAMP BY eventTime) "
    "SELECT a.deviceId, a.temperature, a.p, b.temperature AS alarm INTO out FROM lagged a JOIN alarms b "
    "ON a.deviceId = b.deviceId AND DATEDIFF(second, b, a) BETWEEN 0 AND 1"
)
BATCH = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hot_key", description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=50_000_000, help="default: %(default)s")
    parser.add_argument("--share", type=int, default=2048, help="memory of a worker in MiB (default: %(default)s)")
    chosen = parser.parse_args()
    query = compile_query(QUERY, inputs={"telemetry": CaptureInput.metadata}, output_aliases=["out"])
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        batches = write_events(query.inputs[0], chosen.events, scratch / "0.arrow")
        keys, most = shared_keys(query), (chosen.share << 20) // bytes_per_event(query)
        assert keys is not None
        buckets = buckets_of_slice(chosen.events, most, 1, 1)
        work = slice_query(query, [(query.outputs[0], (scratch / "table").as_uri())])
        watch = Watch()
        begin = time.perf_counter()
        runs = [
            write_bucket(work, HOUR, Bucket(keys, number, buckets), most, batches, {}, scratch)
            for number in range(buckets)
        ]
        evaluated = time.perf_counter() - begin
        together = [run for [of_output] in runs for run in of_output]
        print(f"{buckets} buckets, {len(together)} runs of {sum(run.rows for run in together):,} rows")
        print(f"evaluated: {evaluated:.0f} s, largest memory {watch.largest >> 20:,} MiB", flush=True)
        [staged] = merge_runs(work, HOUR, "0" * 64, [together])
        print(f"with the merge: {time.perf_counter() - begin:.0f} s, largest memory {watch.largest >> 20:,} MiB")
        print(f"{staged.rows:,} rows, {staged.size:,} bytes: {staged.path}")


def write_events(read: CompiledInput, events: int, path: Path) -> list[WrittenBatch]:
    """Write ordered events of one device."""
    random = np.random.default_rng(7)
    schema = event_schema(read)
    batches = []
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for place, first in enumerate(range(0, events, BATCH)):
            numbers = np.arange(first, min(events, first + BATCH))
            times = HOUR.start + 1 + numbers * ((HOUR.end - HOUR.start - 1) // events)
            columns = {
                "_partition": pa.repeat("0", len(numbers)),
                "_system_timestamp": pa.array(times),
                "_arrival": pa.array(times),
                "deviceId": pa.repeat("device-1", len(numbers)),
                # About one alarm in two seconds, whatever the number of events.
                "temperature": pa.array(
                    np.where(random.random(len(numbers)) < 1800 / events, 100.0, random.normal(20, 5, len(numbers)))
                ),
            }
            writer.write_batch(pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema))
            batches.append(WrittenBatch(path, place, read.view, HOUR.start, None, len(numbers)))
    return batches


class Watch:
    """The largest memory of this process since it was made, without mapped files."""

    def __init__(self) -> None:
        self.largest = 0
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        this = psutil.Process()
        while True:
            memory = this.memory_info()
            self.largest = max(self.largest, memory.rss - memory.shared)
            time.sleep(0.02)


if __name__ == "__main__":
    main()
