"""Looks for leaks: a secret in files and command lines, as `ps` lists them, and sockets that other machines reach."""

import base64
import contextlib
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote, quote_plus, unquote

import psutil
import pytest

SECONDS = 0.5
PROCESSES = Path("/proc")


def forms(secret: str) -> frozenset[bytes]:
    """The spellings of a key or a signature, which are base64, that a url, a log or a file may have."""
    plain = unquote(secret)
    spelt = {secret, plain, plain.rstrip("="), quote(plain), quote(plain, safe=""), quote_plus(plain)}
    return frozenset(text.encode() for text in spelt) | {base64.b64decode(plain), base64.b64encode(plain.encode())}


def tells(text: str | bytes, secrets: frozenset[bytes]) -> bool:
    content = text.encode(errors="surrogateescape") if isinstance(text, str) else text
    return any(secret in content for secret in secrets)


class Watch:
    """While it is entered, looks at all command lines, at the folder's files and at the sockets of started servers.

    It sees those that are soon gone too.
    """

    def __init__(self, secrets: frozenset[bytes], folder: Path) -> None:
        if not PROCESSES.is_dir():
            pytest.skip(f"the command lines of other processes are read from {PROCESSES}, which only Linux has")
        self.seen: set[str] = set()
        """Every command line and every file that was looked at."""
        self.found: set[str] = set()
        """Those that hold a secret."""
        self.listening: set[str] = set()
        """The addresses on which processes of other sessions listen that this process or its children started."""
        self._secrets = secrets
        self._folder = folder
        self._versions: dict[Path, tuple[int, int]] = {}
        self._left = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._left.wait(SECONDS):
            self._look_at_processes()
            self._look_at_files()
            self._look_at_sockets()

    def _look_at_processes(self) -> None:
        for path in PROCESSES.glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes().replace(b"\0", b" ")
            except OSError:
                continue
            self._note(line.decode(errors="surrogateescape"), line)

    def _look_at_sockets(self) -> None:
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if os.getsid(process.pid) != os.getsid(0):
                    sockets = process.net_connections("tcp")
                    self.listening |= {each.laddr.ip for each in sockets if each.status == psutil.CONN_LISTEN}

    def _look_at_files(self) -> None:
        for path in self._folder.rglob("*"):
            try:
                status = path.stat()
                version = status.st_mtime_ns, status.st_size
                if path.is_file() and self._versions.get(path) != version:
                    self._versions[path] = version
                    self._note(str(path), path.read_bytes())
            except OSError:
                continue

    def _note(self, name: str, content: bytes) -> None:
        self.seen.add(name)
        if tells(content, self._secrets) or tells(name, self._secrets):
            self.found.add(name)

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        self._watcher.join()
        self._look_at_files()
