"""Shortcuts at the start of a process."""

import os
import subprocess
import sys

from tests.paths import ROOT

SCRIPT = """
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
    environment = os.environ | {"PYTHONPATH": str(ROOT / "spark_jobs")}
    subprocess.run([sys.executable, "-c", SCRIPT], env=environment, check=True)
