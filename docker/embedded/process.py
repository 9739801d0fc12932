"""Servers in their own sessions.

A server and all processes that it started end when it is stopped, or when this process ends.
"""

import os
import random
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

import psutil

from embedded import session

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
SERVER_PORTS = range(15_000, 30_000)
"""Ports for servers. Systems use higher ports for outgoing connections, so these are rarely taken."""
PORT_TRIES = 3
"""Maximum number of ports on which a server is started."""
RESTARTS = 3
"""Maximum number of times that a server is started again."""


def free_port() -> int:
    """Return a free TCP port of the loopback address. Raise RuntimeError if there is none.

    This is for a server that must know its port before it starts. Every other server listens on port 0. Another process
    may take the port before the server listens on it: see `start_on_free_port`.
    """
    for port in random.SystemRandom().sample(SERVER_PORTS, len(SERVER_PORTS)):
        if is_free(port):
            return port
    raise RuntimeError(f"no port from {SERVER_PORTS.start} to {SERVER_PORTS.stop - 1} of 127.0.0.1 is free")


def start_on_free_port(start: Callable[[int], None]) -> None:
    """Call `start` with a free port. If it fails because another process took the port, call it with another one.

    `start` must leave nothing running if it raises RuntimeError.
    """
    for tries_left in reversed(range(PORT_TRIES)):
        port = free_port()
        try:
            start(port)
        except RuntimeError:
            if not tries_left or is_free(port):
                raise
        else:
            return


def is_free(port: int) -> bool:
    """Return whether a server could listen on a port of the loopback address."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def major_version(program: str | Path, option: str, pattern: str) -> int:
    """Return the major version that a program prints, the first group of a pattern; 0 if it is not known."""
    try:
        done = subprocess.run([program, option], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    match = re.search(pattern, done.stdout + done.stderr)
    return int(match[1]) if match else 0


def run_once(name: str, command: Sequence[str], env: Mapping[str, str]) -> None:
    """Run a command whose files only this user can read. Raise RuntimeError, with its last lines, if it fails."""
    done = subprocess.run(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        umask=0o077,
        check=False,
    )
    if done.returncode:
        output = done.stdout.decode(errors="replace").splitlines()
        raise RuntimeError("\n".join([f"{name} ended with exit code {done.returncode}:", *output[-40:]]))


class Server:
    """Session of processes, and the log file for their output. Only this user can read the files that they create."""

    def __init__(
        self, name: str, command: Sequence[str], env: Mapping[str, str], log: Path, keep: Iterable[int] = ()
    ) -> None:
        """Start the command. The file descriptors in `keep` stay open until the last process of the session ends."""
        log.parent.mkdir(parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        self.name = name
        self.log = log
        self._command, self._env, self._keep = command, dict(env), tuple(keep)
        self._restarts = 0
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with os.fdopen(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as output:
            return subprocess.Popen(
                [sys.executable, "-P", session.__file__, *self._command],
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=self._keep,
                umask=0o077,
            )

    def ports(self) -> set[int]:
        """Return the TCP ports on which processes of the session listen."""
        listening = set()
        for process in session.members(self._process.pid):
            try:
                connections = process.net_connections("tcp")
            except psutil.NoSuchProcess:
                continue
            listening |= {
                connection.laddr.port for connection in connections if connection.status == psutil.CONN_LISTEN
            }
        return listening

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Wait until `ready` returns True. Raise RuntimeError, with the last output, if it ends or after `seconds`."""
        deadline = time.monotonic() + seconds
        while not ready():
            self.require_running()
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} was not ready after {seconds:.0f} s:\n{self.tail()}")
            time.sleep(0.2)

    def require_running(self) -> None:
        """Raise RuntimeError, with the end of its output, if the server has ended."""
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} ended with exit code {self._process.returncode}:\n{self.tail()}")

    def keep_running(self) -> None:
        """Start the server again if it has ended, and print that.

        Raise RuntimeError, with the end of its output, if that happens more than RESTARTS times.
        """
        if self._process.poll() is None:
            return
        if self._restarts == RESTARTS:
            self.require_running()
        self._restarts += 1
        print(f"{self.name} ended and is started again; its output is in {self.log}", flush=True)
        self._ask_to_end()
        self._process = self._start()

    def tail(self, lines: int = 40) -> str:
        """Return the last lines of the output."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def stop(self) -> None:
        """End every process of the session. Kill those that do not end after SIGTERM."""
        stop_all([self])

    def _ask_to_end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _wait(self) -> None:
        try:
            self._process.wait(2 * session.PATIENCE)
        except subprocess.TimeoutExpired:
            session.end(self._process.pid, patience=0)
        self._process.wait()


def stop_all(servers: Collection[Server]) -> None:
    """Stop several servers in parallel."""
    for server in servers:
        server._ask_to_end()
    for server in servers:
        server._wait()
