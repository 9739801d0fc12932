"""The watch sees where the servers listen that a test starts."""

import subprocess
import sys
import time

import pytest

from tests.leaks import Watch, address

SERVER = """
import socket
servers = [socket.create_server((address, 0)) for address in ("127.0.0.1", "127.0.0.2")]
input()
"""


def test_the_addresses_of_a_server_are_seen() -> None:
    command = [sys.executable, "-c", SERVER]
    with (
        Watch(frozenset()) as watch,
        subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as server,
    ):
        deadline = time.monotonic() + 30
        while len(watch.listening) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        server.communicate(b"\n")
    assert watch.listening == {"127.0.0.1", "127.0.0.2"}


@pytest.mark.skipif(sys.byteorder == "big", reason="the kernel writes the words in the order of the machine")
@pytest.mark.parametrize(
    ("local", "spelling"),
    [
        ("0100007F:1F90", "127.0.0.1"),
        ("00000000:1F90", "0.0.0.0"),
        ("00000000000000000000000001000000:1F90", "::1"),
        ("0000000000000000FFFF00000100007F:1F90", "::ffff:127.0.0.1"),
    ],
)
def test_an_address_of_the_kernel_is_read(local: str, spelling: str) -> None:
    assert address(local) == spelling
