"""The process from which Spark forks its Python workers on this machine. It loads what every worker needs.

Saves each worker 1 s of CPU. Spark's own daemon loads nothing, as packages may start threads that a fork would lack;
these packages start theirs when they first need them, as in the fork server of worker processes.
"""

import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import recapture.execute.processes.preloaded
import recapture.execute.spark.worker  # noqa: F401

if __name__ == "__main__":
    manager()
