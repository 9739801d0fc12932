"""The task that submits a planned run to Spark."""

import re
import sys
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, AirflowNotFoundException
from airflow.sdk import BaseHook, Context

from recapture.definition.pipeline import load
from recapture.execute.spark.bundle import PYTHON, archives
from recapture.execute.spark.installed import require_one_pyspark
from recapture.storage import open_container
from recapture_airflow.final_errors import fail_at_once
from recapture_airflow.lineage import Lineage, WithLineage

APPLICATION = Path(__file__).parent / "application" / "backfill.py"
"""What Spark runs. It is part of the package, so that tasks need no other files."""
BUNDLE = "bundle"
"""Extra field of the connection: the file that `recapture bundle` made, as tasks see it."""
USELESS = re.compile(r"Error code is: 2\b")
"""What the provider says of an application that ended with 2: see `recapture.execute.spark.compute.main`."""


class SparkRun(WithLineage, SparkSubmitOperator):
    """Operator that submits a planned run. It is not retried if a retry would fail in the same way.

    In deploy mode `cluster`, the exit code is not known, so the task is retried.
    """

    lineage = Lineage.READS_ARCHIVE
    conf: dict[str, Any] | None

    def __init__(self, *, file: str, **kwargs: Any) -> None:
        self.file = file
        super().__init__(**kwargs)

    @fail_at_once()
    def execute(self, context: Context) -> None:
        """Run Spark. Raise AirflowFailException if a retry would fail in the same way, as the application says."""
        from recapture.keep.holding import renewing

        self.conf = (self.conf or {}) | _bundle_settings(self._conn_id)
        require_one_pyspark()
        run_files = open_container(load(Path(self.file)).outputs[0].table)
        try:
            with renewing(run_files, context["run_id"]):
                super().execute(context)
        except AirflowException as error:
            if USELESS.search(str(error)):
                raise AirflowFailException(
                    "the run failed, and a retry would fail in the same way: see the error above"
                ) from None
            raise

    def _arguments(self) -> tuple[str, str | None]:
        _, run = self.application_args or (None, None)
        return self.file, run


def _bundle_settings(connection: str) -> dict[str, str]:
    """Return the settings that give executors the bundle in the extra fields of a connection; none without one.

    In deploy mode `client`, the driver runs on this machine, with this Python.
    """
    try:
        extra = BaseHook.get_connection(connection).extra_dejson
    except AirflowNotFoundException:  # the provider has a default
        return {}
    if BUNDLE not in extra:
        return {}
    driver = {} if extra.get("deploy-mode") == "cluster" else {"spark.pyspark.driver.python": sys.executable}
    return {"spark.archives": archives(Path(extra[BUNDLE])), "spark.pyspark.python": PYTHON, **driver}
