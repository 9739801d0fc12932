"""Airflow as plain processes: api-server, scheduler, DAG processor and triggerer, on PostgreSQL."""

import fcntl
import itertools
import json
import os
import secrets
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import httpx

from embedded.java import java_home
from embedded.postgres import Postgres
from embedded.process import CACHE, ROOT, Server, run_once, start_on_free_port, stop_all

USER = "admin"
PARTS = ("metadatabase", "scheduler", "triggerer", "dag_processor")
"""Parts of Airflow that its health check reports."""
API_SERVER = "api-server"
COMPONENTS = {
    API_SERVER: (),
    "scheduler": ("--skip-serve-logs",),
    "dag-processor": (),
    "triggerer": ("--skip-serve-logs",),
}
"""Airflow's commands and their options.

Airflow's log servers are off, because they can only listen on all addresses. The api-server reads the logs from the
disk.
"""
PROGRAM = [sys.executable, "-P", str(Path(__file__).with_name("airflow_command.py"))]
"""What runs Airflow's commands."""
NO_LOG_SERVER = "1"
"""Port on which nothing listens. The api-server requests the newest log lines of a running task from it."""
HEARTBEAT_SECONDS = "2"
"""Minimum number of seconds between the heartbeats of a task.

Airflow may notice only at the next heartbeat that the process of a task has ended. If a person answers the task's
question before that, Airflow retries the task a minute later.
"""
ENDED = ("success", "failed")
"""States of a run that has ended."""
TASK_ENDED = (*ENDED, "upstream_failed", "skipped", "removed")
"""States of a task that has ended."""


class Airflow:
    """Context manager for a running Airflow with the dags and plugins of this checkout.

    Every start creates a new database, in a folder that no other running Airflow uses. Airflow and its tasks get the
    environment of this process and `env`. Without `schedule`, only triggered runs start. The folder of the
    database is in `databases`, or with the system's temporary files.
    """

    def __init__(
        self, env: Mapping[str, str], *, schedule: bool, homes: Path = CACHE / "airflow", databases: Path | None = None
    ) -> None:
        self.port = 0
        """Port of the web interface; 0 before the start."""
        self.password = secrets.token_urlsafe(12)
        self._homes, self._databases = homes, databases
        self._env = env
        self._schedule = schedule
        self._client: httpx.Client
        self._database: Postgres
        self._servers: dict[str, Server] = {}
        self._passwords = Path()
        """File from which Airflow reads the password of its user, at every sign-in."""
        self._environment: dict[str, str] = {}
        """Environment of Airflow's commands."""
        self._started = ExitStack()

    @property
    def url(self) -> str:
        """URL of the web interface."""
        return f"http://127.0.0.1:{self.port}"

    def _settings(self, home: Path) -> dict[str, str]:
        database = self._database.url
        settings = {
            "CORE__DAGS_FOLDER": str(ROOT / "dags"),
            "CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
            "CORE__EXECUTOR": "LocalExecutor",
            "CORE__PARALLELISM": "4",
            "CORE__LOAD_EXAMPLES": "False",
            "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self._passwords),
            "CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "DATABASE__SQL_ALCHEMY_CONN": database.replace("postgresql", "postgresql+psycopg2", 1),
            "DATABASE__SQL_ALCHEMY_CONN_ASYNC": database.replace("postgresql", "postgresql+asyncpg", 1),
            "DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
            "API__HOST": "127.0.0.1",
            "API__PORT": str(self.port),
            "API__BASE_URL": self.url,
            "DAG_PROCESSOR__REFRESH_INTERVAL": "20",
            "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
            "SCHEDULER__USE_JOB_SCHEDULE": str(self._schedule),
            "WORKERS__MIN_HEARTBEAT_INTERVAL": HEARTBEAT_SECONDS,
            "LOGGING__WORKER_LOG_SERVER_PORT": NO_LOG_SERVER,
            "LOGGING__TRIGGER_LOG_SERVER_PORT": NO_LOG_SERVER,
        }
        return {f"AIRFLOW__{name}": value for name, value in settings.items()} | {
            "AIRFLOW_HOME": str(home),
            "JAVA_HOME": str(java_home()),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONUTF8": "1",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def __enter__(self) -> Self:
        start_on_free_port(self._start)
        return self

    def _start(self, port: int) -> None:
        self.port = port
        with ExitStack() as started:
            self._client = httpx.Client(base_url=self.url, timeout=30, trust_env=False)
            started.callback(self._client.close)
            home, lock = reserve_home(self._homes)
            started.callback(os.close, lock)
            self._database = Postgres(home / "database", home / "postgres.log", [lock], self._databases)
            started.enter_context(self._database)
            self._passwords = home / "passwords.json"
            self._write_password()
            self._environment = {**os.environ, **self._settings(home), **self._env}
            self.run("db", "migrate")  # on the first start, this also makes the configuration with its keys
            self._servers.clear()
            started.callback(lambda: stop_all(self._servers.values()))
            for component, options in COMPONENTS.items():
                command, log = [*PROGRAM, component, *options], home / f"{component}.log"
                self._servers[component] = Server(f"Airflow's {component}", command, self._environment, log, [lock])

            def ready() -> bool:
                for server in self._servers.values():
                    server.require_running()
                return self._healthy() and self.port in self._servers[API_SERVER].ports()

            self._servers[API_SERVER].wait_until(ready, 180)
            self._sign_in()
            for pool in ("spark", "processes", "history"):
                self._call("POST", "/api/v2/pools", {"name": pool, "slots": 1})
            self.connect("spark_default", conn_type="spark", host="local[*]")
            self._started = started.pop_all()

    def __exit__(self, *error: object) -> None:
        self._started.close()

    def keep_running(self) -> None:
        """Start servers of Airflow again that have ended, as a service manager does.

        Raise RuntimeError if the database's server has ended, or a server of Airflow ends again and again.
        """
        self._database.require_running()
        for server in self._servers.values():
            server.keep_running()

    def run(self, *command: str) -> None:
        """Run a command of Airflow's. Raise RuntimeError, with its last lines, if it fails."""
        run_once(f"airflow {' '.join(command)}", [*PROGRAM, *command], self._environment)

    def connect(self, connection: str, **fields: str) -> None:
        """Create a connection. Airflow stores its password and its extra encrypted."""
        self._call("POST", "/api/v2/connections", {"connection_id": connection, **fields})

    @property
    def token(self) -> str:
        """Token of the signed-in user."""
        return self._client.headers["Authorization"].removeprefix("Bearer ")

    def unpause(self, dag: str) -> None:
        """Wait until Airflow has loaded the DAG, then unpause it.

        Raise RuntimeError, with Airflow's import errors, if it does not load the DAG within 60 s.
        """
        deadline = time.monotonic() + 60
        while True:
            try:
                self._call("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})
                return
            except httpx.HTTPStatusError as error:
                if error.response.status_code != HTTPStatus.NOT_FOUND or time.monotonic() > deadline:
                    raise RuntimeError(f"Airflow did not load the DAG {dag}:\n{self.import_errors()}") from error
            time.sleep(0.5)

    def pause(self, dag: str) -> None:
        """Pause a DAG that Airflow has loaded: none of its runs start."""
        self._call("PATCH", f"/api/v2/dags/{dag}", {"is_paused": True})

    def import_errors(self) -> str:
        """Return each file that Airflow could not load, and its stack trace."""
        errors = self._call("GET", "/api/v2/importErrors")["import_errors"]
        return "\n".join(f"{error['filename']}: {error['stack_trace']}" for error in errors)

    def trigger(self, dag: str, conf: Mapping[str, Any]) -> str:
        """Start a run without a logical date, and return its id."""
        run = self._call("POST", f"/api/v2/dags/{dag}/dagRuns", {"logical_date": None, "conf": dict(conf)})
        run_id: str = run["dag_run_id"]
        return run_id

    def backfill(self, dag: str, start: str, end: str) -> list[str]:
        """Start Airflow's own backfill of the intervals that begin from `start` to `end`; return its run ids."""
        body = {"dag_id": dag, "from_date": start, "to_date": end, "max_active_runs": 2, "dag_run_conf": {}}
        self._call("POST", "/api/v2/backfills", body)
        runs = self._call("GET", f"/api/v2/dags/{dag}/dagRuns?run_type=backfill&order_by=run_after")["dag_runs"]
        return [run["dag_run_id"] for run in runs]

    def wait(self, dag: str, run: str, seconds: float = 900) -> None:
        """Wait until the run has ended, and print each task when it ends.

        Raise RuntimeError if the run is still running after `seconds`, or if it failed; the message then has the last
        log lines of its failed tasks.
        """
        deadline = time.monotonic() + seconds
        printed: set[str] = set()
        is_running = False
        while True:
            state = "running" if is_running else self._call("GET", _run(dag, run))["state"]
            tasks = self._call("GET", f"{_run(dag, run)}/taskInstances")["task_instances"]
            for task in sorted(tasks, key=lambda task: task["end_date"] or ""):
                if task["state"] in (*ENDED, "upstream_failed") and task["task_id"] not in printed:
                    printed.add(task["task_id"])
                    print(f"  {task['task_id']:<20} {task['state']:<16} {task['duration'] or 0:6.1f} s", flush=True)
            is_running = any(task["state"] == "running" for task in tasks)
            if state in ENDED:
                break
            if time.monotonic() > deadline:
                raise RuntimeError(f"the run {run} was still {state} after {seconds:.0f} s")
            self.keep_running()
            time.sleep(2)
        if state == "failed":
            failed = [task for task in tasks if task["state"] == "failed"]
            raise RuntimeError("\n".join(self.log(dag, run, task) for task in failed) or f"the run {run} failed")

    def wait_for_task(self, dag: str, run: str, task: str, *states: str, seconds: float = 300) -> str:
        """Return the first of these states that a task is in.

        Raise RuntimeError if the task ends in another state or its run ends without it, or after `seconds`.
        """
        deadline = time.monotonic() + seconds
        while (state := self._call("GET", f"{_run(dag, run)}/taskInstances/{task}")["state"]) not in states:
            is_left_out = state is None and self._call("GET", _run(dag, run))["state"] in ENDED
            if state in TASK_ENDED or is_left_out or time.monotonic() > deadline:
                raise RuntimeError(f"the task {task} of the run {run} was {state}, not {' or '.join(states)}")
            self.keep_running()
            time.sleep(1)
        return str(state)

    def result(self, dag: str, run: str, task: str) -> Any:
        """Return the value that a task of the run returned."""
        path = f"{_run(dag, run)}/taskInstances/{task}/xcomEntries/return_value?deserialize=true"
        return self._call("GET", path)["value"]

    def log(self, dag: str, run: str, task: Mapping[str, Any], lines: int = 30) -> str:
        """Return the last lines of a task's log; `task` is a task instance of Airflow's API."""
        path = f"{_run(dag, run)}/taskInstances/{task['task_id']}/logs/{task['try_number']}?full_content=true"
        entries = self._call("GET", path)["content"]
        text = [_line(entry) for entry in entries]
        return "\n".join([f"--- {task['task_id']} failed ---", *text[-lines:]])

    def _healthy(self) -> bool:
        try:
            health = self._call("GET", "/api/v2/monitor/health")
        except (httpx.HTTPError, ValueError):
            return False
        return all(health[part]["status"] == "healthy" for part in PARTS)

    def _write_password(self) -> None:
        self._passwords.touch(mode=0o600)
        self._passwords.write_text(json.dumps({USER: self.password}))

    def _sign_in(self) -> None:
        """Sign in. If something else has changed the passwords file, print that and write it again.

        Raise RuntimeError if Airflow refuses the password that the file has.
        """
        body = {"username": USER, "password": self.password}
        answer = self._client.post("/auth/token", json=body)
        if answer.status_code == HTTPStatus.UNAUTHORIZED:
            if self._has_password():
                raise RuntimeError(f"Airflow at {self.url} refuses the password that {self._passwords} has")
            print(f"something else has changed {self._passwords}, which is written again", flush=True)
            self._write_password()
            answer = self._client.post("/auth/token", json=body)
        self._client.headers["Authorization"] = f"Bearer {answer.raise_for_status().json()['access_token']}"

    def _has_password(self) -> bool:
        try:
            return bool(json.loads(self._passwords.read_text()).get(USER) == self.password)
        except (OSError, ValueError):
            return False

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return the answer to a request. Sign in again if the token has expired, as it does after a day."""
        answer = self._client.request(method, path, json=body)
        if answer.status_code == HTTPStatus.UNAUTHORIZED and "Authorization" in self._client.headers:
            self._sign_in()
            answer = self._client.request(method, path, json=body)
        return answer.raise_for_status().json()


def reserve_home(homes: Path) -> tuple[Path, int]:
    """Return a folder that no running Airflow uses, and the open file whose lock reserves the folder."""
    for number in itertools.count(1):
        home = homes / str(number)
        home.mkdir(parents=True, exist_ok=True)
        home.chmod(0o700)
        lock = os.open(home / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return home, lock
    raise AssertionError("unreachable")


def _run(dag: str, run: str) -> str:
    return f"/api/v2/dags/{dag}/dagRuns/{quote(run, safe='')}"


def _line(entry: Any) -> str:
    """Return an entry of a task's log as text, with its exceptions."""
    if not isinstance(entry, dict):
        return str(entry)
    causes = [f"{cause.get('exc_type')}: {cause.get('exc_value')}" for cause in entry.get("error_detail") or []]
    return " ".join(filter(None, [str(entry.get("event", "")), *causes]))
