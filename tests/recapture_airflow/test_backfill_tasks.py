"""What the tasks of a DAG share: which errors are final, what their logs leave out, and what consumers are told."""

import importlib
import json
import logging
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from recapture import cli, errors
from recapture.errors import RecaptureError
from tests.recapture_airflow.conftest import LoadPlugin
from tests.worlds import one_event


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
    operator = spark_run.SparkRun(task_id="order_and_aggregate", file=str(file), application="backfill.py")
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
    operator = spark_run.SparkRun(task_id="order_and_aggregate", file="telemetry.yaml", application="backfill.py")
    with pytest.raises(AirflowFailException, match="two versions"):
        operator.execute({"run_id": "manual__1"})


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_executors_get_the_bundle_of_the_connection(
    plugin: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Only in deploy mode `client`, the driver has the Python of the task."""
    spark_run = importlib.import_module("recapture_airflow.spark_run")
    extra = {"deploy-mode": mode, "bundle": "/opt/bundle.tar.gz"}
    fields = {"conn_type": "spark", "host": "spark://host:7077", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_BUNDLED", json.dumps(fields))
    monkeypatch.setattr(spark_run.SparkSubmitOperator, "execute", lambda *arguments: None)
    file = str(one_event(tmp_path).define().file)
    confs = {}
    for connection in ("spark_bundled", "spark_of_default"):
        settings = {"conn_id": connection, "conf": {"spark.log.level": "WARN"}, "application": "backfill.py"}
        operator = spark_run.SparkRun(task_id="order_and_aggregate", file=file, **settings)
        operator.execute({"run_id": "manual__1"})
        confs[connection] = operator.conf
    driver = {"spark.pyspark.driver.python": sys.executable} if mode == "client" else {}
    assert confs == {
        "spark_bundled": {
            "spark.log.level": "WARN",
            "spark.archives": "/opt/bundle.tar.gz#recapture-bundle",
            "spark.pyspark.python": "./recapture-bundle/bin/python",
            **driver,
        },
        "spark_of_default": {"spark.log.level": "WARN"},
    }


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


def test_a_rollback_tells_consumers_which_slices_it_took_back(plugin: ModuleType, tmp_path: Path) -> None:
    world = one_event(tmp_path)
    world.define()
    bounds = {"from": "2024-03-01T10:00:00Z", "to": "2024-03-01T11:00:00Z"}
    assert cli.main(["backfill", str(world.file), "--from", bounds["from"], "--to", bounds["to"]]) == 0
    events: defaultdict[Any, Event] = defaultdict(Event)
    plugin.rollback.function(str(world.file), params=bounds, outlet_events=events)
    ((asset, event),) = events.items()
    assert (asset.name, event.partitions) == ("telemetry", [bounds["from"]])
    assert event.extra.pop("rolled_back") == [bounds["from"]]
    assert event.extra.pop("version") == 2
    assert not any(event.extra.values()), "nothing is new or revised"
