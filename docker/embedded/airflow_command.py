"""Run a command of Airflow in a process that starts fast, as do its forks: python airflow_command.py COMMAND…

It looks for garbage rarely, which otherwise takes a quarter of the CPU time of a start.

The scheduler forks its workers, and these a process for each task. The DAG processor forks a process for each DAG file.
What the scheduler and the DAG processor have loaded, these need not load: that takes most of the CPU time of a short
task, and of reading a DAG file.
"""

import sys
from importlib import import_module
from importlib.metadata import entry_points

from recapture.process.startup import collect_garbage_rarely, loaded_for_good

READING = ("recapture_airflow.dags", "recapture_airflow.spark_run")
MODULES = {
    "scheduler": (
        *READING,
        "recapture.keep.job",
        "recapture.run.in_processes",
        "recapture.storage.azure",
        "recapture.tools.reports.write",
    ),
    "dag-processor": READING,
}
"""Modules that import what takes long to load, by command.

They may be loaded before a fork: workers of runs do the same.
"""

if __name__ == "__main__":
    collect_garbage_rarely()
    with loaded_for_good():
        main = import_module("airflow.__main__").main
        for module in MODULES.get(sys.argv[1], ()):
            import_module(module)
        if sys.argv[1] in MODULES:
            for plugin in entry_points(group="airflow.plugins"):
                plugin.load()
    main()
