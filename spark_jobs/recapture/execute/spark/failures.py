"""What the text of a Spark error says of a run: Spark joins the tracebacks of Python workers and of Java."""

import re

from recapture import errors
from recapture.errors import PermanentError, RunError

MORE_MEMORY = "give Spark more memory, for example with SPARK_DRIVER_MEMORY=4g, or backfill fewer hours at once"
MORE_SPACE = (
    "free some, name a folder on a larger disk in SPARK_LOCAL_DIRS of the workers (in TMPDIR with local[*]), or "
    "backfill fewer hours at once"
)
_GIVE_IT = "give them a bundle, or install Recapture there; see docs/spark.md"


def run_error(text: str) -> RunError:
    """Return Recapture's own error, else the last exception in Spark's text, else its first line.

    It is a PermanentError if a Python worker raised one, or if the executors cannot run Recapture.
    """
    if ours := re.findall(r"^recapture\.errors\.(\w+): (.*)$", text, re.MULTILINE):
        name, message = ours[-1]
        return PermanentError(message) if issubclass(getattr(errors, name), PermanentError) else RunError(message)
    if unusable := _unusable_executors(text):
        return PermanentError(unusable)
    return RunError(_reason(text))


def _unusable_executors(text: str) -> str | None:
    """Return why the executors cannot run Recapture, as Spark's text says; None if it does not."""
    if refused := re.search(r"^\s*recapture-bundle: (.*)$", text, re.MULTILINE):
        return refused[1]
    if "ModuleNotFoundError: No module named 'recapture'" in text:
        return f"the Python of the executors does not have Recapture: {_GIVE_IT}"
    if versions := re.search(r"Python in worker has different version: (\S+) than that in driver: ([\d.]+)", text):
        return f"the executors have Python {versions[1]}, and the driver {versions[2]}: use the same minor version"
    return None


def _reason(text: str) -> str:
    if "java.lang.OutOfMemoryError" in text:
        return f"Java, which runs Spark, has no memory left: {MORE_MEMORY}"
    if "No space left on device" in text:
        host = re.search(r"\((\S+) executor \S+\)", text)
        return f"the disk with Spark's temporary files is full{f' on {host[1]}' if host else ''}: {MORE_SPACE}"
    raised = re.findall(r"^[\w.]+(?:Error|Exception): .*$", text, re.MULTILINE)
    return f"the Spark job failed: {raised[-1] if raised else text.strip().splitlines()[0]}"
