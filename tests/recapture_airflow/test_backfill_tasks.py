"""What the tasks of a DAG share: which errors are final, what their logs leave out, and what consumers are told."""

import importlib
import json
import logging
import os
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from recapture import cli, errors
from recapture.errors import RecaptureError
from recapture.run.plan import plan_run
from recapture.run_files.handed_over import FAILURE, HANDED_OVER, Failure
from tests.recapture_airflow.conftest import LoadPlugin
from tests.worlds import TEN, at, one_event


@pytest.fixture(scope="module")
def plugin(load_plugin: LoadPlugin) -> ModuleType:
    return load_plugin("backfill_tasks")


FINAL = [
    errors.AuditError("stopped"),
    errors.DefinitionError("wrong"),
    errors.FormatError("of another version"),
    errors.DamagedBlobError("a.avro", "cut off"),
    errors.PermanentError("nothing is published for slice"),
]
CURABLE = [errors.RunError("out of reach"), errors.SetupError("no right yet"), errors.UnfinishedError("half")]


@pytest.mark.parametrize("error", [*FINAL, *CURABLE], ids=lambda error: type(error).__name__)
def test_a_task_is_not_retried_if_its_error_stays_the_same(plugin: ModuleType, error: RecaptureError) -> None:
    """Airflow does not retry after AirflowFailException."""
    from airflow.providers.common.compat.sdk import AirflowFailException

    final_errors = importlib.import_module("recapture_airflow.final_errors")
    with pytest.raises((AirflowFailException, RecaptureError)) as raised, final_errors.fail_at_once():
        raise error
    assert isinstance(raised.value, AirflowFailException) == (error in FINAL)
    assert str(raised.value) == str(error)


def connect(monkeypatch: pytest.MonkeyPatch, name: str, host: str = "spark://host:7077", **extra: str) -> None:
    fields = {"conn_type": "spark", "host": host, "extra": extra}
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(fields))


def spark_task(file: Path | str, **arguments: Any) -> Any:
    spark_run = importlib.import_module("recapture_airflow.spark_run")
    given = {"application": "backfill.py", "application_args": ["run"], **arguments}
    return spark_run.SparkRun(task_id="order_and_aggregate", file=str(file), **given)


@pytest.mark.parametrize(("code", "retried"), [(1, True), (2, False), (22, True)])
def test_spark_is_not_started_again_for_a_run_that_cannot_succeed(
    plugin: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, retried: bool
) -> None:
    from airflow.exceptions import AirflowException
    from airflow.providers.common.compat.sdk import AirflowFailException

    spark_run = importlib.import_module("recapture_airflow.spark_run")
    file = one_event(tmp_path).define().file

    def fail(*arguments: object) -> None:
        raise AirflowException(f"Cannot execute: spark-submit backfill.py. Error code is: {code}.")

    monkeypatch.setattr(spark_run.SparkSubmitOperator, "execute", fail)
    connect(monkeypatch, "spark_default")
    operator = spark_task(file)
    with pytest.raises(AirflowException) as raised:
        operator.execute({"run_id": "manual__1"})
    assert isinstance(raised.value, AirflowFailException) != retried


def test_spark_is_not_started_with_a_damaged_pyspark(
    plugin: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException

    spark_run = importlib.import_module("recapture_airflow.spark_run")

    def damaged() -> None:
        raise errors.DefinitionError("two versions")

    monkeypatch.setattr(spark_run, "require_one_pyspark", damaged)
    connect(monkeypatch, "spark_default")
    operator = spark_task(one_event(tmp_path).define().file)
    with pytest.raises(AirflowFailException, match="two versions"):
        operator.execute({"run_id": "manual__1"})


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_executors_get_the_bundle_of_the_connection(
    plugin: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Only in deploy mode `client`, the driver has the Python of the task."""
    spark_run = importlib.import_module("recapture_airflow.spark_run")
    connect(monkeypatch, "spark_bundled", **{"deploy-mode": mode, "bundle": "hdfs://host/bundle.tar.gz"})
    connect(monkeypatch, "spark_of_default")
    monkeypatch.setattr(spark_run.SparkSubmitOperator, "execute", lambda *arguments: None)
    file = str(one_event(tmp_path).define().file)
    confs = {}
    for connection in ("spark_bundled", "spark_of_default"):
        operator = spark_task(file, conn_id=connection, conf={"spark.log.level": "WARN"})
        operator.execute({"run_id": "manual__1"})
        confs[connection] = operator.conf
    driver = {"spark.pyspark.driver.python": sys.executable} if mode == "client" else {}
    assert confs == {
        "spark_bundled": {
            "spark.log.level": "WARN",
            "spark.archives": "hdfs://host/bundle.tar.gz#recapture-bundle",
            "spark.pyspark.python": "./recapture-bundle/bin/python",
            **driver,
        },
        "spark_of_default": {"spark.log.level": "WARN"},
    }


@pytest.mark.parametrize(
    ("host", "extra"),
    [
        ("local[*]", {}),
        ("spark://host:7077", {}),
        ("yarn", {}),
        ("yarn", {"deploy-mode": "cluster"}),
        ("k8s://https://host:6443", {"deploy-mode": "cluster", "namespace": "jobs"}),
    ],
)
def test_every_kind_of_master_gets_the_bundle_and_the_arguments_of_the_application(
    plugin: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, extra: dict[str, str]
) -> None:
    spark_run = importlib.import_module("recapture_airflow.spark_run")
    hook = importlib.import_module("airflow.providers.apache.spark.hooks.spark_submit")
    monkeypatch.setattr(spark_run, "find_spec", lambda package: object())
    monkeypatch.setattr(hook, "kube_client", object(), raising=False)  # its provider is not installed
    run = plan_run(one_event(tmp_path).define(), TEN, at(60))
    program = tmp_path / "spark-submit"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/line\necho exit code: 0\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    connect(monkeypatch, "spark_default", host, **extra, bundle="/opt/bundle.tar.gz")
    spark_task(run.pipeline.file, application_args=[run.id]).execute({"run_id": "manual__1"})
    line = (tmp_path / "line").read_text()
    is_on_cluster = "deploy-mode" in extra
    assert line.startswith(f"--master {host} ")
    assert "--conf spark.archives=/opt/bundle.tar.gz#recapture-bundle " in line
    assert "--conf spark.pyspark.python=./recapture-bundle/bin/python " in line
    assert (f"--conf spark.pyspark.driver.python={sys.executable} " in line) != is_on_cluster
    assert ("--deploy-mode cluster " in line) == is_on_cluster
    place = run.pipeline.outputs[0].table if is_on_cluster else run.pipeline.file
    assert line.endswith(f" backfill.py {place} {run.id}\n")


def test_a_master_on_kubernetes_needs_a_provider_that_the_message_names(
    plugin: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException

    connect(monkeypatch, "spark_default", "k8s://https://host:6443", namespace="jobs")
    spark_run = importlib.import_module("recapture_airflow.spark_run")
    monkeypatch.setattr(spark_run, "find_spec", lambda package: None)
    with pytest.raises(AirflowFailException, match=r"install apache-airflow-providers-cncf-kubernetes$"):
        spark_task(one_event(tmp_path).define().file).execute({"run_id": "manual__1"})


@pytest.mark.parametrize(
    ("failure", "error", "message"),
    [
        (None, "RunError", "Cannot execute: spark-submit"),
        ((True, False), "RunError", "blob a is late"),
        ((True, True), "AirflowFailException", "blob a is late"),
        ((False, True), "RunError", "Cannot execute: spark-submit"),
    ],
)
def test_a_driver_on_the_cluster_needs_no_pipeline_file_and_leaves_its_error(
    plugin: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: tuple[bool, bool] | None,
    error: str,
    message: str,
) -> None:
    """Its exit code is not known. An error of an earlier attempt says nothing."""
    spark_run = importlib.import_module("recapture_airflow.spark_run")
    run = plan_run(one_event(tmp_path).define(), TEN, at(60))
    connect(monkeypatch, "spark_default", **{"deploy-mode": "cluster"})
    operator = spark_task(run.pipeline.file, application_args=[run.id], env_vars={"PYSPARK_PYTHON": sys.executable})

    def fail(*arguments: object) -> None:
        assert operator.application_args == [run.pipeline.outputs[0].table, run.id]
        assert operator.env_vars is None
        attempt = run.files.read(HANDED_OVER).attempt
        if failure is not None:
            is_of_attempt, is_final = failure
            run.files.write(FAILURE, Failure(attempt if is_of_attempt else "earlier", "blob a is late", is_final))
        raise spark_run.AirflowException("Cannot execute: spark-submit")

    monkeypatch.setattr(spark_run.SparkSubmitOperator, "execute", fail)
    with pytest.raises(Exception, match=message) as raised:
        operator.execute({"run_id": "manual__1"})
    assert type(raised.value).__name__ == error


def test_the_log_of_a_task_has_our_lines_and_not_those_of_chatty_libraries(
    plugin: ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(plugin, "take_credentials", lambda context: None)
    names = ("azure.core.pipeline", "azure.identity", "great_expectations.expectations.registry", "recapture.run", "x")
    for name in plugin.CHATTY_LIBRARIES:
        monkeypatch.setattr(logging.getLogger(name), "level", logging.NOTSET)
    with caplog.at_level(logging.INFO):
        plugin.prepare({})
        for name in names:
            logging.getLogger(name).info("progress")
            logging.getLogger(name).warning("warning")
    shown = [(record.name, record.levelname) for record in caplog.records]
    assert [name for name, level in shown if level == "INFO"] == ["recapture.run", "x"]
    assert [name for name, level in shown if level == "WARNING"] == list(names)
    for name in plugin.CHATTY_LIBRARIES:
        logging.getLogger(name).setLevel(logging.NOTSET)


class Event:
    """Stands for Airflow's event of an asset."""

    def __init__(self) -> None:
        self.partitions: list[str] = []
        self.extra: dict[str, Any] = {}

    def add_partitions(self, keys: list[str]) -> None:
        self.partitions += keys


class Events(defaultdict[str, Event]):
    """Stands for the events of a task's assets, by name: before Airflow 3.3, an asset with a dictionary has no hash."""

    def __getitem__(self, asset: Any) -> Event:
        return super().__getitem__(asset.name)


def test_a_rollback_tells_consumers_which_slices_it_took_back(plugin: ModuleType, tmp_path: Path) -> None:
    world = one_event(tmp_path)
    world.define()
    bounds = {"from": "2024-03-01T10:00:00Z", "to": "2024-03-01T11:00:00Z"}
    assert cli.main(["backfill", str(world.file), "--from", bounds["from"], "--to", bounds["to"]]) == 0
    events = Events(Event)
    plugin.rollback.function(str(world.file), params=bounds, outlet_events=events)
    ((name, event),) = events.items()
    assert (name, event.partitions) == ("telemetry", [bounds["from"]])
    assert event.extra.pop("rolled_back") == [bounds["from"]]
    assert event.extra.pop("version") == 2
    assert not any(event.extra.values()), "nothing is new or revised"
