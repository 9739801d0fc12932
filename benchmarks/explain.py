"""What `recapture explain` takes for each kind of query: python -m benchmarks.explain [EVENTS …] [--only TEXT]

The archive has one hour of events. Each line shows the CPU seconds and the largest resident memory of the command for
an event, for a row that this event is in, and for the same row without its key.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.kinds import DECLARED
from benchmarks.run import WORLDS
from benchmarks.world import START, World

TIME = "System.Timestamp() AS t"
INPUT = "FROM telemetry TIMESTAMP BY eventTime"
FIVE_MINUTES = "TumblingWindow(minute, 5)"
KINDS = {
    "tumbling": f"SELECT {TIME}, deviceId, COUNT(*) AS n INTO out {INPUT} GROUP BY deviceId, {FIVE_MINUTES}",
    "tumbling, no key": f"SELECT {TIME}, COUNT(*) AS n INTO out {INPUT} GROUP BY {FIVE_MINUTES}",
    "an hour, no key": f"SELECT {TIME}, COUNT(*) AS n INTO out {INPUT} GROUP BY TumblingWindow(hour, 1)",
    "TopOne, an hour, no key": (
        f"SELECT {TIME}, TopOne(deviceId) OVER (ORDER BY temperature DESC) AS d INTO out {INPUT} "
        "GROUP BY TumblingWindow(hour, 1)"
    ),
    "JOIN": (
        f"SELECT {TIME}, a.deviceId, a.temperature - b.temperature AS d INTO out "
        "FROM telemetry a TIMESTAMP BY eventTime JOIN telemetry b TIMESTAMP BY eventTime "
        "ON a.deviceId = b.deviceId AND DATEDIFF(second, a, b) BETWEEN 0 AND 20"
    ),
    "session": (
        f"SELECT {TIME}, deviceId, COUNT(*) AS n INTO out {INPUT} "
        "GROUP BY deviceId, SessionWindow(second, 30, 300) OVER (PARTITION BY deviceId)"
    ),
    "session, no key": f"SELECT {TIME}, COUNT(*) AS n INTO out {INPUT} GROUP BY SessionWindow(second, 30, 300)",
    "LAG": (
        f"SELECT {TIME}, deviceId, LAG(temperature) OVER (PARTITION BY deviceId LIMIT DURATION(minute, 5)) AS p "
        f"INTO out {INPUT}"
    ),
    "LAG, no key": (
        f"SELECT {TIME}, deviceId, LAG(temperature) OVER (LIMIT DURATION(minute, 5)) AS p INTO out {INPUT}"
    ),
    "COUNT OVER": (
        f"SELECT {TIME}, deviceId, COUNT(*) OVER (PARTITION BY deviceId LIMIT DURATION(hour, 1)) AS c INTO out {INPUT}"
    ),
    "COUNT OVER, no key": (f"SELECT {TIME}, deviceId, COUNT(*) OVER (LIMIT DURATION(hour, 1)) AS c INTO out {INPUT}"),
    "UNION": (
        f"WITH a AS (SELECT deviceId AS k, LAG(temperature) OVER (PARTITION BY deviceId {{0}}) AS p {INPUT}), "
        f"b AS (SELECT firmware AS k, LAG(temperature) OVER (PARTITION BY firmware {{0}}) AS p {INPUT}) "
        f"SELECT {TIME}, k, p INTO out FROM a UNION SELECT {TIME}, k, p FROM b"
    ).format("LIMIT DURATION(minute, 5)"),
}
KEYS = ("deviceId", "k")


@dataclass(frozen=True)
class Taken:
    """What a command took."""

    seconds: float
    """CPU seconds."""
    memory: int
    """Largest resident memory, in bytes."""
    answer: dict[str, Any] | None
    """What it printed as JSON; None if it failed."""
    error: str

    def __str__(self) -> str:
        failed = "" if self.answer is not None else " !"
        return f"{self.seconds:6.1f} s {self.memory / 2**20:6,.0f} MiB{failed:2}"


def main(arguments: list[str] | None = None) -> None:
    """Print a line for each kind of query."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.explain", description=__doc__)
    parser.add_argument("events", type=int, nargs="*", default=[1_000_000, 5_000_000])
    parser.add_argument("--only", default="", help="text in the names of the kinds")
    options = parser.parse_args(arguments)
    for events in options.events:
        world = World(events, hours=1, interval=timedelta(minutes=5))
        folder = WORLDS / f"explain-{events}"
        world.make(folder)
        print(f"{events:,} events".ljust(26), *(name.ljust(20) for name in ("an event", "a row", "without its key")))
        with tempfile.TemporaryDirectory() as home:
            for name, query in KINDS.items():
                if options.only in name:
                    measure(name, define(Path(home), folder, query))


def define(home: Path, archive: Path, query: str) -> Path:
    """Write the files of a pipeline, and return its pipeline file."""
    file = home / "pipeline.json"
    telemetry = {"alias": "telemetry", "container": str(archive), "namespace": "contoso", "event_hub": "telemetry"}
    policies = {"eventsLateArrivalMaxDelayInSeconds": 600, "eventsOutOfOrderMaxDelayInSeconds": 0}
    pipeline = {
        "name": "explain",
        "input": telemetry,
        "job": {"query": DECLARED + query, **policies},
        "output": {"alias": "out", "table": str(home / "out")},
    }
    file.write_text(json.dumps(pipeline))
    return file


def measure(name: str, file: Path) -> None:
    """Print what the explanation of an event and of its row takes."""
    hour = ("--from", f"{START:%Y-%m-%dT%H:%MZ}", "--to", f"{START + timedelta(hours=1):%Y-%m-%dT%H:%MZ}")
    taken = [run("explain", file, "--event", "2/40000", *hour)]
    row = row_of(taken[0].answer)
    if row:
        taken.append(run("explain", file, "--row", written(row)))
        without = {name: value for name, value in row.items() if name not in KEYS}
        if len(without) < len(row):
            taken.append(run("explain", file, "--row", written(without)))
    print(name.ljust(26), *taken, flush=True)
    for error in dict.fromkeys(each.error for each in taken if each.answer is None):
        print(f"  ! {error}", flush=True)


def row_of(answer: dict[str, Any] | None) -> dict[str, Any]:
    """Return the first row that an event is in."""
    if answer is None:
        return {}
    windows = [window for event in answer["events"] for output in event["outputs"] for window in output["windows"]]
    return next((window["row"] for window in windows if window["row"] is not None), {})


def written(row: dict[str, Any]) -> str:
    return ",".join(f"{name}={'NULL' if value is None else value}" for name, value in row.items())


def run(*arguments: str | Path) -> Taken:
    """Run a command of Recapture in a process of its own."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        command = [sys.executable, "-m", "recapture.cli", *map(str, arguments), "--json"]
        process = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        out.seek(0)
        err.seek(0)
        answer = json.load(out) if status == 0 else None
        error = (err.read().decode().strip().splitlines() or [""])[-1]
    return Taken(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, answer, error)


if __name__ == "__main__":
    main()
