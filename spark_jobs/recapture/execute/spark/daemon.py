"""The process from which Spark forks its Python workers on this machine. It loads what every worker needs.

This saves each worker 1 s of CPU. Spark's own daemon leaves loading to the workers, because packages may start threads,
which a fork would lack. The packages that are loaded here start none until they are first used. The fork server of
`workers` relies on the same.
"""

_SETTINGS = {"spark.python.daemon.module": "recapture.execute.spark.daemon"}


def settings(master: str) -> dict[str, str]:
    """Return the settings that make Spark start this module; none unless the master is `local`, in any of its forms.

    On a cluster, an executor may have an older Recapture without this module. Spark's own daemon still starts there,
    and its workers report the version.
    """
    return _SETTINGS if master.startswith("local") else {}


if __name__ == "__main__":
    import pyspark.worker  # noqa: F401
    from pyspark.daemon import manager

    import recapture.execute.processes.preloaded
    import recapture.execute.spark.worker  # noqa: F401

    manager()
