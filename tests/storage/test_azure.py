"""What only Azure Blob Storage has: pages, directory markers, signatures and refusals."""

import base64
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partialmethod
from typing import Any

import pytest
from azure.core.pipeline.transport import HttpTransport
from azure.storage.blob import ContainerClient, ContainerSasPermissions, ContentSettings, generate_container_sas

from embedded.azurite import ACCOUNT, KEY, Azurite
from recapture.errors import RunError
from recapture.storage import Container, open_container
from tests.storage.fault_proxy import FaultProxy, edited


@pytest.fixture
def proxied(azure: Any, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> Container:
    """An empty container behind the proxy."""
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", proxy.connection_string)
    return open_container(f"{proxy.url}/{azure.client.container_name}")


def test_a_listing_goes_on_over_pages(proxied: Container, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(23):
        proxied.write(f"{number:02}", b"")
    in_fives = partialmethod(ContainerClient.list_blob_names, results_per_page=5)
    monkeypatch.setattr(ContainerClient, "list_blob_names", in_fives)
    assert [blob.name for blob in proxied.list()] == [f"{number:02}" for number in range(23)]
    assert len(proxy.requested("list")) == 5


def test_a_name_that_xml_cannot_hold_is_listed_as_it_is(proxied: Container, proxy: FaultProxy) -> None:
    blob = proxied.write("a", b"1")
    encoded = b"<Name Encoded='true'>a%20%EF%BF%BE</Name>"
    proxy.inject(edited(lambda body: body.replace(b"<Name>a</Name>", encoded)), "list")
    assert list(proxied.list()) == [replace(blob, name="a \ufffe")]


def test_directory_markers_are_not_listed(azure: Any) -> None:
    azure.client.upload_blob("contoso", b"", metadata={"hdi_isfolder": "true"})
    azure.client.upload_blob("contoso/hub", b"", metadata={"Hdi_isfolder": "true"})
    azure.client.upload_blob("contoso/hub/empty.avro", b"")
    assert [blob.name for blob in open_container(azure.url).list()] == ["contoso/hub/empty.avro"]


def test_content_that_does_not_match_the_content_md5_of_the_service_is_refused(azure: Any) -> None:
    wrong = base64.b64decode("AAAAAAAAAAAAAAAAAAAAAA==")
    azure.client.upload_blob("flipped", b"flip").set_http_headers(ContentSettings(content_md5=bytearray(wrong)))
    container = open_container(azure.url)
    (blob,) = container.list()
    with pytest.raises(RunError, match=r"^blob flipped is damaged: its Content-MD5 is AAAAAAAAAAAAAAAAAAAAAA=="):
        container.read(blob)


def test_a_large_blob_is_read_as_one_version(azure: Any) -> None:
    content = bytes(range(256)) * 160_000
    container = open_container(azure.url)
    blob = container.write("large", content)
    assert container.read(blob) == content


def test_a_shared_access_signature_is_enough(azurite: Azurite, azure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    open_container(azure.url).write("x", b"1")
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", _with_signature(azurite, azure, "rl"))
    reader = open_container(azure.url)
    assert [reader.read(blob) for blob in reader.list()] == [b"1"]


def test_a_refusal_names_the_place_and_no_secret(azurite: Azurite, azure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    connection_string = _with_signature(azurite, azure, "l")
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection_string)
    container = open_container(azure.url)
    with pytest.raises(RunError, match=rf"^not authorised to write x to {azure.url} .*CONNECTION_STRING") as raised:
        container.write("x", b"1")
    assert "sig=" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_no_log_has_a_signature_even_in_detail(
    azurite: Azurite, azure: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    connection_string = _with_signature(azurite, azure, "rl")
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection_string)
    with caplog.at_level("DEBUG"):
        assert list(open_container(azure.url).list()) == []
    assert "restype=container&comp=list" in caplog.text
    assert connection_string.partition("sig=")[2] not in caplog.text


def test_a_wrong_key_is_reported(azurite: Azurite, azure: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = base64.b64encode(b"wrong" * 10).decode()
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", azurite.connection_string.replace(KEY, wrong))
    with pytest.raises(RunError, match=rf"^not authorised to list {azure.url}") as raised:
        list(open_container(azure.url).list())
    assert wrong not in str(raised.value)


def test_a_service_out_of_reach_is_reported_after_one_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(HttpTransport, "sleep", lambda transport, seconds: pauses.append(seconds))
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}/{ACCOUNT}"
        credentials = f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={endpoint}"
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", credentials)
        with pytest.raises(RunError, match=rf"^cannot list {endpoint}/capture: {endpoint} cannot be reached$"):
            list(open_container(f"{endpoint}/capture").list())
    assert len(pauses) == 1
    assert pauses[0] < 5


def test_a_container_that_does_not_exist_cannot_be_used(azure: Any) -> None:
    missing: Container = open_container(azure.url + "-not")
    for attempt in (
        lambda: missing.write("x", b""),
        lambda: missing.create("x", b""),
        lambda: missing.read_current("x"),
    ):
        with pytest.raises(RunError, match=r"-not does not exist: create it, or correct the url$"):
            attempt()


def _with_signature(azurite: Azurite, azure: Any, permission: str) -> str:
    signature = generate_container_sas(
        ACCOUNT,
        azure.client.container_name,
        account_key=KEY,
        permission=ContainerSasPermissions.from_string(permission),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    return f"BlobEndpoint={azurite.url};SharedAccessSignature={signature}"
