"""A service that answers List Blobs as Azure does, for an archive of Capture blobs that do not exist."""

import time
from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

PAGE = 5000
KEY = "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Key of the storage emulator's account, which is public."""
REQUEST_ID = "x-ms-request-id"
"""Header by which Azure Storage is known."""
_BLOB = (
    "<Blob><Name>{name}</Name><Properties><Creation-Time>{time}</Creation-Time><Last-Modified>{time}</Last-Modified>"
    "<Etag>{etag}</Etag><Content-Length>{size}</Content-Length><Content-Type>application/octet-stream"
    "</Content-Type><Content-MD5>{md5}</Content-MD5><BlobType>BlockBlob</BlobType>"
    "<AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred><LeaseStatus>unlocked</LeaseStatus>"
    "<LeaseState>available</LeaseState><ServerEncrypted>true</ServerEncrypted></Properties><Metadata/></Blob>"
)

_ANSWER = (
    '<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://127.0.0.1/" '
    'ContainerName="capture"><Prefix>{prefix}</Prefix><Blobs>{entries}</Blobs><NextMarker>{marker}</NextMarker>'
    "</EnumerationResults>"
)


class Listed(NamedTuple):
    """A blob of a listing."""

    name: str
    written: datetime
    """LastModified."""
    etag: str
    size: int = 508
    md5: str = "XrY7u+Ae7tCTyyK7j1rNww=="


def serve(blobs: Sequence[tuple[str, datetime]], latency: float, ready: Connection, counted: Any) -> None:
    """Answer until the process ends. `blobs` are (name, LastModified) in order of name; `latency` is in seconds.

    Send the port when the server listens, and count requests and listed blobs in `counted`.
    """
    listed = [Listed(name, written, f"0x8DC{number:012X}") for number, (name, written) in enumerate(blobs)]

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            time.sleep(latency)
            content, entries = page(listed, self.path)
            with counted.get_lock():
                counted[0] += 1
                counted[1] += entries
            self.send_response(200)
            self.send_header(REQUEST_ID, "1")
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    ready.send(server.server_port)
    server.serve_forever()


def page(blobs: Sequence[Listed], path: str) -> tuple[bytes, int]:
    """Return the page for which a request with this path and query asks, and the number of its entries."""
    query = {key: values[0] for key, values in parse_qs(urlsplit(path).query).items()}
    entries, marker = _entries(blobs, query)
    answer = _ANSWER.format(prefix=query.get("prefix", ""), entries="".join(entries), marker=marker)
    return answer.encode(), len(entries)


def _entries(blobs: Sequence[Listed], query: dict[str, str]) -> tuple[list[str], str]:
    """Return the entries of a page, and the marker of the next page. The blobs are in order of name."""

    def place_of(name: str) -> int:
        return bisect_left(blobs, name, key=lambda blob: blob.name)

    prefix = query.get("prefix", "")
    entries: list[str] = []
    place = place_of(query.get("marker", prefix))
    while place < len(blobs) and (blob := blobs[place]).name.startswith(prefix):
        if len(entries) == PAGE:
            return entries, blob.name
        if "delimiter" in query and query["delimiter"] in blob.name[len(prefix) :]:
            folder = prefix + blob.name[len(prefix) :].partition(query["delimiter"])[0]
            entries.append(f"<BlobPrefix><Name>{folder}/</Name></BlobPrefix>")
            place = place_of(f"{folder}0")
        else:
            entries.append(_BLOB.format(time=format_datetime(blob.written, usegmt=True), **blob._asdict()))
            place += 1
    return entries, ""
