"""Run a command, and end it with all that it started once standard input closes: python session.py COMMAND…

Standard input is a pipe from the process that wants the command. It closes when that process closes it or ends, even
by SIGKILL, so nothing is left running. The session is asked, and not the process group: Airflow gives every task a
group of its own.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import psutil

PATIENCE = 15.0
"""Seconds that processes have to end by themselves."""


def members(session: int) -> list[psutil.Process]:
    """Return the running processes of a session; those that ended and wait for their parent do not count."""
    found = []
    for pid in psutil.pids():
        with contextlib.suppress(ProcessLookupError, PermissionError, psutil.NoSuchProcess):
            if os.getsid(pid) == session:
                process = psutil.Process(pid)
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
    return found


def end(session: int, spared: int | None = None, patience: float = PATIENCE) -> None:
    """Ask the processes of a session to end, then kill those that did not; all but the one with the id `spared`."""

    def signalled(number: signal.Signals) -> bool:
        left = [process for process in members(session) if process.pid != spared]
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        return bool(left)

    deadline = time.monotonic() + patience
    signalled(signal.SIGTERM)
    while any(process.pid != spared for process in members(session)) and time.monotonic() < deadline:
        time.sleep(0.1)
    while signalled(signal.SIGKILL):
        time.sleep(0.1)


def _end_when_input_closes() -> None:
    while os.read(sys.stdin.fileno(), 1024):
        continue
    end(os.getsid(0), spared=os.getpid())


def main() -> int:
    """Return the command's exit code, or 128 and the number of the signal that ended it."""
    for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ending, lambda number, frame: None)
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    threading.Thread(target=_end_when_input_closes, daemon=True).start()
    code = command.wait()
    end(os.getsid(0), spared=os.getpid())
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
