"""Azurite, Azure's storage emulator, with the blob service only."""

import os
from pathlib import Path
from typing import Self

from embedded.node import AZURITE, node
from embedded.process import Server

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Key of the emulator's account. Microsoft publishes it, and it is the same everywhere: it is not a secret."""


class Azurite:
    """Context manager for a running emulator. Without a workspace, it stores everything in memory.

    With port 0, it listens on a free port that it chooses. Give the port of an earlier emulator to use the same one.
    """

    def __init__(self, log: Path, workspace: Path | None = None, port: int = 0) -> None:
        self.workspace = workspace
        self.port = port
        self._log = log
        self._server: Server | None = None

    @property
    def url(self) -> str:
        """URL of the account. The URL of a container is this, a slash and its name."""
        return f"http://127.0.0.1:{self.port}/{ACCOUNT}"

    @property
    def connection_string(self) -> str:
        """Value of AZURE_STORAGE_CONNECTION_STRING for this emulator."""
        return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={self.url};"

    def _options(self) -> list[str]:
        address = ["--blobHost", "127.0.0.1", "--blobPort", str(self.port)]
        return [*address, "--skipApiVersionCheck", "--disableTelemetry", "--silent"]

    def __enter__(self) -> Self:
        storage = ["--location", str(self.workspace)] if self.workspace else ["--inMemoryPersistence"]
        script = AZURITE / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
        if not script.exists():
            raise RuntimeError("Azurite is not installed: run `make azurite`")
        command = [str(node()), str(script), *storage, *self._options()]
        self._server = server = Server("Azurite", command, os.environ, self._log)
        try:
            server.wait_until(lambda: bool(server.ports()), 60)
        except BaseException:
            server.stop()
            raise
        (self.port,) = server.ports()
        return self

    def __exit__(self, *error: object) -> None:
        if self._server is not None:
            self._server.stop()
