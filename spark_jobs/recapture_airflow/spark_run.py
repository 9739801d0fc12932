"""The task that submits a planned run to Spark."""

import re
from importlib import metadata
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from airflow.sdk import Context

from recapture.definition.pipeline import load
from recapture.storage import open_container
from recapture_airflow.final_errors import fail_at_once

APPLICATION = Path(__file__).parent / "application" / "backfill.py"
"""What Spark runs. It is part of the package, so that tasks need no other files."""
USELESS = re.compile(r"Error code is: 2\b")
"""What the provider says of an application that ended with 2: see `recapture.execute.spark.compute.main`."""


def require_one_pyspark() -> None:
    """Raise AirflowFailException if pyspark-client is installed in another version than pyspark.

    Both packages have files in common, so that of two versions one is damaged.
    """
    installed = {}
    for name in ("pyspark", "pyspark-client"):
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            return
    if len(set(installed.values())) > 1:
        versions = ", but ".join(f"{name} is {version}" for name, version in installed.items())
        raise AirflowFailException(f"{versions}: they have files in common, so install the same version of both")


class SparkRun(SparkSubmitOperator):
    """Operator that submits a planned run. It is not retried if a retry would fail in the same way.

    In deploy mode `cluster`, the exit code is not known, so the task is retried.
    """

    def __init__(self, *, file: str, **kwargs: Any) -> None:
        self.file = file
        super().__init__(**kwargs)

    @fail_at_once()
    def execute(self, context: Context) -> None:
        """Run Spark. Raise AirflowFailException if a retry would fail in the same way, as the application says."""
        from recapture.keep.holding import renewing

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
