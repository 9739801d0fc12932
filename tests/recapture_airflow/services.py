"""Databricks and Livy as far as their documentation describes the requests of a run. They record what they are asked.

The forms are those of "Databricks REST API reference", Jobs, and of "Livy Docs - REST API".
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOKEN = "dapi-a-token"
"""The token that the services accept."""
Answer = tuple[int, Any]


class LostError(Exception):
    """What `on_start` raises so that the request is not answered."""


@dataclass(frozen=True)
class Request:
    """A request that was made."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any

    @property
    def what(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class Job:
    """A job, whose states follow one another; the last one stays."""

    request: dict[str, Any]
    states: list[Any]

    def next_state(self) -> Any:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


@dataclass
class Service:
    """What both services have in common."""

    states: Sequence[Any] = ()
    """States of the next job."""
    refusals: list[Answer] = field(default_factory=list)
    """Answers to the next requests, in place of what was asked."""
    requests: list[Request] = field(default_factory=list)
    jobs: dict[str, Job] = field(default_factory=dict)
    on_start: Callable[[list[str]], None] = lambda arguments: None
    """What a job does with its arguments when it starts."""
    url: str = ""

    def asked(self) -> list[str]:
        """Return the methods and paths of all requests, without those that ask for the state of a job again."""
        whats = [request.what for request in self.requests]
        return [what for number, what in enumerate(whats) if number == 0 or whats[number - 1] != what]

    def first_job(self) -> Job:
        """Return the job that was started first."""
        return next(iter(self.jobs.values()))

    def last_job(self) -> Job:
        """Return the job that was started last."""
        return list(self.jobs.values())[-1]

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        if self.refusals:
            return self.refusals.pop(0)
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return HTTPStatus.FORBIDDEN, {"message": "Invalid access token."}
        return self.route(request)

    def route(self, request: Request) -> Answer:
        raise NotImplementedError


class Databricks(Service):
    """The Jobs API of a workspace."""

    def route(self, request: Request) -> Answer:
        match request.what, request.body, request.query:
            case "POST /api/2.2/jobs/runs/submit", {"tasks": [task], "idempotency_token": token}, _:
                run_id = str(1000 + len(self.jobs))
                for known, job in self.jobs.items():
                    if job.request["idempotency_token"] == token:
                        return HTTPStatus.OK, {"run_id": int(known)}
                self.jobs[run_id] = Job(request.body, list(self.states))
                (application,) = (task[kind] for kind in ("python_wheel_task", "spark_python_task") if kind in task)
                self.on_start(application["parameters"])
                return HTTPStatus.OK, {"run_id": int(run_id)}
            case "GET /api/2.2/jobs/runs/get", _, {"run_id": run_id} if run_id in self.jobs:
                page = f"https://adb-1.azuredatabricks.net/?o=1#job/7/run/{run_id}"
                state = self.jobs[run_id].next_state()
                tasks = [{"run_id": int(run_id) + 5000, "task_key": "recapture", "state": state}]
                return HTTPStatus.OK, {"run_id": int(run_id), "run_page_url": page, "state": state, "tasks": tasks}
            case "GET /api/2.2/jobs/runs/get", _, {"run_id": run_id}:
                message = f"Run {run_id} does not exist."
                return HTTPStatus.BAD_REQUEST, {"error_code": "INVALID_PARAMETER_VALUE", "message": message}
            case "GET /api/2.2/jobs/runs/get-output", _, _:
                return HTTPStatus.OK, {"error": "SystemExit: 1", "error_trace": "…", "metadata": {}}
            case "POST /api/2.2/jobs/runs/cancel", {"run_id": run_id}, _:
                self.jobs[str(run_id)].states = [ended("CANCELED", "Run cancelled.")]
                return HTTPStatus.OK, {}
        return HTTPStatus.BAD_REQUEST, {"error_code": "MALFORMED_REQUEST", "message": f"{request.what} is malformed"}


def ended(result: str, message: str = "") -> dict[str, Any]:
    """Return the state of a Databricks run that has ended."""
    return {"life_cycle_state": "TERMINATED", "result_state": result, "state_message": message}


PENDING = {"life_cycle_state": "PENDING", "state_message": "Waiting for cluster"}
RUNNING = {"life_cycle_state": "RUNNING", "state_message": "In run"}


@dataclass
class Livy(Service):
    """The batches of a server, under a prefix."""

    prefix: str = ""

    def route(self, request: Request) -> Answer:
        folder, _, batch = request.path.removeprefix(f"{self.prefix}/batches").partition("/")
        if folder or not request.path.startswith(self.prefix):
            return HTTPStatus.NOT_FOUND, {"msg": "no such page"}
        if request.method == "GET" and not batch:
            start, size = int(request.query["from"]), int(request.query["size"])
            listed = [
                self._batch(name, job.states[0]) | {"name": job.request["name"]} for name, job in self.jobs.items()
            ]
            return HTTPStatus.OK, {"from": start, "total": len(listed), "sessions": listed[start : start + size]}
        if request.method == "POST" and not batch:
            if any(
                job.request["name"] == request.body["name"] and job.states[0] != "success" for job in self.jobs.values()
            ):
                return HTTPStatus.BAD_REQUEST, {"msg": f"Duplicate session name: {request.body['name']}"}
            batch = f"b-{len(self.jobs)}" if self.prefix else str(len(self.jobs))
            self.jobs[batch] = Job(request.body, list(self.states))
            self.on_start(request.body["args"])
            return HTTPStatus.CREATED, self._batch(batch, "starting")
        if batch not in self.jobs:
            return HTTPStatus.NOT_FOUND, {"msg": f"Session '{batch}' not found."}
        if request.method == "DELETE":
            self.jobs[batch].states = ["killed"]
            return HTTPStatus.OK, {"msg": "deleted"}
        return HTTPStatus.OK, self._batch(batch, self.jobs[batch].next_state())

    @staticmethod
    def _batch(batch: str, state: str) -> dict[str, Any]:
        info = {"driverLogUrl": None, "sparkUiUrl": "http://spark:4040"}
        log = ["stdout: ", "Traceback …", "SystemExit: 1"]
        return {"id": int(batch) if batch.isdigit() else batch, "state": state, "appInfo": info, "log": log}


@contextmanager
def served(service: Service) -> Iterator[None]:
    """Answer as a service on a port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            request = Request(self.command, parts.path, dict(parse_qsl(parts.query)), dict(self.headers), body)
            try:
                code, answer = service.answer(request)
            except LostError:
                return
            content = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815

        def log_message(self, *unused: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=[0.05])
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
