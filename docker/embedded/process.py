"""A server that runs in a session of its own, so that stopping it stops whatever it started."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"


def free_port() -> int:
    """A TCP port of the loopback address that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether a server accepts connections on that port of the loopback address."""
    with socket.socket() as caller:
        caller.settimeout(1)
        return caller.connect_ex(("127.0.0.1", port)) == 0


class Server:
    """A session of processes and the file that their output goes to."""

    def __init__(self, name: str, command: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Return once `ready` holds.

        Raises:
            RuntimeError: the process ended before, or the time is over; with the end of its output.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if self._process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self._process.returncode}:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} was not ready after {seconds:.0f} s:\n{self.tail()}")
            time.sleep(0.2)

    def tail(self, lines: int = 40) -> str:
        """The end of the output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def stop(self, seconds: float = 15) -> None:
        """Ask every process of the session to end; what is left of it after that time is killed.

        The session and not the process group: Airflow gives every task a group of its own.
        """
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while self._members() and time.monotonic() < deadline:
            time.sleep(0.1)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _members(self) -> list[int]:
        self._process.poll()
        members = []
        for pid in psutil.pids():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getsid(pid) == self._process.pid:
                    members.append(pid)
        return members

    def _signal(self, number: int) -> None:
        for pid in self._members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
