"""Keep a table up to date in a real Airflow, with history to compute, killed schedulers, an outage and late blobs.

PYTHONPATH=docker:spark_jobs:. .venv/bin/python -m benchmarks.airflow_updates [SLICES] [HOURS] [IDLE_UPDATES]

The archive has SLICES hours that have ended, as if Airflow had been down for them. Its storage has its own time, so
that hours pass in seconds: see `benchmarks.live_archive`. Airflow's own backfill computes 48 hours before them at the
same time. Meanwhile hours pass, and late blobs arrive for the newest one. The scheduler is killed once, and then killed
again and down for five hours. After that, HOURS more hours pass, each computed by an update of its own, and
IDLE_UPDATES updates have nothing to do. In the end, `airflow db clean` removes the history of Airflow, and one more
hour passes.

Prints what each update computed, how many runs the newest hour waited for, how many jobs the backfill took, and what
Airflow needs for each update. Exits with 1 if a slice is missing, the newest hour waited for more than one run, a run
of the backfill failed or took a job of its own, or updates without work leave anything but Airflow's own history.
"""

import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psutil

from benchmarks.airflow_growth import Needs, needs, per_run
from benchmarks.live_archive import LiveArchive
from embedded import session
from embedded.airflow import ENDED, Airflow
from recapture.definition.pipeline import Pipeline, load
from recapture.keep.due import SliceFacts, State, is_up_to_date, tick
from recapture.keep.sources import sources_of
from recapture.keep.state import read_state
from recapture.run.status import status
from recapture.run_files.planned import files_of
from recapture.time_model import ticks
from recapture.tools.sample import SampleEvent, capture_file
from tests.paths import ROOT
from tests.worlds import HOUR, World, blob_name, body

DAG, BACKFILL_DAG = "telemetry.update", "telemetry"
INTERVAL = timedelta(minutes=10)
"""Capture interval."""
MINUTES = timedelta(minutes=10)
"""Time of the storage after a whole hour when the updates begin: the last hour is complete."""
AT_MOST_SLICES = 40
BACKFILLED = 48
"""Number of hours that Airflow's own backfill computes."""
BETWEEN_CHANGES = 0.1
"""Share of the history that is computed between two changes of the newest hour: an hour passes, or a blob is late."""
HOURS_DOWN = 5
SECONDS_OF_HOUR_DOWN = 6
KILLED_AT, DOWN_AT = 0.25, 0.6
"""Shares of the history that are published when the scheduler is killed, and killed and down."""
LOOK_SECONDS = 4
CLEANED = timedelta(minutes=5)
"""Age of the history that `airflow db clean` removes: it also removes a scheduler that has been silent for so long, and
a DAG that was not parsed since."""
SAMPLES = 6
"""Number of measurements of what Airflow needs, in each phase."""
OWN = ("table xcom: rows", "run files: number", "table: number")
"""Needs that no update without work may add to."""
MOST_OPEN_FILES = 0.05
"""Largest growth of the open files that is taken for noise, for each update."""


@dataclass(frozen=True)
class Change:
    """A change of the newest hour: it passed, or one of its blobs came late."""

    what: str
    at: datetime
    """Time of this machine."""
    start: int
    """Start of the hour, in ticks."""
    name: str
    """Name of a blob that the hour reads now."""
    etag: str

    def is_computed(self, state: State) -> bool:
        """Return whether the hour is up to date."""
        return is_up_to_date(state.slices.get(self.start, SliceFacts()))


class Capture:
    """What Event Hubs Capture writes: a blob with an event for every interval."""

    def __init__(self, archive: LiveArchive) -> None:
        self.archive = archive
        self.changes: list[Change] = []

    def write(self, start: datetime, end: datetime) -> None:
        """Write the blobs of whole hours."""
        arrival = start + INTERVAL / 2
        while arrival < end:
            self._put(arrival, f"device-{arrival.minute // 10}")
            arrival += INTERVAL

    def pass_hour(self, what: str = "hour") -> None:
        """Let an hour pass."""
        self.archive.pass_time(HOUR)
        self._change(what, HOUR - INTERVAL / 2)

    def late_blob(self) -> None:
        """Replace a blob of the newest complete hour: it has another event now."""
        number = sum(change.what == "late blob" for change in self.changes)
        after = INTERVAL / 2 + number % 6 * INTERVAL
        self._put(self._newest_hour() + after, f"late-{number}")
        self._change("late blob", after)

    def _newest_hour(self) -> datetime:
        return self.archive.now.replace(minute=0, second=0, microsecond=0) - HOUR

    def _change(self, what: str, after: timedelta) -> None:
        hour = self._newest_hour()
        found = self.archive.find(blob_name("0", hour + after - INTERVAL))
        assert found is not None
        start = ticks.from_datetime(hour)
        self.changes.append(Change(what, datetime.now(UTC), start, found[0].name, found[0].etag))
        print(f"{what}: {ticks.to_text(start)}", flush=True)

    def _put(self, arrival: datetime, device: str) -> None:
        opened = arrival - INTERVAL
        number = int(arrival.timestamp() / INTERVAL.total_seconds())
        event = SampleEvent(number, str(number * 100), opened, body(device, arrival, 20.0))
        self.archive.put(blob_name("0", opened), capture_file([event]), arrival)


@dataclass
class Deployment:
    """A pipeline in a running Airflow."""

    airflow: Airflow
    capture: Capture
    pipeline: Pipeline
    first: datetime
    """Start of the first hour that the updates keep."""
    slices: int
    """Number of these hours that have ended at first."""
    folders: Mapping[str, Path]
    """Folders that are measured."""

    def state(self) -> State:
        return read_state(self.pipeline, sources_of(self.pipeline), datetime.now(UTC)).state

    def catch_up(self) -> None:
        """Let updates compute the history, with everything that happens meanwhile."""
        happens: list[tuple[float, Callable[[], None]]] = [(KILLED_AT, self.kill_scheduler), (DOWN_AT, self.go_down)]
        capture, printed = self.capture, ""
        changes, changes_at = 0, 0.0
        while True:
            self.airflow.keep_running()
            state = self.state()
            computed = [start for start, facts in state.slices.items() if facts.run is not None]
            share = sum(start >= state.since for start in computed) / self.slices
            history = BACKFILLED - sum(start < state.since for start in computed)
            if printed != (progress := f"published {share:.0%}, for the backfill {history}"):
                printed = progress
                print(printed, flush=True)
            if happens and share >= happens[0][0]:
                happens.pop(0)[1]()
            elif share >= changes_at and all(change.is_computed(state) for change in capture.changes):
                capture.late_blob() if changes % 2 else capture.pass_hour()
                changes, changes_at = changes + 1, share + BETWEEN_CHANGES
            elif not (happens or is_due(state) or history) and self.running(BACKFILL_DAG) == 0:
                return
            time.sleep(LOOK_SECONDS)

    def kill_scheduler(self) -> None:
        """Kill the scheduler, with all tasks that it runs."""
        print("the scheduler is killed", flush=True)
        for process in session.members(self.airflow._servers["scheduler"]._process.pid):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)

    def go_down(self) -> None:
        """Kill the scheduler, let hours pass, and start it again."""
        self.kill_scheduler()
        for _ in range(HOURS_DOWN):
            time.sleep(SECONDS_OF_HOUR_DOWN)
            self.capture.pass_hour("hour without a scheduler")
        print("the scheduler is started again", flush=True)

    def running(self, dag: str) -> int:
        """Return the number of runs of a DAG that have not ended."""
        path = f"/api/v2/dags/{dag}/dagRuns?state=running&state=queued&limit=1"
        return int(self.airflow._call("GET", path)["total_entries"])

    def until(self, is_reached: Callable[[], bool]) -> None:
        while not is_reached():
            self.airflow.keep_running()
            time.sleep(0.5)

    def hour(self) -> None:
        """Let an hour pass, and wait until updates have computed it."""
        self.capture.pass_hour()
        self.airflow.trigger(DAG, {})
        self.until(lambda: self.capture.changes[-1].is_computed(self.state()))

    def idle(self) -> None:
        """Run an update that has nothing to do."""
        path = f"/api/v2/dags/{DAG}/dagRuns/{self.airflow.trigger(DAG, {})}"
        self.until(lambda: self.airflow._call("GET", path)["state"] in ENDED)

    def measured(self) -> tuple[int, Needs]:
        """Return the number of updates so far, and what Airflow needs while it runs none of them."""
        while True:
            self.until(lambda: self.running(DAG) == 0)
            sample = len(dag_runs(self.airflow, DAG)), needs(self.airflow, self.folders)
            if self.running(DAG) == 0:
                return sample

    def grown(self, what: str, action: Callable[[], None], times: int) -> Needs:
        """Do something a number of times, and print and return how much each need grows with an update."""
        samples = [self.measured()]
        for number in range(times):
            action()
            if (number + 1) * SAMPLES // times > number * SAMPLES // times:
                samples.append(self.measured())
        (before, first), (after, last) = samples[0], samples[-1]
        grown = per_run(samples)
        print(f"{what}: {after - before} updates: need, first, last, for each update", flush=True)
        for name, slope in grown.items():
            if slope or name.endswith((": MiB", ": files", ": threads")):
                print(f"  {name:40} {first[name]:10,.1f} {last[name]:10,.1f} {slope:10.3f}", flush=True)
        return grown

    def clean(self) -> None:
        """Remove the older history of Airflow, and print the tables that have fewer rows than before."""
        _, before = self.measured()
        before_time = f"{datetime.now(UTC) - CLEANED:%Y-%m-%dT%H:%M:%S+00:00}"
        self.airflow.run("db", "clean", "--clean-before-timestamp", before_time, "--skip-archive", "--yes")
        _, after = self.measured()
        tables = [name for name in before if name.startswith("table ") and name.endswith(": rows")]
        fewer = {name: (before[name], after[name]) for name in tables if after[name] < before[name]}
        print(json.dumps({"airflow db clean": fewer}), flush=True)


def is_due(state: State) -> bool:
    due = tick(state)
    return bool(due.ranges or due.left)


def dag_runs(airflow: Airflow, dag: str) -> list[dict[str, Any]]:
    """Return the runs of a DAG, in order of time."""
    found: list[dict[str, Any]] = []
    for offset in itertools.count(0, 100):
        path = f"/api/v2/dags/{dag}/dagRuns?order_by=start_date&limit=100&offset={offset}"
        page = airflow._call("GET", path)["dag_runs"]
        found += page
        if len(page) < 100:
            break
    return found


def backfilled(airflow: Airflow) -> tuple[Counter[str], list[str]]:
    """Return how many runs of Airflow's backfill ended how, and the ranges of the jobs that computed their slices."""
    runs = dag_runs(airflow, BACKFILL_DAG)
    states = Counter(run["state"] for run in runs if run["run_type"] == "backfill")
    jobs = []
    for run in runs:
        with suppress(httpx.HTTPStatusError):  # a run that is skipped plans nothing
            jobs.append(airflow.result(BACKFILL_DAG, run["dag_run_id"], "plan"))
    return states, sorted(job.rpartition("-")[0] for job in jobs)


def computing_runs(airflow: Airflow, pipeline: Pipeline) -> list[dict[str, Any]]:
    """Return the updates that computed something, in order of time, each with its range and its blobs."""
    computed = []
    for run in dag_runs(airflow, DAG):
        with suppress(httpx.HTTPStatusError):
            run["due"] = airflow.result(DAG, run["dag_run_id"], "due")
            run["blobs"] = blobs_of(pipeline, airflow.result(DAG, run["dag_run_id"], "plan"))
            computed.append(run)
    return computed


def blobs_of(pipeline: Pipeline, run: str) -> set[tuple[str, str]]:
    """Return the names and etags of the blobs that a run read."""
    manifest = files_of(pipeline, run).find_manifest()
    planned_inputs = manifest.inputs if manifest else ()
    return {(pinned.blob.name, pinned.blob.etag) for planned in planned_inputs for pinned in planned.blobs}


def waited(runs: list[dict[str, Any]], change: Change) -> int | None:
    """Return how many runs ended between a change and the end of the run that read it; None if no run read it."""
    before = 0
    for run in runs:
        if (change.name, change.etag) in run["blobs"]:
            return before
        before += datetime.fromisoformat(run["end_date"]) > change.at
    return None


def world(home: Path, container: str, first: datetime) -> None:
    """Write the pipeline file into the DAG folder; updates keep `first` and later slices."""
    archive = World(home)
    archive.define(eventsLateArrivalMaxDelayInSeconds=0)
    sections = archive.sections()
    schedule = {"since": f"{first:%Y-%m-%dT%H:%M:%SZ}", "every_minutes": 1, "quiet_minutes": 0}
    archive.amend(
        engine="processes",
        schedule=schedule | {"at_most_slices": AT_MOST_SLICES},
        input=sections["input"]
        | {"container": container, "empty_blobs": True}
        | {"capture_interval_seconds": int(INTERVAL.total_seconds())},
        output=sections["output"] | {"table": archive.table.as_uri()},
    )
    folder = home / "dags" / "pipelines"
    shutil.copytree(ROOT / "dags", home / "dags", ignore=shutil.ignore_patterns("__pycache__", "telemetry.yaml"))
    shutil.move(archive.file, folder / "telemetry.yaml")
    for name in ("plugins", "spark_jobs"):  # so that an edit of the checkout does not change what is measured
        shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))


def main(slices: int = 200, hours: int = 20, idle_updates: int = 80) -> int:
    """Run the updates, and return the exit code."""
    began, home = time.monotonic(), Path(tempfile.mkdtemp(prefix="recapture-updates-"))
    home.chmod(0o711)
    passing = (round(1 / BETWEEN_CHANGES) + HOURS_DOWN + hours + 2) * HOUR
    end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - passing
    archive, first = LiveArchive(end + MINUTES), end - slices * HOUR
    capture = Capture(archive)
    capture.write(first - BACKFILLED * HOUR, end + passing)
    environment: Mapping[str, str] = {
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins"),
        "PYTHONPATH": os.pathsep.join([str(home / "spark_jobs"), str(ROOT)]),
    }
    (home / "airflow").mkdir()
    with archive.served():
        world(home, archive.url, first)
        pipeline = load(home / "dags" / "pipelines" / "telemetry.yaml")
        with Airflow(environment, schedule=True, homes=home / "airflow") as airflow:
            print(f"Airflow is healthy after {time.monotonic() - began:.0f} s", flush=True)
            folders = {"run files": home / "table" / "_recapture", "table": home / "table"}
            folders |= {"task logs": home / "airflow" / "1" / "logs"}
            deployment = Deployment(airflow, capture, pipeline, first, slices, folders)
            airflow.unpause(BACKFILL_DAG)
            airflow.backfill(BACKFILL_DAG, (first - BACKFILLED * HOUR).isoformat(), (first - HOUR).isoformat())
            airflow.unpause(DAG)
            deployment.catch_up()
            print(f"the history is computed after {time.monotonic() - began:.0f} s", flush=True)
            deployment.grown("hours that pass", deployment.hour, hours)
            idle = deployment.grown("nothing to do", deployment.idle, idle_updates)
            runs, (states, jobs) = computing_runs(airflow, pipeline), backfilled(airflow)
            deployment.clean()
            deployment.hour()
        for run in runs:
            bounds = [run["due"][name] for name in ("from", "to")]
            print(run["dag_run_id"][:45], run["state"], *bounds, run["start_date"], run["end_date"])
        waits = [(change.what, waited(runs, change)) for change in capture.changes[:-1]]
        published = {slice_["slice_start"] for slice_ in status(pipeline)["slices"] if slice_["run"]}
        missing = is_due(deployment.state())
    few_jobs = states == {"success": BACKFILLED} and len(jobs) <= BACKFILLED // AT_MOST_SLICES + 2
    is_late = any(wait is None or wait > 1 for _, wait in waits)
    passed = sum("hour" in change.what for change in capture.changes)
    files = {name: slope for name, slope in idle.items() if name.endswith(": files")}
    files.pop("postgres: files", None)  # its connections keep files of tables open as long as they like
    open_files = sum(files.values())
    leaves = {name: idle[name] for name in OWN if idle[name]}
    print(json.dumps({"runs before the newest hour": waits, "backfill": states, "jobs": jobs}))
    print(json.dumps({"published": len(published), "of": slices + BACKFILLED + passed, "slices are due": missing}))
    print(
        json.dumps({"minutes": round((time.monotonic() - began) / 60, 1), "an idle update leaves": leaves}), flush=True
    )
    shutil.rmtree(home, ignore_errors=True)
    is_incomplete = missing or len(published) < slices + BACKFILLED + passed
    return int(is_incomplete or is_late or not few_jobs or bool(leaves) or open_files > MOST_OPEN_FILES)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
