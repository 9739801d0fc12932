"""The watch sees where the servers listen that a test starts."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.leaks import Watch, listening_sockets

IPV6 = Path("/proc/net/if_inet6")
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


@pytest.mark.skipif(not hasattr(socket, "AF_NETLINK"), reason="only Linux has netlink")
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::ffff:127.0.0.1"])
def test_the_kernel_says_where_a_socket_listens(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    if family == socket.AF_INET6 and not IPV6.exists():
        pytest.skip("this machine has no IPv6")
    with socket.socket(family) as server:
        server.bind((address, 0))
        before = listening_sockets().keys()
        server.listen()
        inode = str(os.fstat(server.fileno()).st_ino)
        assert inode not in before
        assert listening_sockets()[inode] == address
