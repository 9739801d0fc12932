"""A server is stopped with all that it started."""

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from embedded.process import Server

OWN_GROUP = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], process_group=0)
print(child.pid, flush=True)
time.sleep(60)
"""


def test_stopping_a_server_stops_what_it_started_in_groups_of_their_own(tmp_path: Path) -> None:
    server = Server("parent", [sys.executable, "-c", OWN_GROUP], os.environ, tmp_path / "log")
    try:
        server.wait_until(lambda: server.tail().strip().isdigit(), 20)
        child = int(server.tail())
        assert psutil.pid_exists(child)
    finally:
        server.stop()
    deadline = time.monotonic() + 10
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_server_that_ends_before_it_is_ready_shows_the_end_of_its_output(tmp_path: Path) -> None:
    server = Server(
        "short", [sys.executable, "-c", "print('no room'); raise SystemExit(3)"], os.environ, tmp_path / "l"
    )
    with pytest.raises(RuntimeError, match=r"short ended with 3:\nno room"):
        server.wait_until(lambda: False, 20)
