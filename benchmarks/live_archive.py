"""An archive whose storage has its own time, so that hours pass in seconds."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

from benchmarks.blob_service import KEY, REQUEST_ID, Listed, page
from recapture.storage.address import CONNECTION_STRING
from recapture.storage.container import content_md5

ACCOUNT, CONTAINER = "devstoreaccount1", "capture"


class LiveArchive:
    """Blobs of a container, which shows those that were written by its own time.

    Its time stands still unless `pass_time` is called. It is earlier than that of this machine, and Recapture takes the
    earlier of both times as the present.
    """

    def __init__(self, now: datetime) -> None:
        self.url = ""
        """Address of the container while it is served."""
        self.now = now
        """Present time of the storage."""
        self._blobs: dict[str, tuple[Listed, bytes]] = {}
        self._versions = 0
        self._lock = threading.Lock()

    def pass_time(self, time: timedelta) -> None:
        """Let this time pass at once. Raise ValueError if the storage would be ahead of this machine."""
        if self.now + time > datetime.now(UTC):
            raise ValueError(f"the storage would be ahead of this machine at {self.now + time}")
        self.now += time

    def put(self, name: str, content: bytes, written: datetime) -> Listed:
        """Write a blob that is shown from the time `written` on, which is its LastModified, or replace one."""
        with self._lock:
            self._versions += 1
            listed = Listed(name, written, f"0x8DC{self._versions:012X}", len(content), content_md5(content))
            self._blobs[name] = listed, content
        return listed

    def shown(self) -> list[Listed]:
        """Return the blobs that are shown now, in order of name."""
        with self._lock:
            return sorted(listed for listed, _ in self._blobs.values() if listed.written <= self.now)

    def find(self, name: str) -> tuple[Listed, bytes] | None:
        """Return a blob that is shown now, and its content."""
        with self._lock:
            found = self._blobs.get(name)
            return None if found is None or found[0].written > self.now else found

    @contextmanager
    def served(self) -> Iterator[None]:
        """Serve the container as Azure does, and set the connection string of this process and of those it starts."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _answers(self))
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        endpoint = f"http://127.0.0.1:{server.server_port}/{ACCOUNT}"
        os.environ[CONNECTION_STRING] = f"AccountName={ACCOUNT};{KEY};BlobEndpoint={endpoint}"
        self.url = f"{endpoint}/{CONTAINER}"
        try:
            yield
        finally:
            del os.environ[CONNECTION_STRING]
            server.shutdown()
            thread.join()
            server.server_close()


def _answers(archive: LiveArchive) -> type[BaseHTTPRequestHandler]:
    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Answer List Blobs, Get Blob and Get Blob Properties."""
            path = urlsplit(self.path)
            if "comp=list" in path.query:
                self._answer(200, page(archive.shown(), self.path)[0], {"Content-Type": "application/xml"})
                return
            found = archive.find(unquote(path.path).removeprefix(f"/{ACCOUNT}/{CONTAINER}/"))
            if found is None:
                self._answer(404, b"", {"x-ms-error-code": "BlobNotFound"})
                return
            listed, content = found
            headers = {
                "ETag": f'"{listed.etag}"',
                "Last-Modified": format_datetime(listed.written, usegmt=True),
                "Content-Type": "application/octet-stream",
                "x-ms-blob-type": "BlockBlob",
            }
            if self.headers.get("If-Match", headers["ETag"]) != headers["ETag"]:
                self._answer(412, b"", {"x-ms-error-code": "ConditionNotMet"})
                return
            first, last = self.headers.get("x-ms-range", "bytes=0-").removeprefix("bytes=").split("-")
            part = content[int(first) : int(last) + 1 if last else None]
            headers["Content-Range"] = f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}"
            self._answer(206 if self.command == "GET" else 200, part, headers)

        def do_HEAD(self) -> None:
            self.do_GET()

        def date_time_string(self, timestamp: float | None = None) -> str:
            """Return the storage's time for the header Date."""
            return format_datetime(archive.now, usegmt=True)

        def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {REQUEST_ID: "1", **headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            return

    return Answers
