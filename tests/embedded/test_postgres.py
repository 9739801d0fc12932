"""The database of the embedded Airflow."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import psycopg2
import pytest

from embedded.postgres import Postgres
from tests.paths import ROOT

KILLED = """
import sys, time
from pathlib import Path
from embedded.postgres import Postgres

home = Path(sys.argv[1])
with Postgres(home / "database", home / "log"):
    print("ready", flush=True)
    time.sleep(600)
"""


def server_of(data: Path) -> psutil.Process:
    """Return the process of the server that uses this folder."""
    return psutil.Process(int((data / "postmaster.pid").read_text().splitlines()[0]))


def test_the_database_is_reached_through_a_socket_file_and_no_port(tmp_path: Path) -> None:
    with Postgres(tmp_path / "database", tmp_path / "log") as postgres:
        folder = (tmp_path / "database").resolve()
        with psycopg2.connect(postgres.url) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW listen_addresses")
            assert cursor.fetchone() == ("",)
        connection.close()
        for name in ("data", "sockets"):
            assert (folder / name).stat().st_mode & 0o077 == 0
    assert not folder.exists()
    assert not (tmp_path / "database").is_symlink()


def test_postgres_never_runs_as_root(tmp_path: Path) -> None:
    with Postgres(tmp_path / "database", tmp_path / "log"):
        data = (tmp_path / "database").resolve() / "data"
        server = server_of(data)
        assert server.uids().effective != 0
        assert data.stat().st_uid == server.uids().effective


def test_the_next_start_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    started = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT / "docker")},
    )
    assert started.stdout is not None
    assert started.stdout.readline() == b"ready\n"
    left = (tmp_path / "database").resolve()
    server = server_of(left / "data")
    started.kill()
    started.wait()
    started.stdout.close()
    server.wait(60)
    with Postgres(tmp_path / "database", tmp_path / "log"):
        assert (tmp_path / "database").resolve() != left
        assert not left.exists()


def test_a_server_that_ends_is_noticed(tmp_path: Path) -> None:
    with Postgres(tmp_path / "database", tmp_path / "log") as postgres:
        postgres.require_running()
        session = server_of((tmp_path / "database").resolve() / "data").parent()
        assert session is not None
        session.children()[0].terminate()
        psutil.wait_procs([session], 60)
        with pytest.raises(RuntimeError, match="PostgreSQL ended with exit code"):
            postgres.require_running()
