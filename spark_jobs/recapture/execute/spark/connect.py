"""Spark Connect: a session on a server. This process has neither Java nor a Spark context."""

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, is_remote
from pyspark.sql.functions import spark_partition_id

from recapture.errors import DefinitionError, RunError
from recapture.execute.spark.bundle import PYTHON, archives

SCHEME = "sc://"
PORT = 15002
"""Port of a server by default."""
SECONDS = 10.0
"""Seconds that a server may take to accept a connection."""
TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""Variable from which PySpark takes the token for the server."""
SHARED_FILES = "spark.sql.artifact.isolation.enabled", "false"
"""Setting with which workers find the files of a session by their names, as in a session that is not remote."""
_MANY = 1_000_000
"""Number of rows that Spark divides among all cores."""


@contextmanager
def connected_session(address: str, name: str, bundle: Path | None = None) -> Iterator[SparkSession]:
    """Connect to a server, and end the session in the end. Executors run Recapture from `bundle`, or have it.

    Raise DefinitionError if the address has a token, which messages and process lists would show, and RunError if the
    server does not answer.
    """
    if "token=" in address.lower() or "@" in address:
        raise DefinitionError(
            f"{_shown(address)}: the address has a token: remove it, and set {TOKEN} in the environment"
        )
    with open_session(address, name, bundle) as spark:
        yield spark


@contextmanager
def open_session(address: str, name: str, bundle: Path | None = None) -> Iterator[SparkSession]:
    """Do what `connected_session` does. The address may have a token, which no message shows."""
    shown = _shown(address)
    try:
        _require_listener(shown)
        spark = SparkSession.builder.remote(address).appName(name).getOrCreate()
        spark.conf.set(*SHARED_FILES)
        if bundle is not None:
            spark.addArtifacts(archives(bundle), archive=True)
            spark.conf.set("spark.sql.execution.pyspark.python", PYTHON)
    except (PySparkException, ImportError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise RunError(
            f"Spark Connect at {shown} cannot be used ({reason}): check the address and the server"
        ) from None
    try:
        yield spark
    finally:
        with suppress(PySparkException):
            spark.stop()


def _shown(address: str) -> str:
    """Return the host and the port of an address: the other parts may hold a secret."""
    place = re.split("[/;?#]", address.removeprefix(SCHEME), maxsplit=1)[0]
    return f"{SCHEME}{place.rpartition('@')[2]}"


def _require_listener(address: str) -> None:
    """Raise OSError if nothing listens there, and ValueError if it is not an address. PySpark tries for ten minutes."""
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname or "", parts.port or PORT), SECONDS):
        """Leaving the context closes the connection."""


def cores_of_session(spark: SparkSession) -> int:
    """Return the number of tasks that the executors run at the same time."""
    if not is_remote():
        return spark.sparkContext.defaultParallelism
    spark.conf.unset("spark.sql.leafNodeDefaultParallelism")
    return spark.range(_MANY).select(spark_partition_id()).distinct().count()


@contextmanager
def reported_tasks(spark: SparkSession, report: Callable[[int, int], None]) -> Iterator[None]:
    """Report the number of tasks of this context that have ended, and the number of all that are known."""
    seen: dict[int, tuple[int, int]] = {}

    def handle(stages: Any, **unused: object) -> None:
        seen.update((stage.stage_id, (stage.num_completed_tasks, stage.num_tasks)) for stage in stages or ())
        if total := sum(tasks for _, tasks in seen.values()):
            report(sum(ended for ended, _ in seen.values()), total)

    handler: Any = handle  # PySpark passes every argument by its name
    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)
