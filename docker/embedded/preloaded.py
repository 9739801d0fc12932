"""Run a command of Airflow after loading what tasks import: python preloaded.py COMMAND…

The scheduler forks its workers, and these a process for each task. What the scheduler has loaded, no task has to load:
that takes most of the CPU time of a short task.
"""

from importlib import import_module

from airflow.__main__ import main

MODULES = (
    "recapture_airflow.dags",
    "recapture_airflow.spark_run",
    "recapture.keep.job",
    "recapture.storage.azure",
)
"""Modules that import what takes long to load. They may be loaded before a fork: workers of runs do the same."""

if __name__ == "__main__":
    for module in MODULES:
        import_module(module)
    main()
