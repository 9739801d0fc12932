"""Databricks and Livy compute runs: what they are asked, how a retry finds the job, and how a failure is told.

The services stand for the real ones, which cannot run here: see `services`.
"""

import importlib
import json
import logging
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from http import HTTPStatus
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from recapture.definition.packed import unpack
from recapture.execute.processes.workers import Workers
from recapture.run.plan import plan_run
from recapture.run_files.computed import Computed, write_computed
from recapture.run_files.handed_over import FAILURE, HANDED_OVER, Failure
from recapture.run_files.planned import PlannedRun, load_run
from tests.blobs import rewrite
from tests.conftest import Python
from tests.paths import ROOT
from tests.recapture_airflow.conftest import LoadPlugin
from tests.recapture_airflow.services import (
    PENDING,
    RUNNING,
    TOKEN,
    Databricks,
    Job,
    Livy,
    LostError,
    Service,
    ended,
    served,
)
from tests.stages import audit, publish
from tests.worlds import QUICK_START, TEN, at, backfill, files, one_event, steady

SUBMIT, GET, CANCEL = (f"/api/2.2/jobs/runs/{name}" for name in ("submit", "get", "cancel"))
CLUSTER = {
    "spark_version": "18.0.x-scala2.13",
    "node_type_id": "Standard_D4ds_v5",
    "num_workers": 4,
    "spark_env_vars": {"AZURE_STORAGE_CONNECTION_STRING": "{{secrets/recapture/storage}}"},
}
WHEEL = [{"whl": "/Volumes/main/default/wheels/recapture-0.1.0-py3-none-any.whl"}]
FILE = "abfss://code@account.dfs.core.windows.net/backfill.py"
FABRIC = "/v1/workspaces/team/lakehouses/events/livyApi/versions/2023-12-01"


@pytest.fixture(autouse=True)
def quick(load_plugin: LoadPlugin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask services without pauses."""
    monkeypatch.setattr(load_plugin("remote_run"), "POLL_SECONDS", 0.01)


@pytest.fixture
def run(tmp_path: Path) -> PlannedRun:
    return plan_run(one_event(tmp_path).define(), TEN, at(60))


@pytest.fixture
def databricks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Databricks]:
    """A workspace with the connection `cluster`."""
    service = Databricks([PENDING, RUNNING, ended("SUCCESS")])
    with served(service):
        port = int(service.url.rpartition(":")[2])
        fields = {"conn_type": "databricks", "host": "127.0.0.1", "schema": "http", "port": port, "password": TOKEN}
        monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(fields))
        yield service


@pytest.fixture
def livy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Livy]:
    """A server with the connection `cluster`."""
    service = Livy(["starting", "running", "success"])
    with served(service):
        extra = {"Authorization": f"Bearer {TOKEN}"}
        monkeypatch.setenv(
            "AIRFLOW_CONN_CLUSTER", json.dumps({"conn_type": "livy", "host": service.url, "extra": extra})
        )
        yield service


def task(run: PlannedRun, job: Mapping[str, Any]) -> Any:
    """Return the task of a run whose cluster is the connection `cluster`."""
    spark_run = importlib.import_module("recapture_airflow.spark_run")
    return spark_run.SparkRun(
        task_id="order_and_aggregate",
        file=str(run.pipeline.file),
        conn_id="cluster",
        job=job,
        application="backfill.py",
        application_args=[run.id],
    )


def execute(run: PlannedRun, job: Mapping[str, Any]) -> None:
    task(run, job).execute({"run_id": "manual__1"})


def failure(run: PlannedRun, job: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name of the error with which the task of a run fails, and its message."""
    try:
        execute(run, job)
    except Exception as error:
        return type(error).__name__, str(error)
    raise AssertionError("the task did not fail")


def attempt(run: PlannedRun) -> str:
    return run.files.read(HANDED_OVER).attempt


def test_the_arguments_of_the_dags_name_the_connection_and_the_settings_of_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, folder in {"CONTAINER": "capture", "TABLE": "curated/telemetry"}.items():
        monkeypatch.setenv(f"RECAPTURE_{name}", f"https://account.blob.core.windows.net/{folder}")
    from recapture_airflow import RecaptureDags

    def clusters(**arguments: Any) -> list[tuple[str, Any]]:
        dags = RecaptureDags(ROOT / "dags" / "pipelines", **arguments)
        tasks = [dags[name].get_task("order_and_aggregate") for name in ("telemetry", "telemetry.update")]
        return [(task._conn_id, task.job) for task in tasks]

    job = {"new_cluster": CLUSTER}
    assert clusters(connection="databricks", job=job) == [("databricks", job)] * 2
    assert clusters() == [("spark_default", {})] * 2


def test_databricks_computes_a_run_on_a_cluster_of_its_own(
    databricks: Databricks, run: PlannedRun, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        execute(run, {"new_cluster": CLUSTER, "libraries": WHEEL, "timeout_seconds": 7200})
    table = run.pipeline.outputs[0].table
    submitted, *others = databricks.requests
    assert submitted.body == {
        "run_name": f"recapture telemetry {run.id}",
        "idempotency_token": attempt(run),
        "timeout_seconds": 7200,
        "tasks": [
            {
                "task_key": "recapture",
                "new_cluster": CLUSTER,
                "libraries": WHEEL,
                "python_wheel_task": {
                    "package_name": "recapture",
                    "entry_point": "recapture_run",
                    "parameters": [table, run.id],
                },
            }
        ],
    }
    assert databricks.asked() == [f"POST {SUBMIT}", f"GET {GET}"]
    assert {tuple(request.query.items()) for request in others} == {(("run_id", "1000"),)}
    assert "PENDING Waiting for cluster https://adb-1.azuredatabricks.net/?o=1#job/7/run/1000" in caplog.text
    assert TOKEN not in caplog.text


def test_databricks_computes_a_run_on_a_cluster_that_exists_with_a_script(
    databricks: Databricks, run: PlannedRun
) -> None:
    script = "/Volumes/main/default/recapture/backfill.py"
    execute(run, {"existing_cluster_id": "1126-095012-abc", "python_file": script})
    table = run.pipeline.outputs[0].table
    assert databricks.requests[0].body["tasks"] == [
        {
            "task_key": "recapture",
            "existing_cluster_id": "1126-095012-abc",
            "spark_python_task": {"python_file": script, "parameters": [table, run.id]},
        }
    ]


def test_the_entry_point_that_databricks_calls_is_the_script() -> None:
    databricks_jobs = importlib.import_module("recapture_airflow.databricks_jobs")
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    name, _, target = setup["options.entry_points"]["recapture.applications"].strip().partition(" = ")
    module, _, function = target.partition(":")
    assert name == databricks_jobs.ENTRY_POINT
    assert f"from {module} import {function}\n" in (ROOT / "spark_jobs" / "backfill.py").read_text()
    assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize("prefix", ["", FABRIC])
def test_livy_computes_a_run_as_a_batch_of_a_server_or_of_fabric(livy: Livy, run: PlannedRun, prefix: str) -> None:
    """The ids of a prefix are no numbers, as in Fabric."""
    livy.prefix = prefix
    bundle = "abfss://code@account.dfs.core.windows.net/recapture-bundle.tar.gz"
    size = {"driver_memory": "8g", "executor_memory": "8g", "executor_cores": 4, "num_executors": 2}
    execute(run, {"file": FILE, "bundle": bundle, "conf": {"spark.a": "b"}, "endpoint_prefix": prefix, **size})
    batch = f"{prefix}/batches/{'b-0' if prefix else '0'}"
    assert livy.asked() == [f"POST {prefix}/batches", f"GET {batch}"]
    assert livy.requests[0].body == {
        "file": FILE,
        "args": [run.pipeline.outputs[0].table, run.id],
        "name": f"recapture telemetry {run.id} {attempt(run)}",
        "archives": [f"{bundle}#recapture-bundle"],
        "conf": {"spark.pyspark.python": "./recapture-bundle/bin/python", "spark.a": "b"},
        **{"driverMemory": "8g", "executorMemory": "8g", "executorCores": 4, "numExecutors": 2},
    }


def test_livy_of_azure_is_asked_with_a_token_of_the_identity(
    livy: Livy, run: PlannedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    from azure.core.credentials import AccessToken

    class SignedIn:
        def get_token(self, scope: str) -> AccessToken:
            return AccessToken(TOKEN if scope == "https://api.fabric.microsoft.com/.default" else "for another", 0)

    fields = {"conn_type": "livy", "host": livy.url, "login": "unused", "password": "unused"}
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps(fields))
    monkeypatch.setattr(importlib.import_module("recapture_airflow.livy_batches"), "identity", SignedIn)
    execute(run, {"file": FILE, "token_scope": "https://api.fabric.microsoft.com/.default"})
    assert {request.headers["Authorization"] for request in livy.requests} == {f"Bearer {TOKEN}"}


JOBS = {"databricks": {"existing_cluster_id": "a"}, "livy": {"file": FILE}}
DONE = {"databricks": ended("SUCCESS"), "livy": "success"}
FAILED = {"databricks": ended("FAILED", "Workload failed"), "livy": "dead"}
EXPIRED = HTTPStatus.FORBIDDEN, {"message": "the token has expired"}


@pytest.fixture(params=["databricks", "livy"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def service(kind: str, request: pytest.FixtureRequest) -> Service:
    service: Service = request.getfixturevalue(kind)
    return service


def test_a_cluster_needs_nothing_but_the_run_files(
    service: Service, kind: str, run: PlannedRun, tmp_path: Path
) -> None:
    def start(arguments: list[str]) -> None:
        run.pipeline.file.rename(run.pipeline.file.with_suffix(".elsewhere"))
        application = importlib.import_module("recapture.execute.spark.application")
        with application._loaded(*arguments) as loaded:
            assert loaded.manifest == run.manifest

    service.on_start = start
    execute(run, JOBS[kind])
    unpacked = unpack(run.files.read(HANDED_OVER).definition, tmp_path)
    assert load_run(unpacked, run.id).manifest == run.manifest


def let_jobs_run_the_application(service: Service, kind: str, python: Python) -> None:
    """Let each job run the script with its arguments, in Spark of this machine; its state is what becomes of that."""

    def start(arguments: list[str]) -> None:
        job = service.last_job()
        job.states = [RUNNING if kind == "databricks" else "running"]

        def compute() -> None:
            state = FAILED
            try:
                variables = {"JAVA_TOOL_OPTIONS": QUICK_START, "PYSPARK_PYTHON": sys.executable}
                completed = python(ROOT / "spark_jobs" / "backfill.py", *arguments, **variables)
                state = FAILED if completed.returncode else DONE
            finally:
                job.states = [state[kind]]

        threading.Thread(target=compute, daemon=True).start()

    service.on_start = start


def test_the_script_stages_the_same_bytes_as_worker_processes(
    databricks: Databricks, processes: Workers, python: Python, tmp_path: Path
) -> None:
    world = steady(tmp_path, hours=1)
    backfill(processes, world.define(table="here"), TEN, at(60))
    run = plan_run(world.define(table="there"), TEN, at(60))
    let_jobs_run_the_application(databricks, "databricks", python)
    execute(run, JOBS["databricks"])
    audit(run)
    publish(run)
    assert files(tmp_path / "there") == files(tmp_path / "here") != {}


def test_the_error_of_the_script_ends_the_task_and_is_not_tried_again(
    livy: Livy, python: Python, tmp_path: Path
) -> None:
    world = steady(tmp_path, hours=1)
    run = plan_run(world.define(), TEN, at(60))
    blob = next(path for path in sorted(world.capture.rglob("*.avro")) if path.stat().st_size > 1000)
    rewrite(blob, blob.read_bytes()[:-40] + bytes(40))
    let_jobs_run_the_application(livy, "livy", python)
    error, message = failure(run, JOBS["livy"])
    assert (error, message.startswith("blob "), " is damaged: " in message) == ("AirflowFailException", True, True)


@pytest.mark.parametrize(("is_final", "error"), [(True, "AirflowFailException"), (False, "RunError")])
def test_the_error_of_a_task_is_the_one_that_the_cluster_wrote(
    service: Service, kind: str, run: PlannedRun, is_final: bool, error: str
) -> None:
    service.states = [FAILED[kind]]

    def start(arguments: list[str]) -> None:
        run.files.write(FAILURE, Failure(attempt(run), "blob a is late", is_final))

    service.on_start = start
    assert failure(run, JOBS[kind]) == (error, "blob a is late")


def test_a_cluster_that_wrote_no_error_is_described_in_its_own_words(
    service: Service, kind: str, run: PlannedRun
) -> None:
    run.files.write(FAILURE, Failure("an earlier attempt", "blob a is late", is_final=True))
    service.states = [FAILED[kind]]
    error, message = failure(run, JOBS[kind])
    assert error == "RunError"
    job, words = {
        "databricks": ("1000", "TERMINATED FAILED Workload failed; SystemExit: 1"),
        "livy": ("0", "dead\nstdout: \nTraceback …\nSystemExit: 1"),
    }[kind]
    assert message == f"the job {job} of cluster: {words}"


def test_a_retry_finds_the_job_that_an_earlier_try_submitted(
    service: Service, kind: str, run: PlannedRun, load_plugin: LoadPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_plugin("remote_run"), "MOST_UNANSWERED", 1)
    service.on_start = lambda arguments: service.refusals.append(EXPIRED)
    assert failure(run, JOBS[kind])[0] == "ServiceError"
    execute(run, JOBS[kind])
    assert len(service.jobs) == 1
    assert service.first_job().states == [DONE[kind]], "it was waited for"


def test_a_retry_after_a_failed_job_submits_the_run_again(service: Service, kind: str, run: PlannedRun) -> None:
    states, service.states = service.states, [FAILED[kind]]
    failure(run, JOBS[kind])
    first, service.states = attempt(run), states
    execute(run, JOBS[kind])
    assert len(service.jobs) == 2
    assert attempt(run) != first


def test_a_job_that_has_ended_well_is_not_repeated_as_long_as_its_files_are_there(
    service: Service, kind: str, run: PlannedRun
) -> None:
    service.on_start = lambda arguments: write_computed(run.files, Computed((), ()))
    execute(run, JOBS[kind])
    execute(run, JOBS[kind])
    assert len(service.jobs) == 1
    for path in Path(run.pipeline.outputs[0].table.removeprefix("file://")).rglob("metrics.json"):
        path.unlink()
    execute(run, JOBS[kind])
    assert len(service.jobs) == 2


def test_databricks_starts_one_job_for_an_attempt_whose_answer_was_lost(
    databricks: Databricks, run: PlannedRun
) -> None:
    """The process ended after the request, and before it had written the id of the job."""
    remote_run = importlib.import_module("recapture_airflow.remote_run")
    handed_over = remote_run.hand_over(run.pipeline, run.files, "cluster")
    jobs = importlib.import_module("recapture_airflow.databricks_jobs").DatabricksJobs("cluster", JOBS["databricks"])
    jobs.submit(handed_over.attempt, "recapture", [])
    execute(run, JOBS["databricks"])
    assert list(databricks.jobs) == ["1000"]


def test_a_batch_of_livy_whose_answer_was_lost_is_found_by_its_name(livy: Livy, run: PlannedRun) -> None:
    def lose(arguments: list[str]) -> None:
        raise LostError

    livy.on_start = lose
    livy.jobs = {str(number): Job({"name": f"another {number}"}, ["running"]) for number in range(250)}
    execute(run, JOBS["livy"])
    assert len(livy.jobs) == 251
    assert [request.query.get("from") for request in livy.requests[:4]] == [None, "0", "100", "200"]
    assert livy.asked()[-1] == "GET /batches/250"
    assert livy.last_job().states == ["success"], "it was waited for"


def test_a_retry_finds_the_batch_of_livy_that_a_try_submitted_before_it_died(livy: Livy, run: PlannedRun) -> None:
    remote_run = importlib.import_module("recapture_airflow.remote_run")
    handed_over = remote_run.hand_over(run.pipeline, run.files, "cluster")
    batches = importlib.import_module("recapture_airflow.livy_batches").LivyBatches("cluster", JOBS["livy"])
    batches.submit(handed_over.attempt, f"recapture {run.pipeline.name} {run.id}", [])
    execute(run, JOBS["livy"])
    assert list(livy.jobs) == ["0"]


def test_a_batch_that_livy_refuses_fails_with_its_reason(livy: Livy, run: PlannedRun) -> None:
    livy.refusals = [(HTTPStatus.BAD_REQUEST, {"msg": "requirement failed: local path is not allowed"})]
    error, message = failure(run, JOBS["livy"])
    assert (error, "local path is not allowed" in message) == ("ServiceError", True)
    livy.refusals = [(HTTPStatus.SERVICE_UNAVAILABLE, {"msg": "not the leader"}), EXPIRED]
    assert "not the leader" in failure(run, JOBS["livy"])[1], "not why the batches could not be listed"
    assert livy.jobs == {}


def test_a_task_that_is_told_to_stop_stops_its_job(
    service: Service, kind: str, run: PlannedRun, load_plugin: LoadPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow calls `on_kill` in the handler of a signal."""
    from airflow.providers.common.compat.sdk import AirflowException

    operator = task(run, JOBS[kind])
    # Only the task's own pause: other threads go on sleeping, also after the handler is gone.
    pause = SimpleNamespace(sleep=lambda seconds: signal.raise_signal(signal.SIGTERM))
    monkeypatch.setattr(load_plugin("remote_run"), "time", pause)
    handler = signal.signal(signal.SIGTERM, lambda *unused: operator.on_kill())
    try:
        with pytest.raises(AirflowException, match=r"^the task was told to stop$"):
            operator.execute({"run_id": "manual__1"})
    finally:
        signal.signal(signal.SIGTERM, handler)
    last = service.requests[-1]
    assert (last.what, last.body) == {
        "databricks": (f"POST {CANCEL}", {"run_id": 1000}),
        "livy": ("DELETE /batches/0", None),
    }[kind]


def test_a_service_that_does_not_answer_for_a_while_is_asked_again(
    service: Service, kind: str, run: PlannedRun
) -> None:
    service.on_start = lambda arguments: service.refusals.extend([EXPIRED] * 3)
    execute(run, JOBS[kind])
    assert len(service.jobs) == 1


def test_a_task_fails_if_the_service_does_not_answer_any_more(
    service: Service, kind: str, run: PlannedRun, load_plugin: LoadPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_plugin("remote_run"), "MOST_UNANSWERED", 2)
    service.on_start = lambda arguments: service.refusals.extend([EXPIRED] * 2)
    error, message = failure(run, JOBS[kind])
    assert (error, message.startswith("cluster: "), "403" in message) == ("ServiceError", True, True)
    assert len(service.requests) == 3


def test_a_job_that_databricks_refuses_is_not_submitted_again(databricks: Databricks, run: PlannedRun) -> None:
    databricks.refusals = [(HTTPStatus.BAD_REQUEST, {"message": "Cluster a does not exist"})]
    error, message = failure(run, JOBS["databricks"])
    assert error == "AirflowFailException"
    assert message.startswith("cluster refuses the job: ")
    assert "Cluster a does not exist" in message
    assert message.endswith("; correct `job`")


SECRET = "AccountName=a;AccountKey=secret=="
OF_EXECUTORS = "spark.kubernetes.executor.secretKeyRef.AZURE_STORAGE_CONNECTION_STRING"


@pytest.mark.parametrize(
    ("kind", "job", "message"),
    [
        ("databricks", {}, "job for cluster: give new_cluster or existing_cluster_id, and not both"),
        ("databricks", {"new_cluster": {}, "existing_cluster_id": "a"}, "and not both"),
        ("databricks", {"file": "a"}, "job has the key 'file', but cluster is Databricks: use new_cluster, existing_"),
        ("databricks", {"existing_cluster_id": 7}, "job: existing_cluster_id has the type int: write a str"),
        (
            "databricks",
            {"new_cluster": {"spark_env_vars": {"AZURE_CLIENT_SECRET": SECRET}}},
            "job: new_cluster.spark_env_vars.AZURE_CLIENT_SECRET seems to have a secret as plain text",
        ),
        *(
            ("databricks", {"new_cluster": {"spark_conf": {name: value}}}, "seems to have a secret as plain text")
            for name, value in (
                ("fs.azure.account.key.contoso.dfs.core.windows.net", SECRET),
                ("spark.hadoop.fs.azure.account.oauth2.client.secret", f"{{{{secrets/a/b}}}}{SECRET}"),
                ("fs.azure.sas.fixed.token.contoso.dfs.core.windows.net", SECRET),
                ("spark.driver.extraJavaOptions", f"-Xmx1g -Dfs.azure.account.key.contoso={SECRET}"),
                ("spark.any", f"DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey={SECRET}"),
                ("my.secretKeyRef.AZURE_CLIENT_SECRET", SECRET),
            )
        ),
        ("databricks", {"new_cluster": {"docker_image": {"basic_auth": {"password": SECRET}}}}, "basic_auth.password"),
        ("databricks", {"python_file": f"https://contoso/a.py?sv=1&sig={SECRET}"}, "python_file seems"),
        (
            "databricks",
            {"new_cluster": CLUSTER, "timeout_seconds": True},
            "timeout_seconds has the type bool: write a int",
        ),
        ("livy", {}, "job for cluster: give `file`, the address of spark_jobs/backfill.py as the cluster sees it"),
        ("livy", {"file": FILE, "conf": {"spark.executorEnv.AZURE_STORAGE_KEY": SECRET}}, "AZURE_STORAGE_KEY seems"),
        ("spark", {"file": FILE}, "`job` is for Databricks and Livy, but cluster has the type spark"),
        ("generic", {}, "the connection cluster has the type generic: use spark, spark_connect, databricks, livy"),
    ],
)
def test_a_job_that_cannot_be_submitted_is_refused_before_any_request(
    run: PlannedRun, monkeypatch: pytest.MonkeyPatch, kind: str, job: Mapping[str, Any], message: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps({"conn_type": kind, "host": "127.0.0.1", "port": 1}))
    error, said = failure(run, job)
    assert error == "AirflowFailException"
    assert message in said
    assert "secret==" not in said


def test_a_reference_to_a_secret_of_kubernetes_is_no_secret(livy: Livy, run: PlannedRun) -> None:
    execute(run, {"file": FILE, "conf": {OF_EXECUTORS: "storage:connection-string"}})
    assert livy.requests[0].body["conf"] == {OF_EXECUTORS: "storage:connection-string"}


def test_a_missing_connection_says_which_types_there_are(run: PlannedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_CLUSTER", raising=False)
    assert failure(run, {}) == (
        "AirflowFailException",
        "the connection cluster is missing: create it with type spark and the master as host, such as local[*], or "
        "with another of the types spark, spark_connect, databricks, livy",
    )


@pytest.mark.parametrize("kind", ["databricks", "livy"])
def test_a_missing_provider_is_named_with_the_extra_that_has_it(
    run: PlannedRun, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_CLUSTER", json.dumps({"conn_type": kind, "host": "127.0.0.1"}))
    module = {"databricks": "databricks_jobs", "livy": "livy_batches"}[kind]
    monkeypatch.delitem(sys.modules, f"recapture_airflow.{module}", raising=False)
    provider = {"databricks": "databricks", "livy": "apache.livy"}[kind]
    monkeypatch.setitem(sys.modules, f"airflow.providers.{provider}.hooks.{kind}", None)
    error, message = failure(run, JOBS[kind])
    assert error == "AirflowFailException"
    assert message.endswith(f"is missing: install recapture with the extra {kind}")
