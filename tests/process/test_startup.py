"""Shortcuts at the start of a process."""

import os
import subprocess
import sys

from tests.paths import ROOT

GARBAGE = """
import gc
from recapture.process.startup import loaded_for_good

looks = []
gc.callbacks.append(lambda phase, info: looks.append(phase))
gc.collect()
with loaded_for_good():
    looks.clear()
    loaded = [[] for _ in range(1_000_000)]
    assert looks == []
assert gc.get_freeze_count() > 1_000_000
more = [[] for _ in range(10_000)]
assert "start" in looks
"""


def test_no_garbage_is_looked_for_while_a_command_is_imported_and_then_not_in_what_it_imported() -> None:
    run(GARBAGE)


THREADS = """
import os
from recapture.process.startup import start_no_threads_for_linear_algebra

start_no_threads_for_linear_algebra()
import numpy
assert len(os.listdir("/proc/self/task")) == 1
"""


def test_a_command_that_imports_numpy_still_has_one_thread_and_so_may_fork() -> None:
    run(THREADS)


def run(script: str) -> None:
    """Run a script that uses our package in a new process."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "spark_jobs")}
    environment.pop("OPENBLAS_NUM_THREADS", None)
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
