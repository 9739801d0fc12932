"""Messages when the service fails: one line with what failed and why, and nothing that the libraries say."""

import itertools
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from azure.core.pipeline.transport import HttpTransport

from recapture.errors import DefinitionError, RunError, SetupError
from recapture.storage import in_parallel, open_container, pages, refusals
from recapture.storage.delta import refusal_of_delta
from recapture.table.delta import OpenTable, Table
from recapture.table.snapshot import File
from tests.paths import ROOT
from tests.storage.fault_proxy import FaultProxy, answered, edited, overstated, portal, reset

ADVICE = "check AZURE_STORAGE_CONNECTION_STRING and its permissions"
GARBLED = (
    "the response was truncated or corrupt; run the same command again, and if it recurs, check the network and any "
    "proxy on the way"
)


@pytest.fixture
def url(azure: Any, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> str:
    """A container of two blobs behind the proxy; the SDK does not wait between its attempts."""
    for name in ("a", "b"):
        azure.client.upload_blob(name, name.encode())
    monkeypatch.setattr(HttpTransport, "sleep", lambda transport, seconds: None)
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", proxy.connection_string)
    return f"{proxy.url}/{azure.client.container_name}"


def message_of(call: Callable[[], object]) -> str:
    """Return the one-line message of the RunError that a call raises."""
    with pytest.raises(RunError) as raised:
        call()
    message = str(raised.value)
    assert "\n" not in message
    return message


def with_broken_byte(body: bytes) -> bytes:
    return body[:-40] + b"\xff" + body[-39:]


@pytest.mark.parametrize(
    "fault",
    [
        edited(with_broken_byte),
        edited(lambda body: body[: len(body) // 2]),
        edited(lambda body: body.replace(b"<Content-Length>1<", b"<Content-Length>?<")),
        edited(lambda body: body.replace(b" GMT</Last-Modified>", b"</Last-Modified>").replace(b", ", b"; ")),
    ],
    ids=["a broken byte", "half an answer", "a broken size", "a broken date"],
)
def test_a_listing_that_cannot_be_read_is_reported(proxy: FaultProxy, url: str, fault: Any) -> None:
    proxy.inject(fault, "list")
    assert message_of(lambda: list(open_container(url).list())) == f"cannot list {url}: {GARBLED}"


FOREIGN = (
    "something else answered in place of Azure Storage, such as the sign-in page of a network or a proxy; sign in, or "
    "let requests to the storage account pass, then run the same command again"
)


@pytest.mark.parametrize(
    "fault",
    [
        portal(),
        portal(b"<!DOCTYPE html><meta charset=utf-8><p>Welcome &nbsp; <b>back<br>"),
        portal(kind="application/xml"),
        portal(b'{"login": "please"}', "application/json"),
        portal(b"", "text/plain"),
    ],
    ids=["a page", "a page that is not XML", "a page sent as XML", "JSON", "nothing"],
)
def test_a_page_of_the_network_is_not_taken_for_an_answer(proxy: FaultProxy, url: str, fault: Any) -> None:
    container = open_container(url)
    blob, _ = container.list()
    opened = OpenTable(table(f"{url}/t"))
    opened.create()
    proxy.inject(fault)
    calls: dict[str, Callable[[], object]] = {
        f"list {url}": lambda: list(container.list()),
        f"list {url} ": lambda: list(container.list_folders("")),
        f"list {url}  ": container.clock,
        f"read a from {url}": lambda: container.read(blob),
        f"read b from {url}": lambda: container.read_current("b"),
        f"write c to {url}": lambda: container.write("c", b"c"),
        f"write d to {url}": lambda: container.create("d", b"d"),
    }
    for action, call in calls.items():
        assert message_of(call) == f"cannot {action.rstrip()}: {FOREIGN}"
    assert message_of(lambda: OpenTable(table(f"{url}/t"))) == f"cannot use the table {url}/t: {FOREIGN}"
    proxy.clear()
    proxy.inject(fault, "write")
    assert message_of(lambda: commit(opened)) == f"cannot use the table {url}/t: {FOREIGN}"


def test_a_sign_in_page_ends_a_listing_without_retries(proxy: FaultProxy, url: str) -> None:
    proxy.inject(portal(), "list")
    message_of(lambda: list(open_container(url).list()))
    assert len(proxy.requested("list")) == 1


ENDLESS = (
    "the list repeats itself, or page after page has nothing new; run the same command again, and if it recurs, check "
    "the storage account and any proxy on the way"
)


def with_next_page(marker: Callable[[], str], names: bool = True) -> Any:
    """Return a fault: the list goes on at a marker, with the same blobs or without any."""

    def edit(body: bytes) -> bytes:
        start, _, rest = body.partition(b"<NextMarker")
        if not names:
            start = re.sub(rb"<Blobs>.*</Blobs>", b"<Blobs/>", start)
        end = rest[rest.index(b"</EnumerationResults") :]
        return start + f"<NextMarker>{marker()}</NextMarker>".encode() + end

    return edited(edit)


def counted() -> Callable[[], str]:
    """Return a function that returns another number each time."""
    numbers = itertools.count()
    return lambda: str(next(numbers))


@pytest.mark.parametrize(
    ("fault", "most"),
    [
        (with_next_page(lambda: "again", names=False), 2),
        (with_next_page(lambda: "again"), 2),
        (with_next_page(counted()), 2),
        (with_next_page(counted(), names=False), 21),
    ],
    ids=["the same empty page", "the same page", "the same page with other markers", "empty pages with other markers"],
)
def test_a_list_without_end_is_reported(
    proxy: FaultProxy, url: str, fault: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGES_WITHOUT_PROGRESS", 20)
    proxy.inject(fault, "list")
    assert message_of(lambda: list(open_container(url).list())) == f"cannot list {url}: {ENDLESS}"
    assert len(proxy.requested("list")) == most


@pytest.mark.parametrize("marker", [lambda: "again", counted()], ids=["one marker", "other markers"])
def test_a_list_of_folders_without_end_is_reported(
    azure: Any, proxy: FaultProxy, url: str, marker: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGES_WITHOUT_PROGRESS", 20)
    azure.client.upload_blob("0/a", b"a")
    proxy.inject(with_next_page(marker), "list")
    assert message_of(lambda: list(open_container(url).list_folders(""))) == f"cannot list {url}: {ENDLESS}"
    assert len(proxy.requested("list")) <= 22


def test_a_blob_that_is_listed_twice_is_reported(proxy: FaultProxy, url: str) -> None:
    proxy.inject(edited(lambda body: re.sub(rb"(<Blob>.*?</Blob>)", rb"\1\1", body)), "list")
    assert message_of(lambda: list(open_container(url).list())) == f"cannot list {url}: {ENDLESS}"


def test_empty_pages_are_passed_over(proxy: FaultProxy, url: str) -> None:
    proxy.inject(with_next_page(counted(), names=False), "list", times=3)
    proxy.inject(edited(lambda body: body), "list")
    assert [blob.name for blob in open_container(url).list()] == ["a", "b"]


def test_a_request_whose_connection_broke_is_sent_again(proxy: FaultProxy, url: str) -> None:
    container = open_container(url)
    proxy.inject(reset, "list", times=1)
    assert [blob.name for blob in container.list()] == ["a", "b"]
    proxy.inject(reset, "list", times=1)
    assert container.clock().tzinfo is not None
    proxy.inject(reset, "read", times=1)
    assert container.read_current("a") == b"a"


def test_nothing_that_the_library_logs_is_printed(proxy: FaultProxy, url: str) -> None:
    proxy.inject(overstated(100), "list", times=1)
    proxy.inject(edited(lambda body: b"<" + body[:100]), "list")
    listing = f"from recapture.storage import open_container, pages; list(open_container({url!r}).list())"
    failing = f"try:\n    {listing.partition('; ')[2]}\nexcept Exception: pass"
    completed = subprocess.run(
        [sys.executable, "-c", f"{listing.partition('; ')[0]}\n{failing}"], capture_output=True, text=True, check=True
    )
    assert (completed.stdout, completed.stderr) == ("", "")
    assert len(proxy.requested("list")) > 1


def test_a_read_that_fails_names_its_blob(proxy: FaultProxy, url: str) -> None:
    container = open_container(url)
    blob, _ = container.list()
    proxy.inject(answered(409, "LeaseLost"), "read")
    reason = "the service answered 409 (LeaseLost)"
    assert message_of(lambda: container.read(blob)) == f"cannot read a from {url}: {reason}"
    assert message_of(lambda: container.read_current("b")) == f"cannot read b from {url}: {reason}"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (answered(409, "BlobArchived"), r"cannot read a .*\(BlobArchived\): the blob is in the archive tier: move it "),
        (answered(409, "BlobBeingRehydrated"), r"\(BlobBeingRehydrated\): the blob is being moved out of the archive"),
        (answered(400, "InvalidHeaderValue"), "not in Azure's cloud, set RECAPTURE_STORAGE_API_VERSION"),
        (
            answered(403, "AuthorizationFailure"),
            f"let requests from this network pass the account's firewall or private endpoint, or {ADVICE}$",
        ),
        (
            answered(403, "KeyBasedAuthenticationNotPermitted"),
            "unset AZURE_STORAGE_CONNECTION_STRING, and use an ident",
        ),
    ],
)
def test_a_refusal_that_a_person_can_mend_says_how(proxy: FaultProxy, url: str, fault: Any, reason: str) -> None:
    container = open_container(url)
    blob, _ = container.list()
    proxy.inject(fault, "read")
    with pytest.raises(SetupError, match=reason):
        container.read(blob)
    assert len(proxy.requested("read")) == 1


def test_a_blob_that_may_not_be_replaced_says_why(proxy: FaultProxy, url: str) -> None:
    proxy.inject(answered(409, "BlobImmutableDueToPolicy"), "write")
    with pytest.raises(SetupError, match=r"\(BlobImmutableDueToPolicy\): an immutability policy protects the blob"):
        open_container(url).write("a", b"")


def test_the_page_names_every_refusal_that_a_person_can_mend() -> None:
    table = (ROOT / "docs" / "azure.md").read_text("utf-8").partition("## What a refusal means")[2]
    named = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE))))
    codes = {*refusals._ADVICE, *refusals._NOT_AUTHORISED}
    assert codes <= named
    assert named - codes == {"AuthorizationPermissionMismatch", "ServerBusy", "TooManyRequests"}


@pytest.mark.parametrize(("status", "code"), [(503, "ServerBusy"), (429, "TooManyRequests")])
def test_a_busy_service_is_asked_again_when_it_says(
    proxy: FaultProxy, url: str, monkeypatch: pytest.MonkeyPatch, status: int, code: str
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(HttpTransport, "sleep", lambda transport, seconds: waited.append(seconds))
    container = open_container(url)
    proxy.inject(answered(status, code, Retry_After="7"), times=2)
    assert [blob.name for blob in container.list()] == ["a", "b"]
    assert waited == [7, 7]


def test_a_service_that_stays_busy_is_asked_six_times(
    proxy: FaultProxy, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(HttpTransport, "sleep", lambda transport, seconds: waited.append(seconds))
    container = open_container(url)
    proxy.inject(answered(503, "ServerBusy"), "list")
    reason = "the service answered 503 (ServerBusy) to every attempt: it is busy, or limits requests"
    assert message_of(lambda: list(container.list())).startswith(f"cannot list {url}: {reason}; run the same command")
    assert len(proxy.requested("list")) == 6
    assert 20 <= sum(waited) <= 30


def test_a_proxy_cannot_make_it_wait_for_hours(proxy: FaultProxy, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(HttpTransport, "sleep", lambda transport, seconds: waited.append(seconds))
    container = open_container(url)
    proxy.inject(answered(503, "ServerBusy", Retry_After="86400"), "list", times=1)
    assert len(list(container.list())) == 2
    assert waited == [120]


def test_the_number_of_requests_at_once_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most, lock = 0, 0, threading.Lock()

    def call(number: int) -> int:
        nonlocal running, most
        with lock:
            running, most = running + 1, max(most, running + 1)
        time.sleep(0.01)
        with lock:
            running -= 1
        return number

    monkeypatch.setenv("RECAPTURE_STORAGE_REQUESTS", "2")
    assert in_parallel(call, range(10)) == [*range(10)]
    assert most == 2
    monkeypatch.setenv("RECAPTURE_STORAGE_REQUESTS", "none")
    with pytest.raises(DefinitionError, match=r"^RECAPTURE_STORAGE_REQUESTS=none: set it to a number from 1"):
        in_parallel(call, range(10))


def test_the_version_of_the_api_is_a_setting(proxy: FaultProxy, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECAPTURE_STORAGE_API_VERSION", "2019-07-07")
    list(open_container(url).list())
    assert {request.headers["x-ms-version"] for request in proxy.requested("list")} == {"2019-07-07"}


def test_a_version_of_the_api_that_the_client_does_not_know_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECAPTURE_STORAGE_API_VERSION", "2017-11-09")
    with pytest.raises(
        DefinitionError, match=r"^RECAPTURE_STORAGE_API_VERSION: .* does not support version 2017-11-09; set"
    ):
        open_container(url)


def table(url: str) -> Table:
    return Table(url, pa.schema([("n", pa.int64())]))


def commit(opened: OpenTable) -> bool:
    return opened.commit({"2026-03-01T10:00:00Z": File("x.parquet", 1, 1)}, {})


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (answered(500, "InternalError"), "cannot use the table {}: the service answered 500 (InternalError)"),
        (answered(404, "BlobNotFound"), "cannot use the table {}: the service answered 404 (BlobNotFound)"),
        (answered(412, "ConditionNotMet"), "cannot use the table {}: the service answered 412 (ConditionNotMet)"),
        (reset, "cannot use the table {}: {endpoint} cannot be reached"),
        (
            answered(403, "AuthorizationPermissionMismatch"),
            f"not authorised to use the table {{}} (AuthorizationPermissionMismatch): {ADVICE}",
        ),
    ],
    ids=["500", "404", "412", "reset", "403"],
)
def test_a_commit_that_the_service_refuses_has_its_reason(
    proxy: FaultProxy, url: str, fault: Any, message: str
) -> None:
    opened = OpenTable(table(f"{url}/t"))
    opened.create()
    proxy.inject(fault, "write", "_delta_log")
    assert message_of(lambda: commit(opened)) == message.format(f"{url}/t", endpoint=proxy.url)


@pytest.mark.parametrize("operation", ["list", "read"])
def test_a_table_that_may_not_be_read_is_reported(proxy: FaultProxy, url: str, operation: str) -> None:
    OpenTable(table(f"{url}/t")).create()
    proxy.inject(answered(403, "AuthorizationFailure"), operation)
    with pytest.raises(SetupError) as raised:
        OpenTable(table(f"{url}/t"))
    network = "let requests from this network pass the account's firewall or private endpoint"
    assert (
        str(raised.value) == f"not authorised to use the table {url}/t (AuthorizationFailure): {network}, or {ADVICE}"
    )


def test_a_log_that_cannot_be_listed_is_reported(proxy: FaultProxy, url: str) -> None:
    proxy.inject(edited(with_broken_byte), "list")
    assert message_of(lambda: OpenTable(table(f"{url}/t"))) == f"cannot use the table {url}/t: {GARBLED}"


def test_a_table_in_a_container_that_does_not_exist_is_reported(proxy: FaultProxy, url: str) -> None:
    missing = f"container {url}-not does not exist: create it, or correct the url"
    assert message_of(lambda: OpenTable(table(f"{url}-not/t"))) == missing


@pytest.mark.parametrize(
    ("number", "reason"),
    [(28, "No space left on device"), (30, "Read-only file system"), (13, "Permission denied")],
)
def test_a_refusal_by_a_folder_has_the_reason_of_the_operating_system(number: int, reason: str) -> None:
    error = OSError(f"Generic LocalFileSystem error\n  \x1b[31m↳\x1b[0m {reason} (os error {number})")
    assert str(refusal_of_delta("file:///t", error)) == f"cannot use the table file:///t: {reason}"
