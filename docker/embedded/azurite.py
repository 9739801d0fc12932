"""Azurite, Azure's storage emulator: blobs only, on a free port."""

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from embedded.node import AZURITE, node
from embedded.process import CACHE, Server, free_port, listens

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The emulator's account and key: the same everywhere, published by Microsoft, no secret."""


class Azurite:
    """A running emulator, as a context manager. Without a workspace it keeps everything in memory."""

    def __init__(self, workspace: Path | None = None, port: int | None = None, log: Path | None = None) -> None:
        self.workspace = workspace
        self.port = port or free_port()
        self._log = log or CACHE / "azurite" / f"{self.port}.log"
        self._server: Server | None = None

    @property
    def url(self) -> str:
        """Of the account; a container's URL is this, a slash and its name."""
        return f"http://127.0.0.1:{self.port}/{ACCOUNT}"

    @property
    def connection_string(self) -> str:
        """What AZURE_STORAGE_CONNECTION_STRING must hold for this emulator."""
        return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={self.url};"

    def _options(self) -> list[str]:
        address = ["--blobHost", "127.0.0.1", "--blobPort", str(self.port)]
        return [*address, "--skipApiVersionCheck", "--disableTelemetry", "--silent"]

    def __enter__(self) -> Self:
        keep = ["--location", str(self.workspace)] if self.workspace else ["--inMemoryPersistence"]
        script = AZURITE / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
        if not script.exists():
            raise RuntimeError("Azurite is not installed: run `make azurite`")
        self._server = Server(
            "Azurite",
            [str(node()), str(script), *keep, *self._options()],
            os.environ,
            self._log,
        )
        try:
            self._server.wait_until(lambda: listens(self.port), 30)
        except BaseException:
            self._server.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.stop()
