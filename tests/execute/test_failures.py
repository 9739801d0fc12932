"""What a failure in Spark means is said in one sentence."""

import pytest

from recapture.errors import PermanentError, RunError
from recapture.execute.spark.failures import MORE_SPACE, run_error

OF_WORKER = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
"""
"""What Spark writes above the traceback of a Python worker."""
OF_START = """Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent failure: Lost task 0.3:
org.apache.spark.SparkException:
Error from python worker:
  recapture-bundle: the bundle is for Python 3.11, and an executor has none in its PATH: install it there
PYTHONPATH was:
  /opt/spark/python/lib/pyspark.zip
org.apache.spark.SparkException: EOFException occurred while reading the port number from pyspark.daemon's stdout.
"""
MISMATCH = (
    "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different "
    "version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions."
)
FULL = """Job aborted due to stage failure: Task 5 in stage 0.0 failed 4 times, most recent failure: Lost task 5.3 \
in stage 0.0 (TID 11) (10.0.0.7 executor 1): java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (f"{OF_WORKER}recapture.errors.RunError: blob a.avro cannot be read\n", RunError, "blob a.avro cannot be read"),
        (f"{OF_WORKER}recapture.errors.PermanentError: x is 1\n", PermanentError, "x is 1"),
        (f"{OF_WORKER}recapture.errors.DamagedBlobError: a.avro\n", PermanentError, "a.avro"),
        (
            OF_START,
            PermanentError,
            "the bundle is for Python 3.11, and an executor has none in its PATH: install it there",
        ),
        (
            f"{OF_WORKER}ModuleNotFoundError: No module named 'recapture'\n",
            PermanentError,
            "the Python of the executors does not have Recapture: give them a bundle, or install Recapture there; see "
            "docs/spark.md",
        ),
        (
            f"{OF_WORKER}{MISMATCH}\n",
            PermanentError,
            "the executors have Python 3.12, and the driver 3.11: use the same minor version",
        ),
        (f"{OF_WORKER}OSError: full\n", RunError, "the Spark job failed: OSError: full"),
        (FULL, RunError, f"the disk with Spark's temporary files is full on 10.0.0.7: {MORE_SPACE}"),
        (
            "java.io.IOException: No space left on device",
            RunError,
            f"the disk with Spark's temporary files is full: {MORE_SPACE}",
        ),
        ("[NO_WORKERS] none\n at java", RunError, "the Spark job failed: [NO_WORKERS] none"),
    ],
)
def test_a_failure_has_one_sentence_and_is_final_if_a_retry_fails_in_the_same_way(
    text: str, kind: type[RunError], message: str
) -> None:
    error = run_error(text)
    assert (type(error), str(error)) == (kind, message)
