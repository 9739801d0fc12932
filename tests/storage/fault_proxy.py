"""A proxy in front of the storage emulator that records every request and makes chosen ones fail.

    with FaultProxy(azurite) as proxy:
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", proxy.connection_string)
        proxy.inject(answered(500, "InternalError"), "write", r"_delta_log/.*\\.json$", first=2, times=1)
        ...
        assert len(proxy.requested("list")) == 3

A fault takes an `Exchange` and returns the answer to send, or None to reset the connection. Whether the request reaches
the emulator is up to the fault: `Exchange.forward` passes it on.
"""

import http.client
import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from embedded.azurite import ACCOUNT, KEY, Azurite

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}
_PIECE = 16 * 1024


@dataclass
class Request:
    """A request as the client made it, and the status that it got."""

    method: str
    path: str
    """CONTAINER/NAME, decoded."""
    query: dict[str, str]
    headers: dict[str, str]
    """By lower-case name."""
    body: bytes
    status: int | None = None
    """Status of the answer sent; None if the connection was reset, or the answer is not sent yet."""

    @property
    def operation(self) -> str:
        """One of list, read, write, properties, delete or other."""
        match self.method, self.query.get("comp", ""):
            case "GET", "list":
                return "list"
            case "GET", "":
                return "read"
            case "PUT", "" | "block" | "blocklist":
                return "write"
            case "HEAD", "":
                return "properties"
            case "DELETE", "":
                return "delete"
        return "other"


@dataclass(frozen=True)
class Answer:
    """The answer that the client gets."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    """By lower-case name; the length of the body is added unless it is given."""
    body: bytes = b""
    cut_at: int | None = None
    """Bytes of the body after which the connection is reset; None for a whole body."""
    bytes_per_second: int | None = None


@dataclass(frozen=True)
class Exchange:
    """A request that a fault applies to."""

    request: Request
    forward: Callable[[], Answer]
    """Call that passes the request on to the emulator and returns its answer."""


Fault = Callable[[Exchange], Answer | None]


def answered(status: int, code: str = "", **headers: str) -> Fault:
    """Refuse the request with an error of the service; the emulator does not see it."""
    text = f"<?xml version='1.0' encoding='utf-8'?><Error><Code>{code}</Code><Message>injected</Message></Error>"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if code:
        named["x-ms-error-code"] = code
    return lambda exchange: Answer(status, {"content-type": "application/xml", **named}, text.encode())


def reset(exchange: Exchange) -> None:
    """Reset the connection; the emulator does not see the request."""


def lost(exchange: Exchange) -> None:
    """Let the emulator carry the request out, and reset the connection in place of its answer."""
    exchange.forward()


def forgotten(exchange: Exchange) -> Answer:
    """Acknowledge a write that the emulator never sees."""
    version = {"etag": '"0x1"', "last-modified": "Fri, 01 Mar 2024 12:00:00 GMT"}
    return Answer(201, version | {"x-ms-request-id": "1", "x-ms-request-server-encrypted": "true"})


def portal(page: bytes = b"<html><body>Sign in</body></html>", kind: str = "text/html") -> Fault:
    """Answer every request with a page, as the network of a hotel does; the emulator does not see it."""
    return lambda exchange: Answer(200, {"content-type": kind, "date": "Fri, 01 Mar 2024 12:00:00 GMT"}, page)


def cut(share: float = 0.5) -> Fault:
    """Reset the connection after this share of the body."""

    def fault(exchange: Exchange) -> Answer:
        answer = exchange.forward()
        return replace(answer, cut_at=int(len(answer.body) * share))

    return fault


def overstated(by: int = 100) -> Fault:
    """Announce a longer body than there is, then end the connection."""

    def fault(exchange: Exchange) -> Answer:
        answer = exchange.forward()
        length = {"content-length": str(len(answer.body) + by)}
        return replace(answer, headers=answer.headers | length, cut_at=len(answer.body))

    return fault


def edited(edit: Callable[[bytes], bytes], *without: str) -> Fault:
    """Change the body, with a Content-Length that fits; leave the headers of these lower-case names out."""

    def fault(exchange: Exchange) -> Answer:
        answer = exchange.forward()
        headers = {name: value for name, value in answer.headers.items() if name not in without}
        return replace(answer, headers=headers, body=edit(answer.body))

    return fault


def slow(bytes_per_second: int) -> Fault:
    """Send the body at this pace."""
    return lambda exchange: replace(exchange.forward(), bytes_per_second=bytes_per_second)


def held(until: threading.Event, seconds: float = 60) -> Fault:
    """Pass the request on when the event is set. If it never is, raise TimeoutError, which resets the connection."""

    def fault(exchange: Exchange) -> Answer:
        if not until.wait(seconds):
            raise TimeoutError(f"{exchange.request.method} {exchange.request.path} was held for {seconds} s")
        return exchange.forward()

    return fault


@dataclass
class _Rule:
    fault: Fault
    operation: str | None
    path: re.Pattern[str]
    first: int
    times: int | None
    matched: int = 0

    def applies(self, request: Request) -> bool:
        if not _matches(request, self.operation, self.path):
            return False
        self.matched += 1
        return self.matched >= self.first and (self.times is None or self.matched < self.first + self.times)


class FaultProxy:
    """A running proxy, as a context manager. Requests are passed on unchanged until a fault is injected."""

    def __init__(self, azurite: Azurite) -> None:
        self._upstream = azurite.port
        self._rules: list[_Rule] = []
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler_of(self))
        self.requests: list[Request] = []
        """All requests so far, in order of arrival."""

    @property
    def url(self) -> str:
        """Url of the account; a container's url is this, a slash and its name."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/{ACCOUNT}"

    @property
    def connection_string(self) -> str:
        """Value of AZURE_STORAGE_CONNECTION_STRING that reaches the emulator through the proxy."""
        return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={self.url};"

    def inject(
        self, fault: Fault, operation: str | None = None, path: str = "", first: int = 1, times: int | None = None
    ) -> None:
        """Apply a fault to the requests of an operation whose path holds a pattern.

        It begins with the `first` such request from now on and ends after as many `times`, or never. Of several faults
        that apply to a request, the one injected first wins.
        """
        with self._lock:
            self._rules.append(_Rule(fault, operation, re.compile(path), first, times))

    def clear(self) -> None:
        """Remove all faults and forget the requests so far."""
        with self._lock:
            self._rules.clear()
            self.requests.clear()

    def requested(self, operation: str | None = None, path: str = "") -> list[Request]:
        """Return the requests so far of an operation whose path holds a pattern."""
        pattern = re.compile(path)
        with self._lock:
            return [request for request in self.requests if _matches(request, operation, pattern)]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: Request, forward: Callable[[], Answer]) -> Answer | None:
        with self._lock:
            self.requests.append(request)
            fault = next((rule.fault for rule in list(self._rules) if rule.applies(request)), None)
        answer = forward() if fault is None else fault(Exchange(request, forward))
        request.status = None if answer is None else answer.status
        return answer


def _matches(request: Request, operation: str | None, path: re.Pattern[str]) -> bool:
    return operation in (None, request.operation) and path.search(request.path) is not None


class _Server(ThreadingHTTPServer):
    def shutdown_request(self, request: Any) -> None:
        """Close without a shutdown, so that a connection that does not linger is reset."""
        self.close_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that give up."""


def _handler_of(proxy: FaultProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _serve(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            url = urlsplit(self.path)
            request = Request(
                self.command,
                unquote(url.path).removeprefix(f"/{ACCOUNT}").strip("/"),
                dict(parse_qsl(url.query, keep_blank_values=True)),
                {name.lower(): value for name, value in self.headers.items()},
                content,
            )
            answer = proxy._answer(request, lambda: self._forwarded(content))
            if answer is None:
                self._reset()
            else:
                self._send(answer)

        def _forwarded(self, content: bytes) -> Answer:
            upstream = http.client.HTTPConnection("127.0.0.1", proxy._upstream, timeout=60)
            try:
                upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    upstream.putheader(name, value)
                upstream.endheaders(content or None)
                answer = upstream.getresponse()
                headers = {name.lower(): value for name, value in answer.getheaders()}
                dropped = _HOP_BY_HOP - ({"content-length"} if self.command == "HEAD" else set())
                return Answer(
                    answer.status,
                    {name: value for name, value in headers.items() if name not in dropped},
                    answer.read(),
                )
            finally:
                upstream.close()

        def _send(self, answer: Answer) -> None:
            self.send_response_only(answer.status)
            for name, value in ({"content-length": str(len(answer.body))} | answer.headers).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            body = answer.body if answer.cut_at is None else answer.body[: answer.cut_at]
            pace = answer.bytes_per_second
            for start in range(0, len(body), pace or _PIECE):
                self.wfile.write(body[start : start + (pace or _PIECE)])
                self.wfile.flush()
                if pace:
                    time.sleep(1)
            if answer.cut_at is not None:
                self._reset()

        def _reset(self) -> None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            return

    for method in ("GET", "PUT", "HEAD", "DELETE", "POST"):
        setattr(Handler, f"do_{method}", Handler._serve)
    return Handler
