"""The Spark session. The rows do not depend on its settings."""

import contextlib
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from recapture.errors import RunError
from recapture.execute.spark import daemon, java
from recapture.execute.spark.bundle import PYTHON, archives
from recapture.execute.spark.compat import Py4JError, Py4JJavaError
from recapture.execute.spark.connect import SHARED_FILES
from recapture.execute.spark.failures import MORE_MEMORY
from recapture.process import log
from recapture.process.environment import environment
from recapture.process.startup import leave_accumulators_running

CLUSTERS_OWN = ("spark.sql.adaptive.", "spark.sql.execution.pyspark.")
"""Prefixes of the settings of Spark SQL that a cluster may choose. They divide the work, or help to find errors."""

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Settings with which Spark interprets expressions. To compile them takes a second of each start, for few rows."""
JAVA_ERRORS = (Py4JError, ConnectionError)
"""What a call to Java raises if Java fails or has ended."""


def create_session(master: str, name: str, scratch: Path, bundle: Path | None = None) -> SparkSession:
    """Return a quiet Spark session; `master` is as Spark spells it. Spark's temporary files are in `scratch`.

    Executors run Recapture from `bundle`; without it, their Python has it.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.master(master)
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .config("spark.local.dir", str(scratch))
        .config("spark.sql.adaptive.enabled", "false")  # the stages are known: planning them again takes two seconds
        .config(java.DRIVER, f"{java.QUICK_START} {java.SMALL_AND_QUIET} -Djava.io.tmpdir='{scratch}'")
        .config(java.EXECUTOR, java.QUICK_START)
    )
    for setting, value in daemon.settings(master).items():
        builder = builder.config(setting, value)
    if bundle is not None:
        os.environ["PYSPARK_PYTHON"] = PYTHON
        builder = builder.config("spark.archives", archives(bundle))
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return builder.getOrCreate()


def reset_settings(spark: SparkSession) -> None:
    """Give a session the defaults of Spark SQL for all settings but CLUSTERS_OWN and INTERPRETED.

    No setting changes a row, but some, such as experimental planners, refuse to run Python workers.
    """
    for name in spark.conf.getAll:
        if name.startswith("spark.sql.") and not name.startswith(CLUSTERS_OWN) and spark.conf.isModifiable(name):
            spark.conf.unset(name)
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
    spark.conf.set(*SHARED_FILES)


@contextlib.contextmanager
def spark_session(master: str, name: str, scratch: Path, bundle: Path | None = None) -> Iterator[SparkSession]:
    """Start a session and stop it in the end; see `create_session`. With -v, its output is shown.

    Raise RunError, with the last line of the output, if Spark does not start, or if Java ends before the session does.
    """
    readable, writable = os.pipe()
    output: deque[str] = deque(maxlen=100)
    hidden: deque[str] = deque()
    restored = threading.Event()

    def show() -> None:
        with contextlib.suppress(IndexError):
            while True:
                sys.stderr.write(hidden.popleft())

    def listen() -> None:
        with os.fdopen(readable, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                output.append(line)
                if log.enabled():
                    hidden.append(line)
                if restored.is_set():  # before that, our standard error is the pipe itself
                    show()

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        with contextlib.ExitStack() as stack:
            stack.callback(show)
            stack.callback(restored.set)
            stack.callback(os.close, writable)
            stack.enter_context(_standard_error_to(writable))
            stack.enter_context(environment(TMPDIR=str(scratch)))
            spark = create_session(master, name, scratch, bundle)
    except (PySparkRuntimeError, *JAVA_ERRORS) as error:
        if isinstance(error, Py4JJavaError):
            last = str(error.java_exception.getMessage())
        else:
            listener.join(timeout=10)
            messages = [line.strip() for line in output if line.strip() and not line.lstrip().startswith("at ")]
            last = (messages or [str(error)])[-1]
        needed = "it needs a master that it can reach, and Java 17 or newer in PATH or JAVA_HOME"
        raise RunError(f"Spark did not start ({last}): {needed}") from error
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    try:
        yield spark
    except JAVA_ERRORS as error:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = gateway.proc.wait(timeout=10)
            raise RunError(
                f"Java, which runs Spark, ended with code {code}: if it had no memory left, {MORE_MEMORY}"
            ) from error
        raise
    finally:
        leave_accumulators_running(spark.sparkContext)
        with contextlib.suppress(*JAVA_ERRORS):
            spark.stop()


@contextlib.contextmanager
def _standard_error_to(descriptor: int) -> Iterator[None]:
    """Let processes that start in this context inherit another standard error."""
    sys.stderr.flush()
    original = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    finally:
        os.dup2(original, 2)
        os.close(original)
