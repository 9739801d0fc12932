"""The application that a cluster runs to compute a planned run: `spark_jobs/backfill.py`."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.sql import SparkSession

from recapture.definition.packed import unpack
from recapture.definition.pipeline import load
from recapture.errors import DefinitionError, PermanentError, RecaptureError, RunError
from recapture.execute.spark.compute import compute
from recapture.printable import message
from recapture.process import log
from recapture.run_files.files import RunFiles
from recapture.run_files.handed_over import FAILURE, HANDED_OVER, Failure
from recapture.run_files.planned import PlannedRun, load_run
from recapture.storage import open_container


def run() -> None:
    """Compute the planned run that the command line names. Exit with the code of `main` if that fails."""
    if code := main(sys.argv[1:]):
        sys.exit(code)


def main(arguments: list[str]) -> int:
    """Compute a planned run, and return the exit code: 2 if a retry would fail in the same way.

    The arguments are the pipeline file and the id of the run. A machine that cannot read the file takes the address of
    the first output's table in its place: the run files there have the definition; see `handed_over`.
    """
    place, run_id = arguments
    log.enable()
    running = SparkSession.getActiveSession()  # Databricks starts one, and ends it
    spark = running or SparkSession.builder.appName(f"recapture {run_id}").getOrCreate()
    try:
        with _loaded(place, run_id) as planned_run:
            compute(spark, planned_run)
    except RecaptureError as error:
        print(f"recapture: {message(str(error))}", file=sys.stderr)
        return DefinitionError.exit_code if _is_final(error) else error.exit_code
    finally:
        if running is None:
            spark.stop()
    return 0


@contextmanager
def _loaded(place: str, run_id: str) -> Iterator[PlannedRun]:
    """Yield the run that was planned. Write an error of this context to its files if it was handed over."""
    if "://" not in place:
        yield load_run(load(Path(place)), run_id)
        return
    files = RunFiles(open_container(place), run_id)
    handed_over = files.read(HANDED_OVER)
    try:
        with tempfile.TemporaryDirectory(prefix="recapture-") as folder:
            yield load_run(unpack(handed_over.definition, Path(folder)), run_id)
    except RecaptureError as error:
        with suppress(RunError):  # then the log alone has the error
            files.write(FAILURE, Failure(handed_over.attempt, str(error), _is_final(error)))
        raise


def _is_final(error: RecaptureError) -> bool:
    return isinstance(error, (DefinitionError, PermanentError))
