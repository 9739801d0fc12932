"""Every kind of query next to a tumbling window, and on Spark: python -m benchmarks.kinds [EVENTS] [--only TEXT]

Each line shows the CPU seconds from the planned run to the staged files, without the start of the processes and of
Java, how many times those of the tumbling window that is, how many times its time, and how many times the CPU seconds
Spark takes. Both engines must stage the same files, byte for byte. Runs that only one engine computes, because
`--engine` names it, are not compared.
"""

import argparse
import json
import os
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from benchmarks.run import WORLDS
from benchmarks.world import START, World
from recapture.definition.pipeline import Pipeline, load
from recapture.execute.processes import compute as processes
from recapture.execute.processes.workers import Workers, workers
from recapture.run.plan import plan_run
from recapture.run_files.computed import Computed

DECLARED = (
    "CREATE TABLE telemetry (deviceId nvarchar(max), eventTime datetime, temperature float, site record, firmware "
    "nvarchar(max))\n"
)
FUNCTIONS = {
    "scaled": ("scalar", "float", "function main(x) { return x * 1.8 + 32; }"),
    "total": (
        "aggregate",
        "float",
        "function main() { this.init = function () { this.s = 0; };"
        " this.accumulate = function (x, t) { this.s += x; };"
        " this.computeResult = function () { return this.s; }; }",
    ),
}
BASE = "tumbling"


def of_events(items: str, rest: str = "") -> str:
    """Return a query of the device of each event or group, and of `items`."""
    return f"SELECT deviceId, {items} INTO out FROM telemetry TIMESTAMP BY eventTime {rest}"


def of_pairs(items: str, join: str) -> str:
    """Return a query of pairs of events of one device."""
    return (
        f"SELECT a.deviceId, {items} INTO out FROM telemetry a TIMESTAMP BY eventTime "
        f"{join} telemetry b TIMESTAMP BY eventTime "
        "ON a.deviceId = b.deviceId AND DATEDIFF(second, a, b) BETWEEN 1 AND 60"
    )


FIVE_MINUTES = "GROUP BY deviceId, Tumbling(minute, 5)"
KINDS = {
    BASE: of_events("COUNT(*) AS n, AVG(temperature) AS m", FIVE_MINUTES),
    "hopping, 12 panes": of_events("AVG(temperature) AS m", "GROUP BY deviceId, Hopping(minute, 60, 5)"),
    "sliding": of_events("COUNT(*) AS n, AVG(temperature) AS m", "GROUP BY deviceId, Sliding(minute, 1)"),
    "session": of_events(
        "COUNT(*) AS n, AVG(temperature) AS m",
        "GROUP BY deviceId, SessionWindow(second, 30, 300) OVER (PARTITION BY deviceId)",
    ),
    "snapshot": of_events("COUNT(*) AS n", "GROUP BY deviceId, System.Timestamp()"),
    "JOIN": of_pairs("a.temperature - b.temperature AS d", "JOIN"),
    "LEFT JOIN": of_pairs("b.temperature", "LEFT JOIN"),
    "LAG": of_events("LAG(temperature) OVER (PARTITION BY deviceId LIMIT DURATION(minute, 5)) AS p"),
    "ISFIRST": of_events("ISFIRST(minute, 5) OVER (PARTITION BY deviceId) AS f"),
    "COUNT OVER": of_events("COUNT(*) OVER (PARTITION BY deviceId LIMIT DURATION(minute, 5)) AS c"),
    "reference JOIN": "SELECT t.deviceId, r.room INTO out FROM telemetry t TIMESTAMP BY eventTime "
    "JOIN rooms r ON t.deviceId = r.id",
    "TopOne": of_events("TopOne() OVER (ORDER BY temperature DESC) AS t", FIVE_MINUTES),
    "Collect": of_events("Collect() AS c", FIVE_MINUTES),
    "COUNT DISTINCT": of_events("COUNT(DISTINCT temperature) AS c", FIVE_MINUTES),
    "PERCENTILE_CONT": of_events("PERCENTILE_CONT(0.9) OVER (ORDER BY temperature) AS p", FIVE_MINUTES),
    "STDEV": of_events("STDEV(temperature) AS s", "GROUP BY deviceId, Sliding(minute, 1)"),
    "JavaScript function": of_events("udf.scaled(temperature) AS f"),
    "JavaScript aggregate": of_events("uda.total(temperature) AS s", FIVE_MINUTES),
    "SELECT *": "SELECT * INTO out FROM telemetry TIMESTAMP BY eventTime",
    "SELECT, WHERE": of_events(
        "UPPER(firmware) AS f, temperature * 1.8 + 32 AS t", "WHERE temperature > 20 AND site.id LIKE 'site-1%'"
    ),
    "two steps": "WITH s AS (SELECT deviceId, AVG(temperature) AS m FROM telemetry TIMESTAMP BY eventTime "
    "GROUP BY deviceId, Tumbling(minute, 1)) "
    "SELECT deviceId, MAX(m) AS m, COUNT(*) AS n INTO out FROM s GROUP BY deviceId, Hopping(minute, 10, 5)",
    "geography": of_events("ST_DISTANCE(CreatePoint(temperature, 10.0), CreatePoint(9.0, temperature)) AS d"),
}
"""Queries by the name of their kind."""


@dataclass(frozen=True)
class Measured:
    """What a run took."""

    seconds: float
    cpu_seconds: float
    """CPU of this process and all that it started."""
    files: dict[tuple[str, str], str]
    """Names of the staged files, which say their content, by output and slice."""
    rows: int


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kinds", description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=1_000_000, help="default: %(default)s")
    parser.add_argument("--devices", type=int, default=1000, help="devices that send them (default: %(default)s)")
    parser.add_argument("--only", default="", help="kinds whose names hold this text, next to the tumbling window")
    parser.add_argument("--engine", choices=("processes", "spark"), help="only this engine")
    parser.add_argument("--rounds", type=int, default=1, help="rounds; the fastest counts (default: %(default)s)")
    chosen = parser.parse_args()
    world = World(chosen.events, devices=chosen.devices)
    archive = WORLDS / f"{chosen.events}-events-{chosen.devices}-devices"
    world.make(archive)
    kinds = {name: text for name, text in KINDS.items() if name == BASE or chosen.only.lower() in name.lower()}
    with tempfile.TemporaryDirectory() as folder, workers(os.cpu_count() or 1) as started:
        scratch = Path(folder)
        pipelines = {
            name: load(pipeline_file(scratch / str(number), archive, world, text))
            for number, (name, text) in enumerate(kinds.items())
        }
        print(f"{'kind':22} {'rows':>10} {'CPU s':>7} {'tumbling':>9} {'its time':>9} {'Spark':>7}  Spark's CPU s")
        ours = {}
        if chosen.engine != "spark":
            for name, pipeline in pipelines.items():
                in_processes(started, pipeline, world, scratch)
                ours[name] = best(in_processes(started, pipeline, world, scratch) for _ in range(chosen.rounds))
                print(line(name, ours[name], ours[BASE], None), flush=True)
        if chosen.engine != "processes":
            compare_with_spark(pipelines, world, ours, scratch, chosen.rounds)


def compare_with_spark(
    pipelines: dict[str, Pipeline], world: World, ours: dict[str, Measured], scratch: Path, rounds: int
) -> None:
    """Print a line for each pipeline. Raise AssertionError if Spark stages other files."""
    from recapture.execute.spark.compute import compute
    from recapture.execute.spark.session import create_session

    spark = create_session("local[*]", "benchmark", scratch)
    try:
        for name, pipeline in pipelines.items():
            spark_runs = [
                measured(partial(compute, spark, plan_run(pipeline, START, world.end))) for _ in range(rounds + 1)
            ]
            theirs = best(spark_runs[1:])
            print(line(name, ours.get(name), ours.get(BASE), theirs), flush=True)
            assert name not in ours or ours[name].files == theirs.files, f"{name}: Spark stages other files"
    finally:
        spark.stop()


def pipeline_file(folder: Path, archive: Path, world: World, text: str) -> Path:
    """Write the pipeline file of a query, with the functions and the reference data that it uses."""
    folder.mkdir()
    inputs: list[dict[str, Any]] = [
        {
            "alias": "telemetry",
            "container": archive.as_uri(),
            "namespace": "contoso",
            "event_hub": "telemetry",
            "empty_blobs": False,
        }
    ]
    if "rooms" in text:
        rooms = [{"id": f"device-{number}", "room": f"room-{number % 50}"} for number in range(world.devices)]
        (folder / "rooms.json").write_text("\n".join(map(json.dumps, rooms)))
        section = {"type": "Reference", "format": "Json", "container": folder.as_uri(), "path": "rooms.json"}
        inputs.append(section | {"alias": "rooms"})
    functions = {}
    for name, (kind, output, script) in FUNCTIONS.items():
        if f".{name}(" in text:
            (folder / f"{name}.js").write_text(script)
            functions[name] = {"script": f"{name}.js", "output_type": output} | (
                {"kind": "aggregate"} if kind == "aggregate" else {"argument_types": ["float"]}
            )
    document = {
        "name": "kind",
        "input": inputs,
        "job": {"eventsLateArrivalMaxDelayInSeconds": 600, "query": DECLARED + text},
        "output": {"alias": "out", "table": (folder / "table").as_uri()},
    }
    file = folder / "pipeline.yaml"
    file.write_text(json.dumps(document | ({"functions": functions} if functions else {})))
    return file


def in_processes(started: Workers, pipeline: Pipeline, world: World, scratch: Path) -> Measured:
    run = plan_run(pipeline, START, world.end)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        return measured(lambda: processes.compute(started, run, Path(folder)))


def measured(compute: Any) -> Measured:
    """Return what a computation took and staged."""
    begin, cpu = time.perf_counter(), cpu_seconds()
    computed: Computed = compute()
    seconds, cpu = time.perf_counter() - begin, cpu_seconds() - cpu
    files = {(file.output, file.slice_start): file.path for file in computed.staged}
    return Measured(seconds, cpu, files, sum(file.rows for file in computed.staged))


def cpu_seconds() -> float:
    """Return the CPU time so far of this process and of all that it started."""
    total = 0.0
    this = psutil.Process()
    for process in [this, *this.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def best(runs: Any) -> Measured:
    return min(runs, key=lambda run: run.cpu_seconds)


def line(name: str, ours: Measured | None, base: Measured | None, theirs: Measured | None) -> str:
    """Return the line of a kind."""
    rows = (ours or theirs or Measured(0, 0, {}, 0)).rows
    parts = [f"{name:22} {rows:>10,}"]
    parts.append(f"{ours.cpu_seconds:7.2f}" if ours else " " * 7)
    parts.append(f"{ours.cpu_seconds / base.cpu_seconds:9.2f}" if ours and base else " " * 9)
    parts.append(f"{ours.seconds / base.seconds:9.2f}" if ours and base else " " * 9)
    parts.append(f"{theirs.cpu_seconds / ours.cpu_seconds:7.1f}" if ours and theirs else " " * 7)
    return " ".join([*parts, f" {theirs.cpu_seconds:.2f}" if theirs else ""])


if __name__ == "__main__":
    main()
