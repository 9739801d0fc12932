"""A service that answers List Blobs as Azure does, for an archive of Capture blobs that do not exist."""

import time
from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import parse_qs, urlsplit

PAGE = 5000
_BLOB = (
    "<Blob><Name>{name}</Name><Properties><Creation-Time>{time}</Creation-Time><Last-Modified>{time}</Last-Modified>"
    "<Etag>0x8DC{number:012X}</Etag><Content-Length>508</Content-Length><Content-Type>application/octet-stream"
    "</Content-Type><Content-MD5>XrY7u+Ae7tCTyyK7j1rNww==</Content-MD5><BlobType>BlockBlob</BlobType>"
    "<AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred><LeaseStatus>unlocked</LeaseStatus>"
    "<LeaseState>available</LeaseState><ServerEncrypted>true</ServerEncrypted></Properties><Metadata/></Blob>"
)

_ANSWER = (
    '<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://127.0.0.1/" '
    'ContainerName="capture"><Prefix>{prefix}</Prefix><Blobs>{entries}</Blobs><NextMarker>{marker}</NextMarker>'
    "</EnumerationResults>"
)


def serve(blobs: Sequence[tuple[str, datetime]], latency: float, ready: Connection, counted: Any) -> None:
    """Answer until the process ends. `blobs` are (name, LastModified) in order of name; `latency` is in seconds.

    Send the port when the server listens, and count requests and listed blobs in `counted`.
    """
    names = [name for name, _ in blobs]

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            time.sleep(latency)
            query = {key: values[0] for key, values in parse_qs(urlsplit(self.path).query).items()}
            entries, marker = _page(blobs, names, query)
            with counted.get_lock():
                counted[0] += 1
                counted[1] += len(entries)
            content = _ANSWER.format(prefix=query.get("prefix", ""), entries="".join(entries), marker=marker).encode()
            self.send_response(200)
            self.send_header("x-ms-request-id", "1")  # by which Azure Storage is known
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    ready.send(server.server_port)
    server.serve_forever()


def _page(blobs: Sequence[tuple[str, datetime]], names: Sequence[str], query: dict[str, str]) -> tuple[list[str], str]:
    """Return the entries of a page, and the marker of the next page."""
    prefix = query.get("prefix", "")
    entries: list[str] = []
    place = bisect_left(names, query.get("marker", prefix))
    while place < len(names) and names[place].startswith(prefix):
        if len(entries) == PAGE:
            return entries, names[place]
        name, written = blobs[place]
        if "delimiter" in query and query["delimiter"] in name[len(prefix) :]:
            folder = prefix + name[len(prefix) :].partition(query["delimiter"])[0]
            entries.append(f"<BlobPrefix><Name>{folder}/</Name></BlobPrefix>")
            place = bisect_left(names, f"{folder}0")
        else:
            entries.append(_BLOB.format(name=name, time=format_datetime(written, usegmt=True), number=place))
            place += 1
    return entries, ""
