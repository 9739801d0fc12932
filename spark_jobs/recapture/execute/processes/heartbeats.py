"""Find processes of a pool that are stopped or hang, and kill them: a run would wait for them forever.

A thread of each process gives a sign of life every second, however long its task takes. If a process is silent, the
main process takes its use of CPU time as a sign of life: compiled code can keep that thread from running.
"""

import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

_LOG = logging.getLogger(__name__)
_BEAT = 1.0
"""Time between two signs of life of a process; seconds."""
_LOOK = 2.0
"""Time between two looks of the main process; seconds."""
_LONGEST_LOOK = 10.0
"""Time between two looks from which on the main process, or the machine, must have been stopped itself; seconds."""
NAMED_AFTER = 30.0
"""Silence after which a process is named; seconds."""
ENDED_AFTER = 300.0
"""Silence after which a process is ended; seconds."""


def beat(signs: Connection) -> None:
    """Let a thread of this process give signs of life, until the main process ends."""

    def run() -> None:
        try:
            while True:
                signs.send(os.getpid())
                time.sleep(_BEAT)
        except OSError:
            return

    threading.Thread(target=run, daemon=True).start()


@dataclass
class Silence:
    """How long each process has been silent, as far as the main process was there to hear it."""

    looked: float
    """Time of the last look, in seconds of a monotonic clock."""
    heard: dict[int, float] = field(default_factory=dict)
    """Time of the last sign of life of each process."""
    cpu: dict[int, int] = field(default_factory=dict)
    """CPU time of each process at that time."""
    named: set[int] = field(default_factory=set)

    def look(self, now: float, signs: set[int]) -> dict[int, float]:
        """Return the silence of each process in seconds, given those that gave a sign since the last look.

        After a long time without a look, this process was stopped itself, so the silence is counted from now on.
        """
        was_stopped = now - self.looked > _LONGEST_LOOK
        self.looked = now
        for pid in [*signs, *(self.heard if was_stopped else ())]:
            self.heard[pid] = now
        for pid in self.heard:
            used = _cpu_time(pid)
            if used != self.cpu.get(pid):
                self.cpu[pid], self.heard[pid] = used, now
        silent = {pid: now - heard for pid, heard in self.heard.items()}
        self.named = {pid for pid in self.named if silent.get(pid, 0) > NAMED_AFTER}
        return silent

    def forget(self, pid: int) -> None:
        """Forget a process that has ended."""
        self.heard.pop(pid, None)
        self.named.discard(pid)


@dataclass
class Watch:
    """What a watch over the processes of a pool has found."""

    ended: int | None = None
    """Process that was killed because it gave no sign of life; None if there is none."""

    @property
    def reason(self) -> str | None:
        """Why a process was killed, as a clause after its name; None if none was killed."""
        if self.ended is None:
            return None
        silence = f"(process {self.ended}) gave no sign of life for {ENDED_AFTER:.0f} seconds"
        return f"{silence} and was killed, because it was stopped or hung: run the same command again"


@contextmanager
def watched(signs: Connection, name: str) -> Iterator[Watch]:
    """Watch the processes that give signs of life on a pipe: name those that are silent, and kill them in the end."""
    watch, stopped = Watch(), threading.Event()
    thread = threading.Thread(target=_watch, args=(signs, name, watch, stopped), daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        stopped.set()
        thread.join()


def _watch(signs: Connection, name: str, watch: Watch, stopped: threading.Event) -> None:
    silence = Silence(time.monotonic())
    while not stopped.wait(_LOOK):
        for pid, seconds in silence.look(time.monotonic(), _received(signs)).items():
            if seconds <= NAMED_AFTER:
                continue
            process = next((child for child in multiprocessing.active_children() if child.pid == pid), None)
            if process is None:
                silence.forget(pid)
                continue
            if pid not in silence.named:
                silence.named.add(pid)
                _LOG.warning("%s (process %d) has given no sign of life for %.0f seconds", name, pid, seconds)
            if seconds > ENDED_AFTER:
                watch.ended = pid
                process.kill()


def _received(signs: Connection) -> set[int]:
    """Return the processes that have given a sign of life since the last call."""
    pids = set()
    while signs.poll():
        pids.add(signs.recv())
    return pids


def _cpu_time(pid: int) -> int:
    """Return the CPU time that a process has used, in ticks of the kernel; 0 if it cannot be read."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except (OSError, ValueError, IndexError):
        return 0
