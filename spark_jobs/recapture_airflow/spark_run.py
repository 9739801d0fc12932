"""The task that lets a cluster compute a planned run. The type of the connection says which kind of cluster it is."""

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, AirflowNotFoundException
from airflow.sdk import BaseHook, Connection, Context

from recapture.definition.pipeline import Pipeline, load
from recapture.errors import DefinitionError
from recapture.execute.spark import daemon
from recapture.execute.spark.bundle import PYTHON, archives
from recapture.execute.spark.installed import require_one_pyspark
from recapture.run_files.files import RunFiles
from recapture.run_files.planned import PlannedRun, files_of, load_run
from recapture_airflow.final_errors import fail_at_once
from recapture_airflow.lineage import Lineage, WithLineage
from recapture_airflow.remote_run import RemoteRun, Service, end_task, hand_over, raise_failure

APPLICATION = Path(__file__).parent / "application" / "backfill.py"
"""What Spark runs. It is part of the package, so that tasks need no other files."""
BUNDLE = "bundle"
"""Extra field of the connection: the file that `recapture bundle` made, as tasks see it."""
USELESS = re.compile(r"Error code is: 2\b")
"""What the provider says of an application that ended with 2: see `recapture.execute.spark.application.main`."""
KUBERNETES = "airflow.providers.cncf"
"""Package that the provider for Spark uses if the master is Kubernetes."""
CONNECT = SparkConnectHook.conn_type
SERVICES = {"databricks": ("databricks_jobs", "DatabricksJobs"), "livy": ("livy_batches", "LivyBatches")}
"""Module and class of the services, by the type of their connections. The types are the names of extras, too."""


class SparkRun(WithLineage, SparkSubmitOperator):
    """Operator that lets a cluster compute a planned run. It is not retried if a retry would fail in the same way.

    It takes the id of the run as `application_args`. `job` has the settings of a job of Databricks or Livy.
    """

    lineage = Lineage.READS_ARCHIVE
    conf: dict[str, Any] | None
    stop: Callable[[], NoReturn] | None = None
    """What stops a run for which there is no spark-submit."""

    def __init__(self, *, file: str, job: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        self.file = file
        self.job = dict(job or {})
        super().__init__(**kwargs)
        self.durable = False  # a driver that an earlier try left may compute another run; YARN would need more settings

    @fail_at_once()
    def execute(self, context: Context) -> None:
        """Wait until the run is computed. Raise AirflowFailException if a retry would fail in the same way."""
        from recapture.keep.holding import renewing

        connection = _connection(self._conn_id)
        pipeline, (run,) = load(Path(self.file)), self.application_args or []
        files = files_of(pipeline, run)
        with renewing(files.container, context["run_id"]):
            if connection.conn_type in SERVICES:
                service = _service(connection, self.job)
                remote_run = RemoteRun(service, self._conn_id, pipeline, run, files)
                self.stop = remote_run.cancel
                remote_run.compute()
                return
            if self.job:
                raise DefinitionError(
                    f"`job` is for Databricks and Livy, but {self._conn_id} has the type {connection.conn_type}"
                )
            if connection.conn_type == CONNECT:
                self.stop = end_task
                self._connect(connection, load_run(pipeline, run))
            else:
                self._submit(context, connection, pipeline, files)

    def on_kill(self) -> None:
        """Stop the job or spark-submit."""
        if self.stop is not None:
            self.stop()
        super().on_kill()

    def _connect(self, connection: Connection, run: PlannedRun) -> None:
        """Compute the run in a session of Spark Connect, which ends with this process."""
        from recapture.execute.spark.compute import compute
        from recapture.execute.spark.connect import open_session

        require_one_pyspark()
        bundle = connection.extra_dejson.get(BUNDLE)
        address = SparkConnectHook(self._conn_id).get_connection_url()
        with open_session(address, f"recapture {run.id}", bundle and Path(bundle)) as spark:
            compute(spark, run)

    def _submit(self, context: Context, connection: Connection, pipeline: Pipeline, files: RunFiles) -> None:
        """Run spark-submit. In deploy mode `cluster`, the driver cannot read the pipeline file: hand the run over."""
        extra = connection.extra_dejson
        if str(connection.host).startswith("k8s://") and find_spec(KUBERNETES) is None:
            raise DefinitionError(
                f"the master of {self._conn_id} is Kubernetes: install apache-airflow-providers-cncf-kubernetes"
            )
        self.conf = (self.conf or {}) | daemon.settings(str(connection.host)) | _bundle_settings(extra)
        require_one_pyspark()
        if _is_on_cluster(extra):
            self.env_vars = None  # it has the path of Python on this machine
        handed_over = hand_over(pipeline, files, self._conn_id) if _is_on_cluster(extra) else None
        self.application_args = [self.file if handed_over is None else pipeline.outputs[0].table, files.id]
        try:
            super().execute(context)
        except AirflowException as error:
            if handed_over is not None:
                raise_failure(files, handed_over, str(error))
            if USELESS.search(str(error)):
                raise AirflowFailException(
                    "the run failed, and a retry would fail in the same way: see the error above"
                ) from None
            raise

    def _arguments(self) -> tuple[str, str | None]:
        return self.file, self.application_args[-1] if self.application_args else None


def _connection(name: str) -> Connection:
    """Return the connection to the cluster. Raise DefinitionError if it is missing or has another type.

    Without a connection, Airflow would silently use YARN.
    """
    types = ["spark", CONNECT, *SERVICES]
    try:
        connection = BaseHook.get_connection(name)
    except AirflowNotFoundException:
        raise DefinitionError(
            f"the connection {name} is missing: create it with type spark and the master as host, such as local[*], or "
            f"with another of the types {', '.join(types)}"
        ) from None
    if connection.conn_type not in types:
        raise DefinitionError(
            f"the connection {name} has the type {connection.conn_type}: use {', '.join(types)}. If it "
            "is generic, Airflow may have stored it before the provider for its type was installed"
        )
    return connection


def _service(connection: Connection, job: Mapping[str, Any]) -> Service:
    """Return the service of a connection. Raise DefinitionError if its provider is missing, or `job` is not valid."""
    module, name = SERVICES[connection.conn_type]
    try:
        made = getattr(import_module(f"recapture_airflow.{module}"), name)
    except ModuleNotFoundError as error:
        raise DefinitionError(
            f"the connection {connection.conn_id} has the type {connection.conn_type}, but {error.name} is missing: "
            f"install recapture with the extra {connection.conn_type}"
        ) from error
    service: Service = made(connection.conn_id, job)
    return service


def _is_on_cluster(extra: Mapping[str, Any]) -> bool:
    """Return whether the driver of a connection to Spark runs on the cluster, and not on this machine."""
    return extra.get("deploy-mode") == "cluster"


def _bundle_settings(extra: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings that give executors the bundle in the extra fields of a connection; none without one.

    In deploy mode `client`, the driver runs on this machine, with this Python.
    """
    if BUNDLE not in extra:
        return {}
    driver = {} if _is_on_cluster(extra) else {"spark.pyspark.driver.python": sys.executable}
    return {"spark.archives": archives(extra[BUNDLE]), "spark.pyspark.python": PYTHON, **driver}
