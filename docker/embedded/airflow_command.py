"""Run a command of Airflow that starts faster: python airflow_command.py COMMAND…

Python looks for garbage neither during the imports, nor often afterwards: that would take a quarter of the CPU time of
a start.

The scheduler forks its workers, and these a process for each task. The DAG processor forks a process for each DAG file.
Before they fork, both load Recapture's modules and Airflow's plugins, and the scheduler also loads Great Expectations.
That would take most of the CPU time of a short task, of an audit, or of reading a DAG file.
"""

import sys
from importlib import import_module
from importlib.metadata import entry_points

from recapture.process.startup import collect_garbage_rarely, loaded_for_good

DAG_MODULES = ("recapture_airflow.dags", "recapture_airflow.spark_run")
"""Modules that DAG files import."""
MODULES = {
    "scheduler": (
        *DAG_MODULES,
        "recapture.keep.job",
        "recapture.run.in_processes",
        "recapture.storage.azure",
        "recapture.tools.reports.write",
    ),
    "dag-processor": DAG_MODULES,
}
"""Modules that are loaded before the forks, by command. They start no threads when they are imported."""

if __name__ == "__main__":
    collect_garbage_rarely()
    with loaded_for_good():
        main = import_module("airflow.__main__").main
        for module in MODULES.get(sys.argv[1], ()):
            import_module(module)
        if sys.argv[1] in MODULES:
            for plugin in entry_points(group="airflow.plugins"):
                plugin.load()
        if sys.argv[1] == "scheduler":
            import_module("recapture.quality.loading").load_great_expectations()
    main()
