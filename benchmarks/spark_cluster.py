"""Runs on a Spark cluster of this machine, with some executors: python -m benchmarks.spark_cluster [EVENTS]

A standalone master and its workers start for each run, and each worker has one executor with one core. A line shows the
seconds from the start of the driver to its end, and from the first task to the end of the last one, then CPU seconds by
process. The staged files must be those of the worker processes. With --bundle, the executors' Python has no packages.
With --share 0.25, each executor gets a quarter of a core, so that four of them scale on two cores; this needs root.
With --disk, the first executor has its temporary files in that folder, such as a small or slow file system.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyspark

from benchmarks.kinds import KINDS, in_processes, pipeline_file
from benchmarks.run import WORLDS
from benchmarks.world import START, World
from embedded.java import java_home
from recapture.definition.pipeline import load
from recapture.execute.processes.workers import workers

SPARK = Path(pyspark.__file__).parent
LOG = (
    "spark.eventLog.enabled true\nspark.eventLog.dir {folder}\n"
    "spark.eventLog.compress false\nspark.eventLog.rolling.enabled false\n"
)
GROUPS = Path("/sys/fs/cgroup/cpu")
"""Folder in which Linux has the groups of processes with a limited CPU; of version 1 of cgroups."""
PARTS = ("driver, Python", "driver, Java", "executors, Java", "executors, Python")
DRIVER = """
import json, sys
from datetime import datetime
from pathlib import Path
from recapture.definition.pipeline import load
from recapture.run.plan import plan_run
from recapture.execute.spark.compute import compute
from recapture.execute.spark.session import spark_session

file, master, scratch, start, end, *bundle = sys.argv[1:]
run = plan_run(load(Path(file)), datetime.fromisoformat(start), datetime.fromisoformat(end))
with spark_session(master, "benchmark", Path(scratch), *map(Path, bundle)) as spark:
    print(json.dumps(sorted(file.path for file in compute(spark, run).staged)))
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_cluster", description=__doc__)
    parser.add_argument("events", type=int, nargs="?", default=10_000_000, help="default: %(default)s")
    parser.add_argument("--kinds", nargs="+", default=["tumbling", "LAG"], choices=KINDS, help="kinds of queries")
    parser.add_argument("--executors", type=int, nargs="+", default=[1, 2], help="default: %(default)s")
    parser.add_argument(
        "--bundle", type=Path, help="archive of recapture bundle; by default, executors use this Python"
    )
    parser.add_argument("--share", type=float, help="share of a core that an executor gets (default: no limit)")
    parser.add_argument("--disk", type=Path, help="folder of the temporary files of the first executor")
    chosen = parser.parse_args()
    world, archive = World(chosen.events), WORLDS / f"{chosen.events}-events"
    world.make(archive)
    print(f"{'kind':9} {'executors':>9} {'seconds':>8} {'tasks':>6}  " + "  ".join(PARTS) + "  driver MiB")
    for kind in chosen.kinds:
        with tempfile.TemporaryDirectory() as folder:
            file = pipeline_file(Path(folder) / "pipeline", archive, world, KINDS[kind])
            with workers(os.cpu_count() or 1) as started:
                expected = sorted(in_processes(started, load(file), world, Path(folder)).files.values())
            for executors in chosen.executors:
                scratch = Path(folder) / str(executors)
                scratch.mkdir()
                files, line = run(file, world, executors, scratch, chosen.bundle, chosen.share, chosen.disk)
                print(f"{kind:9} {executors:9} {line}", flush=True)
                assert files == expected, f"{kind}: {executors} executors stage other files"


def run(
    file: Path,
    world: World,
    executors: int,
    scratch: Path,
    bundle: Path | None = None,
    share: float | None = None,
    disk: Path | None = None,
) -> tuple[list[str], str]:
    """Return the files that a cluster stages, and a line that says what the run took."""
    (scratch / "events").mkdir()
    (scratch / "spark-defaults.conf").write_text(LOG.format(folder=(scratch / "events").as_uri()))
    environment = os.environ | {
        **{"SPARK_HOME": str(SPARK), "SPARK_SCALA_VERSION": "2.13", "SPARK_CONF_DIR": str(scratch)},
        **{"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
    }
    of_daemons = environment if bundle is None else environment | bare_python(scratch)
    with cluster(executors, scratch, of_daemons, share, disk) as (master, daemons):
        begin = time.perf_counter()
        arguments = [str(file), master, str(scratch), START.isoformat(), world.end.isoformat()]
        arguments += [str(bundle)] if bundle else []
        driver = psutil.Popen([sys.executable, "-c", DRIVER, *arguments], stdout=subprocess.PIPE, env=environment)
        cpu: dict[tuple[str, int], float] = {}
        largest = 0
        while driver.poll() is None:
            memory = 0
            for part, process in [*_of_driver(driver), *_of_executors(daemons)]:
                try:
                    times = process.cpu_times()
                    memory += process.memory_info().rss * part.startswith("driver")
                except psutil.Error:
                    continue
                cpu[part, process.pid] = times.user + times.system
            largest = max(largest, memory)
            time.sleep(0.5)  # each look at all processes takes CPU
        took = time.perf_counter() - begin
        if driver.returncode:
            raise RuntimeError("the driver failed: see its last line")
        files: list[str] = json.loads(driver.stdout.read())
    totals: Counter[str] = Counter()
    for (part, _), seconds in cpu.items():
        totals[part] += seconds  # type: ignore[assignment]
    by_part = "  ".join(f"{totals[part]:{len(part)}.1f}" for part in PARTS)
    return files, f"{took:8.1f} {_task_seconds(scratch / 'events'):6.1f}  {by_part}  {largest >> 20:10}"


def bare_python(scratch: Path) -> dict[str, str]:
    """Return the variables of a Python without packages, which this creates."""
    venv.create(scratch / "bare")
    return {
        "PATH": f"{scratch / 'bare' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": "",
        "PYSPARK_PYTHON": "",
    }


@contextmanager
def cluster(
    executors: int, scratch: Path, environment: dict[str, str], share: float | None = None, disk: Path | None = None
) -> Iterator[tuple[str, Sequence[psutil.Process]]]:
    """Start a master and workers with one core each, and yield its address and their processes."""
    daemons: list[psutil.Popen] = []

    def start(name: str, port: int, *arguments: str, **variables: str) -> None:
        command = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        with (scratch / f"{port}.log").open("w") as log:
            daemons.append(psutil.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment | variables))
        while not _listens(port):
            if daemons[-1].poll() is not None:
                raise RuntimeError((scratch / f"{port}.log").read_text()[-2000:])
            time.sleep(0.2)

    ports = [_free_port() for _ in range(executors + 2)]
    master = f"spark://127.0.0.1:{ports[0]}"
    try:
        web = ["--host", "127.0.0.1", "--port", str(ports[0]), "--webui-port", str(ports[1])]
        start("master.Master", ports[0], *web)
        for port in ports[2:]:
            limits = ["--cores", "1", "--memory", "2g", "--webui-port", str(port), "--work-dir", str(scratch / "work")]
            variables = {"SPARK_LOCAL_DIRS": str(disk)} if disk is not None and port == ports[2] else {}
            start("worker.Worker", port, *limits, master, **variables)
            if share is not None:
                _limit(daemons[-1], share)
        yield master, daemons
    finally:
        for daemon in daemons:
            daemon.terminate()
        psutil.wait_procs(daemons, timeout=30)
        for group in GROUPS.glob("recapture-*"):
            group.rmdir()


def _limit(process: psutil.Process, share: float) -> None:
    """Limit a process, and those that it will start, to a share of a core, which it gets before other programs."""
    group = GROUPS / f"recapture-{process.pid}"
    group.mkdir()
    for name, value in (
        ("cpu.cfs_quota_us", int(100_000 * share)),
        ("cpu.shares", 8192),
        ("cgroup.procs", process.pid),
    ):
        (group / name).write_text(str(value))


def _of_driver(driver: psutil.Process) -> Iterator[tuple[str, psutil.Process]]:
    yield PARTS[0], driver
    for process in _descendants(driver):
        yield PARTS[1], process


def _of_executors(daemons: Sequence[psutil.Process]) -> Iterator[tuple[str, psutil.Process]]:
    for daemon in daemons:
        for process in _descendants(daemon):
            yield PARTS[3 if "python" in _name(process) else 2], process


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.Error:
        return ""


def _task_seconds(events: Path) -> float:
    """Return the seconds from the start of the first task to the end of the last one."""
    [log] = events.iterdir()
    ends = [json.loads(line) for line in log.read_text().splitlines() if '"Event":"SparkListenerTaskEnd"' in line]
    tasks = [event["Task Info"] for event in ends]
    return float(max(task["Finish Time"] for task in tasks) - min(task["Launch Time"] for task in tasks)) / 1000


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    main()
