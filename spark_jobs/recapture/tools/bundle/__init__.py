"""Make the bundle with which Spark's executors run Recapture; see `execute.spark.bundle`."""

from recapture.tools.bundle.archive import Bundle, make
from recapture.tools.bundle.target import Machine, Target, here

__all__ = ["Bundle", "Machine", "Target", "here", "make"]
