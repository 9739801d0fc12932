"""What the engine logs, at INFO: which run, input, partition, slices and stage; how much, and for how long."""

import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from recapture.errors import DefinitionError
from recapture.printable import one_line

FORMAT = "RECAPTURE_LOG_FORMAT"
"""Variable that makes each line of the log a JSON object if it is `json`."""
LOGGER = logging.getLogger("recapture")
_FORMAT = "%(asctime)sZ %(levelname)s %(name)s: %(message)s"


class _Lines(logging.Formatter):
    """Write times in UTC, and each message as one line: names of blobs and devices may contain line breaks."""

    converter = time.gmtime  # type: ignore[assignment]

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        record.message = one_line(record.message)
        return super().formatMessage(record)


class _Objects(_Lines):
    """Write each message as a JSON object."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        values = {
            "time": f"{self.formatTime(record, self.datefmt)}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.message,
        }
        return json.dumps(values)


def enable() -> None:
    """Write the engine's log to standard error; what other libraries log is left alone.

    Raise DefinitionError if FORMAT has an unknown value.
    """
    formats = {"": _Lines, "json": _Objects}
    chosen = os.environ.get(FORMAT, "")
    if chosen not in formats:
        raise DefinitionError(f"{FORMAT}={chosen}: set it to json, or unset it")
    LOGGER.setLevel(logging.INFO)
    if not LOGGER.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(formats[chosen](_FORMAT, "%Y-%m-%dT%H:%M:%S"))
        LOGGER.addHandler(handler)
        LOGGER.propagate = False


def enabled() -> bool:
    """Return whether `enable` was called in this process."""
    return bool(LOGGER.handlers)


def silence_spark_errors() -> None:
    """Keep PySpark from printing each error that it raises, with the plan of the query and the stack of the JVM."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


@contextmanager
def logged(logger: logging.Logger, what: str) -> Iterator[list[str]]:
    """Log that something begins, and that it ended, with the seconds that it took and the texts that were appended."""
    began = time.monotonic()
    results: list[str] = []
    logger.info("%s: begins", what)
    try:
        yield results
    except Exception as error:
        logger.info("%s: failed after %.1f s (%s)", what, time.monotonic() - began, type(error).__name__)
        raise
    logger.info("%s: %s in %.1f s", what, ", ".join(results) or "done", time.monotonic() - began)
