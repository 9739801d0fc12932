"""A server is stopped with every process that it started, and does not outlive the process that started it."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from embedded import process, session
from embedded.process import PORT_TRIES, RESTARTS, SERVER_PORTS, Server, free_port, start_on_free_port
from tests.paths import ROOT

SECONDS = 60
OWN_GROUP = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], process_group=0)
print(child.pid, flush=True)
time.sleep(600)
"""
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(1, flush=True)
time.sleep(600)
"""
LISTENS = """
import socket, time
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    time.sleep(600)
"""
STARTS_A_SERVER = f"""
import os, sys, time
from pathlib import Path
from embedded.process import Server
log = Path(sys.argv[1])
server = Server("parent", [sys.executable, "-c", {OWN_GROUP!r}], os.environ, log)
server.wait_until(lambda: server.tail().strip().isdigit(), {SECONDS})
print(server.tail(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def started(program: str, log: Path) -> tuple[Server, int]:
    """Start a server that runs this program; return it and the number that it printed."""
    server = Server("program", [sys.executable, "-c", program], os.environ, log)
    server.wait_until(lambda: server.tail().strip().isdigit(), SECONDS)
    return server, int(server.tail())


def ended(child: psutil.Process) -> bool:
    """Return whether the process ends. PID 1 of a container may leave it a zombie for good."""
    until = time.monotonic() + SECONDS
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_stopping_a_server_stops_what_it_started_in_groups_of_their_own(log: Path) -> None:
    server, pid = started(OWN_GROUP, log)
    child = psutil.Process(pid)
    server.stop()
    assert ended(child)


def test_a_server_whose_starter_is_killed_ends_with_all_that_it_started(log: Path) -> None:
    command = [sys.executable, "-c", STARTS_A_SERVER, str(log)]
    env = os.environ | {"PYTHONPATH": str(ROOT / "docker")}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        child = psutil.Process(int(starter.stdout.readline()))
        family = [child, *child.parents()]
        family = family[: [member.pid for member in family].index(starter.pid)]
        assert len(family) == 3
        starter.send_signal(signal.SIGKILL)
    assert all(ended(member) for member in family)


def test_a_process_that_does_not_end_when_asked_is_killed() -> None:
    command = [sys.executable, "-c", STUBBORN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.readline()
        session.end(stubborn.pid, patience=0.1)
        assert stubborn.wait(SECONDS) == -signal.SIGKILL


def test_a_server_that_ends_before_it_is_ready_shows_the_end_of_its_output(log: Path) -> None:
    server = Server("short", [sys.executable, "-c", "print('no room'); raise SystemExit(3)"], os.environ, log)
    with pytest.raises(RuntimeError, match=r"short ended with exit code 3:\nno room"):
        server.wait_until(lambda: False, SECONDS)


def test_a_server_that_ends_is_started_again_a_few_times(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server, _ = started(LISTENS, log)

    def lose(starts: int) -> None:
        """Wait until the server has printed a port after each start, then kill it."""
        server.wait_until(lambda: len(server.tail().splitlines()) == starts, SECONDS)
        server.keep_running()
        (child,) = psutil.Process(server._process.pid).children()
        child.kill()
        server._process.wait(SECONDS)

    for starts in range(1, RESTARTS + 1):
        lose(starts)
        server.keep_running()
    assert capsys.readouterr().out == RESTARTS * f"program ended and is started again; its output is in {log}\n"
    lose(RESTARTS + 1)
    with pytest.raises(RuntimeError, match="program ended with exit code"):
        server.keep_running()


def test_the_ports_of_a_server_are_those_on_which_it_listens_itself(log: Path) -> None:
    server, port = started(LISTENS, log)
    without_port, _ = started(OWN_GROUP, log.with_name("other"))
    try:
        assert server.ports() == {port}
        assert without_port.ports() == set()
    finally:
        server.stop()
        without_port.stop()


def test_files_that_a_server_writes_are_for_this_user_alone(log: Path) -> None:
    made = log.with_name("made")
    server, _ = started(f"open({str(made)!r}, 'w'); print(1, flush=True)", log)
    server.stop()
    assert [path.stat().st_mode & 0o777 for path in (made, log)] == [0o600, 0o600]


def test_a_free_port_is_not_one_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        port = free_port()
        taken.bind(("127.0.0.1", port))
        taken.listen()
        second_port = next(port for port in iter(free_port, port))
        monkeypatch.setattr(process, "SERVER_PORTS", range(port, port + 1))
        with pytest.raises(RuntimeError, match=rf"^no port from {port} to {port} of 127.0.0.1 is free$"):
            free_port()
    assert second_port in SERVER_PORTS


def test_a_server_whose_port_was_taken_is_started_on_another() -> None:
    ports: list[int] = []
    with socket.socket() as taken:

        def start(port: int) -> None:
            ports.append(port)
            if len(ports) == 1:
                taken.bind(("127.0.0.1", port))
                taken.listen()
                raise RuntimeError("the server ended")

        start_on_free_port(start)
    assert len(ports) == 2


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_server_that_does_not_start_for_another_reason_or_on_any_port_fails(
    monkeypatch: pytest.MonkeyPatch, is_taken: bool
) -> None:
    ports: list[int] = []

    def start(port: int) -> None:
        ports.append(port)
        if is_taken:
            monkeypatch.setattr(process, "is_free", lambda other: other not in ports)
        raise RuntimeError("the server ended")

    with pytest.raises(RuntimeError, match="the server ended"):
        start_on_free_port(start)
    assert len(ports) == (PORT_TRIES if is_taken else 1)
