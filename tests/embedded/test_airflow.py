"""Each running Airflow has a folder of its own."""

import os
import sys
from pathlib import Path

from embedded.airflow import reserve_home
from embedded.process import Server


def test_a_folder_is_taken_as_long_as_a_server_of_its_airflow_runs(tmp_path: Path) -> None:
    """The folder stays taken after the process that started the server closes the lock or dies."""
    home, lock = reserve_home(tmp_path)
    server = Server("server", [sys.executable, "-c", "import time; time.sleep(600)"], os.environ, home / "log", [lock])
    os.close(lock)
    try:
        second, second_lock = reserve_home(tmp_path)
        third, third_lock = reserve_home(tmp_path)
    finally:
        server.stop()
    os.close(second_lock)
    again, lock = reserve_home(tmp_path)
    next_free, next_lock = reserve_home(tmp_path)
    for descriptor in (lock, third_lock, next_lock):
        os.close(descriptor)
    assert [path.name for path in (home, second, third, again, next_free)] == ["1", "2", "3", "1", "2"]
    assert home.stat().st_mode & 0o777 == 0o700
