"""Archive the classes that Spark loads: `python -m tests.shared_classes`, which `make` runs once.

The JVMs of the tests map the archive into memory, which takes half the time of loading and linking these classes. Java
ignores an archive of other classes, or of another Java.
"""

import logging
import os
import tempfile
from datetime import timedelta
from pathlib import Path

from recapture.execute.spark.session import create_session
from tests.worlds import COUNTS, SHARED_CLASSES, START_WITHOUT_ARCHIVE, TEN, backfill, steady


def main() -> None:
    """Write the archive of a JVM that ran a backfill; an empty file if Java writes none."""
    logging.getLogger("py4j").setLevel(logging.WARNING)
    SHARED_CLASSES.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SHARED_CLASSES.parent) as folder:
        home, archive = Path(folder), Path(folder, "classes.jsa")
        os.environ["JAVA_TOOL_OPTIONS"] = f"{START_WITHOUT_ARCHIVE} '-XX:ArchiveClassesAtExit={archive}'"
        spark = create_session("local[2]", "shared-classes", home)
        pipeline = steady(home, hours=1).define(COUNTS.replace("COUNT(*)", "COUNT(DISTINCT temperature)"))
        backfill(spark, pipeline, TEN, TEN + timedelta(hours=1))
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        java = gateway.proc
        spark.stop()
        java.stdin.close()
        java.wait()
        archive.touch()
        archive.replace(SHARED_CLASSES)


if __name__ == "__main__":
    main()
