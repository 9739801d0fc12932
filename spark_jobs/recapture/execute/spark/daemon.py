"""The process from which Spark forks its Python workers on this machine. It loads what every worker needs.

Saves each worker 1 s of CPU. Spark's own daemon loads nothing, as packages may start threads that a fork would lack;
these packages start theirs when they first need them, as in the fork server of worker processes.
"""

_SETTINGS = {"spark.python.daemon.module": "recapture.execute.spark.daemon"}


def settings(master: str) -> dict[str, str]:
    """Return the settings with which Spark starts this module; none if the master is not this machine.

    On a cluster, an executor may have another version of Recapture, which its workers report.
    """
    return _SETTINGS if master.startswith("local") else {}


if __name__ == "__main__":
    import pyspark.worker  # noqa: F401
    from pyspark.daemon import manager

    import recapture.execute.processes.preloaded
    import recapture.execute.spark.worker  # noqa: F401

    manager()
