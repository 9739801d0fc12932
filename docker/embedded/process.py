"""A server in a session of its own, which ends with all that it started when it is stopped or this process ends."""

import os
import random
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
SERVED = range(15_000, 30_000)
"""Ports for servers. Systems take those of outgoing connections above, so none of these disappears before its use."""


def free_port() -> int:
    """Return a TCP port of the loopback address that nothing listens on.

    For a server that must know its port before it starts; any other listens on port 0.
    """
    for port in random.SystemRandom().sample(SERVED, len(SERVED)):
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no port from {SERVED.start} to {SERVED.stop - 1} of 127.0.0.1 is free")


class Server:
    """A session of processes and the file that their output goes to. What they create is only this user's to read."""

    def __init__(
        self, name: str, command: Sequence[str], env: Mapping[str, str], log: Path, keep: Iterable[int] = ()
    ) -> None:
        """Start the command; the descriptors of `keep` stay open until its last process has ended."""
        log.parent.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.log = log
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-P", session.__file__, *command],
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=tuple(keep),
                umask=0o077,
            )

    def ports(self) -> set[int]:
        """Return the TCP ports that the server's own processes listen on."""
        found = set()
        for process in session.members(self._process.pid):
            try:
                connections = process.net_connections("tcp")
            except psutil.NoSuchProcess:
                continue
            found |= {each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN}
        return found

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Return once `ready` holds.

        Raises:
            RuntimeError: the server ended before, or the time is over; with the end of its output.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            self.require_running()
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} was not ready after {seconds:.0f} s:\n{self.tail()}")
            time.sleep(0.2)

    def require_running(self) -> None:
        """Raise RuntimeError, with the end of its output, if the server has ended."""
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.name} ended with {self._process.returncode}:\n{self.tail()}")

    def tail(self, lines: int = 40) -> str:
        """Return the end of the output."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def stop(self) -> None:
        """End every process of the session; those that do not end when asked are killed."""
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
    """Stop several servers at once."""
    for server in servers:
        server._ask_to_end()
    for server in servers:
        server._wait()
