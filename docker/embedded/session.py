"""Run a command, and end it and all processes that it started when standard input closes: python session.py COMMAND…

Standard input is a pipe from the process that starts this one. It closes when that process closes it or ends, even by
SIGKILL, so that nothing keeps running. The whole session is ended, not the process group, because Airflow starts every
task in its own process group.
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
"""Seconds between SIGTERM and SIGKILL."""


def members(session: int) -> list[psutil.Process]:
    """Return the running processes of a session, without zombies."""
    running = []
    for pid in psutil.pids():
        with contextlib.suppress(ProcessLookupError, PermissionError, psutil.NoSuchProcess):
            if os.getsid(pid) == session:
                process = psutil.Process(pid)
                if process.status() != psutil.STATUS_ZOMBIE:
                    running.append(process)
    return running


def end(session: int, spared: int | None = None, patience: float = PATIENCE) -> None:
    """Send SIGTERM to a session, except to `spared`, and SIGKILL to what still runs after `patience` seconds."""

    def send(number: signal.Signals) -> bool:
        """Send a signal to the processes; return whether there were any."""
        processes = [process for process in members(session) if process.pid != spared]
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        return bool(processes)

    deadline = time.monotonic() + patience
    send(signal.SIGTERM)
    while any(process.pid != spared for process in members(session)) and time.monotonic() < deadline:
        time.sleep(0.1)
    while send(signal.SIGKILL):
        time.sleep(0.1)


def _end_when_input_closes() -> None:
    while os.read(sys.stdin.fileno(), 1024):
        continue
    end(os.getsid(0), spared=os.getpid())


def main() -> int:
    """Run the command, and return its exit code, or 128 plus the number of the signal that ended it."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: None)
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    threading.Thread(target=_end_when_input_closes, daemon=True).start()
    code = command.wait()
    end(os.getsid(0), spared=os.getpid())
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
