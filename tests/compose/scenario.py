"""Start the services of compose.yaml, backfill an hour with Spark, and start them again with the same volumes."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from tests.compose import stand_ins
from tests.compose.containers import Project
from tests.compose.image import saved
from tests.compose.project import services
from tests.paths import ROOT

COMPOSE = ROOT / "docker" / "compose.yaml"
PIPELINE = "telemetry"


def run(folder: Path) -> int:
    """Run the scenario with the image in a folder, and print what happens. Return 0 if all is as it should be."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    scratch = folder / "project"
    shutil.rmtree(scratch, ignore_errors=True)
    [recapture] = {image for service in services(COMPOSE, {}) if (image := service.image).startswith("recapture:")}
    images = {
        recapture: saved(folder / "stages" / "image.json"),
        "mcr.microsoft.com/azure-storage/azurite:3.35.0": stand_ins.azurite(folder / "base", folder),
        "postgres:18.4-alpine": stand_ins.postgres(folder / "base", folder),
    }
    project = Project(services(COMPOSE, {}), images, scratch)
    try:
        print("up", flush=True)
        project.up()
        passwords = (project.volume("secrets") / "passwords.json").read_text()
        run_id, report = _backfill(json.loads(passwords)["admin"])
        _print(run_id, report)
        _print_spark()
        project.down()
        print("up again, with the same volumes", flush=True)
        project.up()
        assert passwords == (project.volume("secrets") / "passwords.json").read_text(), "the password is kept"
        with _signed_in(json.loads(passwords)["admin"]) as client:
            state = _call(client, "GET", f"/api/v2/dags/{PIPELINE}/dagRuns/{run_id}")["state"]
            print(f"the earlier run is {state}", flush=True)
    except (AssertionError, RuntimeError, httpx.HTTPError) as error:
        print(f"FAILED  {type(error).__name__}: {error}", flush=True)
        for container in project.containers.values():
            print(f"--- {container.service.name} ---\n{container.tail()}", flush=True)
        return 1
    finally:
        project.down()
    print("all services start, compute and start again", flush=True)
    return 0


@contextmanager
def _signed_in(password: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url="http://127.0.0.1:8080", timeout=120, trust_env=False) as client:
        answer = client.post("/auth/token", json={"username": "admin", "password": password}).raise_for_status()
        client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
        yield client


def _call(client: httpx.Client, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
    return client.request(method, path, json=body).raise_for_status().json()


def _backfill(password: str) -> tuple[str, dict[str, Any]]:
    """Compute the first complete hour of the sample by hand; return the id of the DAG run, and what the run reports."""
    first = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=5)
    conf = {"from": first.isoformat(), "to": (first + timedelta(hours=1)).isoformat()}
    with _signed_in(password) as client:
        deadline = time.monotonic() + 120
        while client.patch(f"/api/v2/dags/{PIPELINE}", json={"is_paused": False}).status_code == 404:
            if time.monotonic() > deadline:
                raise RuntimeError(f"no DAG: {_call(client, 'GET', '/api/v2/importErrors')}")
            time.sleep(1)
        runs = f"/api/v2/dags/{PIPELINE}/dagRuns"
        run_id: str = _call(client, "POST", runs, {"logical_date": None, "conf": conf})["dag_run_id"]
        deadline = time.monotonic() + 900
        while (state := _call(client, "GET", f"{runs}/{run_id}")["state"]) not in ("success", "failed"):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the run {run_id} is still {state}")
            time.sleep(2)
        tasks = _call(client, "GET", f"{runs}/{run_id}/taskInstances")["task_instances"]
        for task in sorted(tasks, key=lambda task: task["start_date"] or ""):
            print(f"  {task['task_id']:<22} {task['state']:<10} {task['duration'] or 0:6.1f} s", flush=True)
        if state == "failed":
            for task in tasks:
                if task["state"] == "failed":
                    log = f"{runs}/{run_id}/taskInstances/{task['task_id']}/logs/{task['try_number']}?full_content=true"
                    print("\n".join(str(entry)[:300] for entry in _call(client, "GET", log)["content"][-40:]))
            raise RuntimeError(f"the run {run_id} failed")
        path = f"{runs}/{run_id}/taskInstances/report/xcomEntries/return_value?deserialize=true"
        return run_id, _call(client, "GET", path)["value"]


def _print(run_id: str, report: Mapping[str, Any]) -> None:
    events, rows = report["metrics"]["InputEvents"], report["metrics"]["OutputEvents"]
    verdict = report["quality"]["verdict"]
    print(f"  run {run_id}: {events} events, audit {verdict}, {rows} rows published", flush=True)
    assert events > 0
    assert rows > 0


def _print_spark() -> None:
    """Print what the master says: both workers, and the application that computed the rows."""
    master = httpx.get("http://127.0.0.1:8081/json/", trust_env=False).json()
    print(
        f"  Spark: {master['aliveworkers']} workers, {len(master['completedapps'])} application completed", flush=True
    )
    assert master["aliveworkers"] == 2
    assert len(master["completedapps"]) == 1
