"""What a program uses, measured from outside: time, CPU, memory, and what Spark shuffles and spills."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLES_PER_SECOND = 10
_WORKERS = ("spark.daemon", "multiprocessing.spawn")
"""Modules that start the processes of Spark's workers, and those of the peers. Those of recapture are forks of it."""


@dataclass(frozen=True)
class Usage:
    """What one run of a program used."""

    seconds: float
    cpu_seconds: float
    """CPU of all its processes, up to the last sample."""
    peak_bytes: int
    """Largest resident memory of all its processes together; pages that they share count several times."""
    driver_bytes: int
    """Largest resident memory of the process that was started."""
    worker_bytes: int
    """Largest memory of a worker process in Python, without libraries and files that are mapped; 0 without workers."""
    shuffled_bytes: int
    spilled_bytes: int
    """What Spark counts as spilled: its size in memory and on disk."""


def run(command: Sequence[str], scratch: Path, **variables: str) -> Usage:
    """Run a command, with more variables, and return what it used. Its output and Spark's event log go to `scratch`.

    Raise RuntimeError, with the end of the output, if it fails.
    """
    events = scratch / "events"
    events.mkdir()
    output = scratch / "output.txt"
    logged = f"--conf spark.eventLog.enabled=true --conf spark.eventLog.dir={events.as_uri()}"
    plain = "--conf spark.eventLog.compress=false --conf spark.eventLog.rolling.enabled=false"
    environment = os.environ | {
        "PYSPARK_SUBMIT_ARGS": f"{logged} {plain} pyspark-shell",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        **variables,
    }
    begin = time.perf_counter()
    with output.open("w") as file:
        process = psutil.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)
        cpu, peak, driver, worker = _watched(process)
    took = time.perf_counter() - begin
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {output.read_text()[-2000:]}")
    shuffled, spilled = _of_spark(line for log in events.iterdir() for line in log.read_text().splitlines())
    return Usage(took, cpu, peak, driver, worker, shuffled, spilled)


def peak_mib(process: int | str = "self") -> float:
    """Return the largest memory that a process has had since this was last reset."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _watched(process: psutil.Popen) -> tuple[float, int, int, int]:
    """Wait for a process. Return the CPU and the peak memory of it and its descendants, and that of it and a worker."""
    cpu: dict[int, float] = {}
    peak = driver = worker = 0
    while process.poll() is None:
        total = 0
        for member in [process, *process.children(recursive=True)]:
            try:
                times, memory = member.cpu_times(), member.memory_info()
                command = member.cmdline()
                is_fork = member is not process and command == process.cmdline()
                is_worker = is_fork or any(module in argument for module in _WORKERS for argument in command)
            except psutil.Error:
                continue
            cpu[member.pid] = times.user + times.system
            total += memory.rss
            driver = max(driver, memory.rss * (member is process))
            worker = max(worker, (memory.rss - memory.shared) * is_worker)
        peak = max(peak, total)
        time.sleep(1 / SAMPLES_PER_SECOND)
    return sum(cpu.values()), peak, driver, worker


def _of_spark(log: Iterable[str]) -> tuple[int, int]:
    """Return the bytes that the tasks of an event log shuffled and spilled."""
    shuffled = spilled = 0
    for line in log:
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd" and event.get("Task Metrics"):
            metrics = event["Task Metrics"]
            shuffled += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
            spilled += metrics["Memory Bytes Spilled"] + metrics["Disk Bytes Spilled"]
    return shuffled, spilled
