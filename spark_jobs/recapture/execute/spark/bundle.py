"""The bundle: an archive with which executors run Recapture, although their Python does not have it.

`tools.bundle` makes it. Spark unpacks it in the working folder of every executor.
"""

from pathlib import Path

FOLDER = "recapture-bundle"
"""Name of the folder in which Spark unpacks the archive."""
PYTHON = f"./{FOLDER}/bin/python"
"""Program that starts the executor's own Python with the packages of the bundle."""


def archives(bundle: Path | str) -> str:
    """Return the value of Spark's setting `spark.archives` that gives a bundle to all executors."""
    return f"{bundle}#{FOLDER}"
