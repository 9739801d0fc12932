"""The proxy passes on what it is given, fails what it is asked to, and records both."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.core.exceptions import AzureError, HttpResponseError, ResourceNotFoundError
from azure.storage.blob import ContainerClient

from embedded.azurite import Azurite
from tests.storage.fault_proxy import FaultProxy, answered, cut, edited, held, lost, overstated, reset


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[ContainerClient]:
    """A new container, reached through the proxy without retries."""
    with ContainerClient.from_connection_string(proxy.connection_string, "proxied", retry_total=0) as client:
        client.create_container()
        client.upload_blob("a/b c", b"content")
        proxy.clear()
        yield client
        proxy.clear()
        client.delete_container()


def read(client: ContainerClient) -> bytes:
    content: bytes = client.download_blob("a/b c").readall()
    return content


def test_requests_are_passed_on_and_recorded(proxy: FaultProxy, client: ContainerClient) -> None:
    client.upload_blob("empty", b"")
    assert (read(client), list(client.list_blob_names())) == (b"content", ["a/b c", "empty"])
    client.get_blob_client("empty").get_blob_properties()
    client.delete_blob("empty")
    recorded = [(request.operation, request.path, request.status) for request in proxy.requests]
    assert recorded == [
        ("write", "proxied/empty", 201),
        ("read", "proxied/a/b c", 206),
        ("list", "proxied", 200),
        ("properties", "proxied/empty", 200),
        ("delete", "proxied/empty", 202),
    ]
    assert [request.path for request in proxy.requested("write")] == ["proxied/empty"]
    assert [request.operation for request in proxy.requested(path="b c$")] == ["read"]


def test_a_fault_applies_to_the_requests_that_it_is_for(proxy: FaultProxy, client: ContainerClient) -> None:
    proxy.inject(answered(409, "Conflict"), "read", "b c$", first=2, times=1)
    assert list(client.list_blob_names()) == ["a/b c"]
    assert read(client) == b"content"
    with pytest.raises(HttpResponseError) as raised:
        read(client)
    assert raised.value.status_code == 409
    assert "ErrorCode:Conflict" in str(raised.value)
    assert read(client) == b"content"
    assert [request.status for request in proxy.requested("read")] == [206, 409, 206]


def test_a_write_whose_answer_is_lost_was_carried_out_and_one_that_was_reset_was_not(
    proxy: FaultProxy, client: ContainerClient
) -> None:
    proxy.inject(lost, "write", "lost$")
    proxy.inject(reset, "write", "reset$")
    for name in ("lost", "reset"):
        with pytest.raises(AzureError):
            client.upload_blob(name, name.encode())
    assert client.download_blob("lost").readall() == b"lost"
    with pytest.raises(ResourceNotFoundError):
        client.download_blob("reset")
    assert [request.status for request in proxy.requested("write")] == [None, None]


@pytest.mark.parametrize("fault", [cut(0.5), overstated(9)])
def test_a_body_that_is_cut_off_fails(proxy: FaultProxy, client: ContainerClient, fault: object) -> None:
    proxy.inject(fault, "read")  # type: ignore[arg-type]
    with pytest.raises(AzureError):
        read(client)


def test_an_edited_body_arrives_whole(proxy: FaultProxy, client: ContainerClient) -> None:
    proxy.inject(edited(bytes.upper, "content-md5"), "read")
    assert read(client) == b"CONTENT"


def test_a_held_request_waits_and_others_do_not(proxy: FaultProxy, client: ContainerClient) -> None:
    gate = threading.Event()
    proxy.inject(held(gate), "write", "later$")
    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(client.upload_blob, "later", b"1")
        assert list(client.list_blob_names()) == ["a/b c"]
        gate.set()
        later.result()
    assert list(client.list_blob_names()) == ["a/b c", "later"]


def test_a_request_without_a_fault_reaches_the_emulator_as_it_was_signed(azurite: Azurite, proxy: FaultProxy) -> None:
    assert proxy.url != azurite.url
    with ContainerClient.from_connection_string(proxy.connection_string, "signed") as client:
        client.create_container()
        client.upload_blob("naïve/日本 100%41#?", b"x" * 300_000)
        assert list(client.list_blob_names(name_starts_with="naïve/")) == ["naïve/日本 100%41#?"]
        client.delete_container()
