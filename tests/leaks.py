"""Look for leaks: secrets in files and command lines, as `ps` lists them, and sockets that other machines can reach."""

import base64
import contextlib
import itertools
import os
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self
from urllib.parse import quote, quote_plus, unquote

import psutil
import pytest

SECONDS = 0.5
LOOKS = 10
"""Number of looks after which files that stay are looked at again."""
PROCESSES = Path("/proc")
LISTEN = 10
"""TCP_LISTEN, the kernel's number for the state of a socket that listens."""
SOCK_DIAG, SOCK_DIAG_BY_FAMILY, REQUEST_ALL, DONE = 4, 20, 0x301, 3
"""Numbers of sock_diag(7) and netlink(7): the protocol, its message, a request for a list, and the list's end."""
HEADER = struct.Struct("=IHHII")
"""Header of a netlink message: size, type, flags, number of the message, and number of the process."""
SOCKET = struct.Struct("=8x16s44xI")
"""Local address and inode in a message of sock_diag(7) about a socket."""


def spellings(secret: str) -> frozenset[bytes]:
    """Return the spellings of a key or signature (both are base64) that a URL, a log or a file may contain.

    A spelling that contains another one is left out, because a search for the other one finds it.
    """
    plain = unquote(secret)
    texts = {secret, plain, plain.rstrip("="), quote(plain), quote(plain, safe=""), quote_plus(plain)}
    found = {text.encode() for text in texts} | {base64.b64decode(plain), base64.b64encode(plain.encode())}
    return frozenset(text for text in found if not any(other in text for other in found - {text}))


def holds_secret(text: str | bytes, secrets: frozenset[bytes]) -> bool:
    content = text.encode(errors="surrogateescape") if isinstance(text, str) else text
    return any(secret in content for secret in secrets)


def listening_sockets() -> dict[str, str]:
    """Return the addresses of all TCP sockets of this machine that listen, by inode.

    sock_diag(7) lists only these. For /proc/net/tcp, the kernel goes through its table of all connections each time.
    """
    return dict(itertools.chain.from_iterable(map(_listening, (socket.AF_INET, socket.AF_INET6))))


def _listening(family: int) -> Iterator[tuple[str, str]]:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as kernel:
        query = struct.pack("=BBxxI48x", family, socket.IPPROTO_TCP, 1 << LISTEN)
        kernel.send(HEADER.pack(HEADER.size + len(query), SOCK_DIAG_BY_FAMILY, REQUEST_ALL, 0, 0) + query)
        while True:
            messages = memoryview(kernel.recv(1 << 16))
            while messages:
                size, kind, *_ = HEADER.unpack_from(messages)
                if kind != SOCK_DIAG_BY_FAMILY:  # the end, or an error
                    assert kind == DONE, f"the kernel does not list its sockets: {bytes(messages[:size])!r}"
                    return
                address, inode = SOCKET.unpack_from(messages, HEADER.size)
                yield str(inode), socket.inet_ntop(family, address[: 4 if family == socket.AF_INET else 16])
                messages = messages[size:]


class Watch:
    """Watch all command lines, the files of folders and the sockets of started servers, as a context manager.

    It looks twice a second, so that processes and files that do not last are seen too. Files in the folders `lasting`,
    such as those of a database, stay: it looks at them every five seconds and at the end.
    """

    def __init__(self, secrets: frozenset[bytes], *folders: Path, lasting: Sequence[Path] = ()) -> None:
        if not PROCESSES.is_dir():
            pytest.skip(f"the command lines of other processes are read from {PROCESSES}, which only Linux has")
        self.checked: set[str] = set()
        """Command lines and names of files that were checked."""
        self.leaks: set[str] = set()
        """Command lines and names of files that contain a secret."""
        self.listening: set[str] = set()
        """Addresses on which descendants of this process listen that run in sessions of their own."""
        self._secrets = secrets
        self._folders, self._lasting = folders, lasting
        self._versions: dict[str, tuple[int, int]] = {}
        self._sockets: dict[str, str] = {}
        self._stopped = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        for look in itertools.count():
            if self._stopped.wait(SECONDS):
                return
            self._look_at_processes()
            self._look_at_files(*self._folders, *(() if look % LOOKS else self._lasting))
            self._look_at_sockets()

    def _look_at_processes(self) -> None:
        for path in PROCESSES.glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes().replace(b"\0", b" ")
            except OSError:
                continue
            if (text := line.decode(errors="surrogateescape")) not in self.checked:
                self._note(text, line)

    def _look_at_sockets(self) -> None:
        """Find the addresses of new sockets that processes of other sessions opened: psutil takes ten times as long."""
        known, self._sockets = self._sockets, listening_sockets()
        if self._sockets.keys() <= known.keys():
            return
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(OSError):
                if os.getsid(process.pid) != os.getsid(0):
                    self._look_at_descriptors(PROCESSES / str(process.pid) / "fd")

    def _look_at_descriptors(self, folder: Path) -> None:
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):  # it is closed
                inode = os.readlink(f"{folder}/{name}").removeprefix("socket:[").removesuffix("]")
                if inode in self._sockets:
                    self.listening.add(self._sockets[inode])

    def _look_at_files(self, *paths: Path) -> None:
        folders = list(map(str, paths))
        while folders:
            # A folder or file that is gone is not checked. scandir is several times as fast as paths.
            with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        self._look_at_file(entry)

    def _look_at_file(self, entry: os.DirEntry[str]) -> None:
        with contextlib.suppress(OSError):
            status = entry.stat()
            version = status.st_mtime_ns, status.st_size
            if entry.is_file() and self._versions.get(entry.path) != version:
                self._versions[entry.path] = version
                self._note(entry.path, Path(entry.path).read_bytes())

    def _note(self, name: str, content: bytes) -> None:
        self.checked.add(name)
        if holds_secret(content, self._secrets) or holds_secret(name, self._secrets):
            self.leaks.add(name)

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._watcher.join()
        self._look_at_files(*self._folders, *self._lasting)
