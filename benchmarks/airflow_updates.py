"""Keep a table up to date in a real Airflow, with history to compute, killed schedulers and late blobs.

PYTHONPATH=docker:spark_jobs:. .venv/bin/python -m benchmarks.airflow_updates [SLICES] [IDLE_MINUTES]

The archive has SLICES hours that end now, as if Airflow had been down for them, and goes on. Airflow's own backfill
computes 48 hours before them at the same time. Meanwhile the scheduler is killed twice, the second time for three
minutes, and late blobs arrive for the newest complete hour. Prints what each update computed, how many runs the newest
hour waited for, how many jobs the backfill took, and what Airflow needs. Exits with 1 if a slice is missing, the newest
hour waited for more than one run, or a run of the backfill failed or took a job of its own.
"""

import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg2

from embedded import session
from embedded.airflow import Airflow
from recapture.definition.pipeline import Pipeline, load
from recapture.keep.due import tick
from recapture.keep.sources import sources_of
from recapture.keep.state import read_state
from recapture.run.status import status
from recapture.run_files.planned import files_of
from recapture.storage import open_container
from tests.paths import ROOT
from tests.worlds import HOUR, World, body

DAG, BACKFILL_DAG = "telemetry.update", "telemetry"
INTERVAL = timedelta(minutes=10)
"""Capture interval."""
LIVE_SECONDS = 60
"""Time from one live blob to the next: Capture also writes a blob when it is full."""
AT_MOST_SLICES = 40
BACKFILLED = 48
"""Number of hours that Airflow's own backfill computes."""
LOOK_SECONDS = 15
DOWN = timedelta(minutes=3)
MOST_LATE = 5
"""Number of late blobs: at most those of an hour, because each replaces another one."""
MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Late:
    """Blob that arrived for the newest complete hour."""

    at: datetime
    name: str
    etag: str


@dataclass
class Measured:
    """What was measured while the updates ran."""

    late: list[Late] = field(default_factory=list)
    needs: list[dict[str, float]] = field(default_factory=list)


def write_blob(archive: World, arrival: datetime, device: str) -> Path:
    """Write a blob with an event of a device. Its sequence number follows from its arrival."""
    number = int(arrival.timestamp() / INTERVAL.total_seconds())
    return archive.put("0", arrival, [body(device, arrival, 20.0)], number, arrival - INTERVAL)


def write_blobs(archive: World, start: datetime, end: datetime) -> None:
    """Write a blob for every interval."""
    arrival = start + INTERVAL / 2
    while arrival < end:
        write_blob(archive, arrival, f"device-{arrival.minute // 10}")
        arrival += INTERVAL


def world(home: Path, first: datetime, end: datetime) -> World:
    """Write the archive of the hours up to `end`, and the pipeline file in the DAG folder; updates keep `first`."""
    archive = World(home)
    write_blobs(archive, first - BACKFILLED * HOUR, end)
    archive.define(eventsLateArrivalMaxDelayInSeconds=0)
    sections = archive.sections()
    schedule = {"since": f"{first:%Y-%m-%dT%H:%M:%SZ}", "every_minutes": 1, "quiet_minutes": 0}
    archive.amend(
        engine="processes",
        schedule=schedule | {"at_most_slices": AT_MOST_SLICES},
        input=sections["input"]
        | {"container": archive.capture.as_uri(), "empty_blobs": True}
        | {"capture_interval_seconds": int(INTERVAL.total_seconds())},
        output=sections["output"] | {"table": archive.table.as_uri()},
    )
    folder = home / "dags" / "pipelines"
    shutil.copytree(ROOT / "dags", home / "dags", ignore=shutil.ignore_patterns("__pycache__", "telemetry.yaml"))
    shutil.move(archive.file, folder / "telemetry.yaml")
    return archive


@contextmanager
def capturing(archive: World) -> Iterator[None]:
    """Write an empty blob every LIVE_SECONDS."""
    stopped = threading.Event()

    def write() -> None:
        while not stopped.wait(LIVE_SECONDS):
            now = datetime.now(UTC)
            archive.put("0", now, opened=now - timedelta(seconds=LIVE_SECONDS))

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def late_blob(archive: World, number: int) -> Late:
    """Replace a blob of the newest complete hour: it has another event now."""
    now = datetime.now(UTC)
    hour = (now - 2 * INTERVAL).replace(minute=0, second=0, microsecond=0) - HOUR
    path = write_blob(archive, hour + INTERVAL / 2 + number * INTERVAL, f"late-{number}")
    (blob,) = open_container(archive.capture.as_uri()).list(str(path.relative_to(archive.capture)))
    return Late(now, blob.name, blob.etag)


def dag_runs(airflow: Airflow, dag: str) -> list[dict[str, Any]]:
    """Return the runs of a DAG, in order of time."""
    found: list[dict[str, Any]] = []
    for offset in itertools.count(0, 100):
        path = f"/api/v2/dags/{dag}/dagRuns?order_by=start_date&limit=100&offset={offset}"
        page = airflow._call("GET", path)["dag_runs"]
        found += page
        if not page:
            break
    return found


def backfilled(airflow: Airflow) -> dict[str, Any]:
    """Return how many runs of Airflow's backfill ended how, and the ranges of the jobs that computed their slices."""
    runs = dag_runs(airflow, BACKFILL_DAG)
    states: dict[str, int] = defaultdict(int)
    jobs = []
    for run in runs:
        if run["run_type"] == "backfill":
            states[run["state"]] += 1
        with suppress(httpx.HTTPStatusError):  # a run that is skipped plans nothing
            jobs.append(airflow.result(BACKFILL_DAG, run["dag_run_id"], "plan"))
    return {"states": dict(states), "jobs": sorted(job.rpartition("-")[0] for job in jobs)}


def runs_of(airflow: Airflow) -> list[dict[str, Any]]:
    """Return the updates that computed something, in order of time, each with its range."""
    found = dag_runs(airflow, DAG)
    computed = []
    for run in found:
        with suppress(Exception):
            run["due"] = airflow.result(DAG, run["dag_run_id"], "due")
            run["run"] = airflow.result(DAG, run["dag_run_id"], "plan")
            computed.append(run)
    return [{"updates": len(found)}, *computed]


def needs(airflow: Airflow, began: float) -> dict[str, float]:
    """Return what Airflow needs now: memory and open files of its servers, and the size of its database."""
    members = [
        process
        for name, server in airflow._servers.items()
        if name != "postgres"
        for process in session.members(server._process.pid)
    ]
    memory, files = 0, 0
    for process in members:
        with suppress(psutil.NoSuchProcess):
            memory, files = memory + process.memory_info().rss, files + process.num_fds()
    with psycopg2.connect(airflow._database.url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        size = cursor.fetchone()[0]
        cursor.execute("SELECT COUNT(*) FROM dag_run WHERE dag_id = %s", (DAG,))
        updates = cursor.fetchone()[0]
        cursor.execute("SELECT SUM(n_live_tup) FROM pg_stat_user_tables")
        rows = int(cursor.fetchone()[0])
    return {
        "minute": round((time.monotonic() - began) / 60, 1),
        "updates": updates,
        "MiB": memory // MEBIBYTE,
        "files": files,
        "database MiB": round(size / MEBIBYTE, 1),
        "database rows": rows,
    }


def kill(airflow: Airflow, name: str) -> None:
    """Kill a server of Airflow, with all that it started."""
    for process in session.members(airflow._servers[name]._process.pid):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)


def blobs_of(pipeline: Pipeline, run: str) -> set[tuple[str, str]]:
    """Return the names and etags of the blobs that a run read."""
    manifest = files_of(pipeline, run).find_manifest()
    planned_inputs = manifest.inputs if manifest else ()
    return {(pinned.blob.name, pinned.blob.etag) for planned in planned_inputs for pinned in planned.blobs}


def waited(runs: list[dict[str, Any]], late: Late) -> int | None:
    """Return how many runs ended between a late blob and the one that read it; None if no run read it."""
    before = 0
    for run in runs:
        if (late.name, late.etag) in run["blobs"]:
            return before
        before += datetime.fromisoformat(run["end_date"]) > late.at
    return None


def main(slices: int, idle_minutes: float) -> int:
    """Run the updates, and return the exit code."""
    home = Path(tempfile.mkdtemp(prefix="recapture-updates-"))
    home.chmod(0o711)
    began, measured = time.monotonic(), Measured()
    now = datetime.now(UTC)
    first = now.replace(minute=0, second=0, microsecond=0) - slices * HOUR
    archive = world(home, first, now)
    pipeline = load(home / "dags" / "pipelines" / "telemetry.yaml")
    for folder in ("plugins", "spark_jobs"):  # so that an edit of the checkout does not change what is measured
        shutil.copytree(ROOT / folder, home / folder, ignore=shutil.ignore_patterns("__pycache__"))
    environment: Mapping[str, str] = {
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins"),
        "PYTHONPATH": os.pathsep.join([str(home / "spark_jobs"), str(ROOT)]),
    }
    (home / "airflow").mkdir()
    with capturing(archive), Airflow(environment, schedule=True, homes=home / "airflow") as airflow:
        print(f"Airflow is healthy after {time.monotonic() - began:.0f} s", flush=True)
        airflow.unpause(BACKFILL_DAG)
        airflow.backfill(BACKFILL_DAG, (first - BACKFILLED * HOUR).isoformat(), (first - HOUR).isoformat())
        airflow.unpause(DAG)
        kills = {0.25: timedelta(), 0.6: DOWN}
        caught_up: float | None = None
        up_at = 0.0
        while caught_up is None or time.monotonic() - caught_up < 60 * idle_minutes:
            time.sleep(LOOK_SECONDS)
            is_up = time.monotonic() >= up_at
            if is_up:
                airflow.keep_running()
            measured.needs.append(needs(airflow, began))
            print(json.dumps(measured.needs[-1]), flush=True)
            state = read_state(pipeline, sources_of(pipeline), datetime.now(UTC)).state
            computed = [start for start, facts in state.slices.items() if facts.run is not None]
            share, due = sum(start >= state.since for start in computed) / slices, tick(state)
            left = len(due.left) + sum(len(range_.slices) for range_ in due.ranges)
            history = BACKFILLED - sum(start < state.since for start in computed)
            print(f"published {share:.0%}, due {left}, for the backfill {history}", flush=True)
            for at in [at for at in kills if is_up and share >= at][:1]:
                pause = kills.pop(at)
                print(f"the scheduler is killed, and is down for {pause}", flush=True)
                kill(airflow, "scheduler")
                up_at = time.monotonic() + pause.total_seconds()
            if is_up and share > 0.1 * (len(measured.late) + 1) and len(measured.late) < MOST_LATE:
                measured.late.append(late_blob(archive, len(measured.late)))
                print(f"a late blob: {measured.late[-1].name}", flush=True)
            if caught_up is None and not (left or kills or history > 0):
                caught_up, idle = time.monotonic(), measured.needs[-1]
        counted, *runs = runs_of(airflow)
        final, jobs = needs(airflow, began), backfilled(airflow)
    for run in runs:
        bounds = [run["due"][name] for name in ("from", "to")]
        print(run["dag_run_id"][:45], run["state"], *bounds, run["start_date"], run["end_date"])
        run["blobs"] = blobs_of(pipeline, run["run"])
    waits = [waited(runs, late) for late in measured.late]
    ticks = final["updates"] - idle["updates"]
    grown = {name: round((final[name] - idle[name]) / ticks, 2) for name in idle if name != "updates"} if ticks else {}
    print(json.dumps({"backfill": jobs["states"], "jobs": jobs["jobs"], "per idle update": grown}))
    published = {slice_["slice_start"] for slice_ in status(pipeline)["slices"] if slice_["run"]}
    first = datetime.now(UTC)
    state = read_state(pipeline, sources_of(pipeline), first).state
    missing = [r for r in tick(state).ranges]
    print(json.dumps({"updates": counted["updates"], "computed": len(runs), "published": len(published)}))
    print(f"runs before the newest hour: {waits}; ranges that are due: {missing}; at the end: {final}", flush=True)
    shutil.rmtree(home, ignore_errors=True)
    few_jobs = jobs["states"] == {"success": BACKFILLED} and len(jobs["jobs"]) <= BACKFILLED // AT_MOST_SLICES + 2
    is_late = any(wait is None or wait > 1 for wait in waits)
    return int(bool(missing) or len(published) < slices + BACKFILLED or is_late or not few_jobs)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200, float(sys.argv[2]) if len(sys.argv) > 2 else 10))
