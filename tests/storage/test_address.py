"""Urls and connection strings: what is understood, and what is refused without showing a secret."""

from pathlib import Path

import pytest

from spark_jobs.errors import DefinitionError
from spark_jobs.storage.address import AccountAccess, AzureAddress, account_access, parse

CLOUD = AzureAddress("https://account.blob.core.windows.net", "account", "capture", "")
KEY = "c2VjcmV0LWtleQ=="


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://account.blob.core.windows.net/capture", CLOUD),
        ("https://account.blob.core.windows.net:443/capture/", CLOUD),
        ("HTTPS://Account.Blob.core.windows.net/capture", CLOUD),
        (
            "https://account.blob.core.usgovcloudapi.net/curated/a%20b/c",
            AzureAddress("https://account.blob.core.usgovcloudapi.net", "account", "curated", "a b/c"),
        ),
        (
            "http://127.0.0.1:10000/devstoreaccount1/capture",
            AzureAddress("http://127.0.0.1:10000/devstoreaccount1", "devstoreaccount1", "capture", ""),
        ),
        (
            "http://[::1]:10000/devstoreaccount1/capture/x",
            AzureAddress("http://[::1]:10000/devstoreaccount1", "devstoreaccount1", "capture", "x"),
        ),
        (
            "http://localhost/devstoreaccount1/capture",
            AzureAddress("http://localhost/devstoreaccount1", "devstoreaccount1", "capture", ""),
        ),
        ("file:///data/my%20capture/", Path("/data/my capture")),
        ("file://localhost/data", Path("/data")),
    ],
)
def test_a_url_names_a_place(url: str, address: AzureAddress | Path) -> None:
    assert parse(url) == address


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://account.blob.core.windows.net/capture", "use https"),
        ("http://10.0.0.4:10000/devstoreaccount1/capture", "use https"),
        ("https://account.blob.core.windows.net", "no valid container name"),
        ("https://account.blob.core.windows.net/", "no valid container name"),
        ("https://account.blob.core.windows.net/Capture", "no valid container name"),
        ("https://account.blob.core.windows.net/ab", "no valid container name"),
        ("https://account.blob.core.windows.net/capture/../other", "one of dots alone"),
        ("https://account.blob.core.windows.net/capture//other", "empty part"),
        ("http://127.0.0.1:10000/devstoreaccount1", "no valid container name"),
        ("abfss://capture@account.dfs.core.windows.net/x", "password"),
        ("s3://bucket/x", "not a container's url"),
        ("capture", "not a container's url"),
        ("https://[half/capture", "not a container's url"),
        ("https://account.blob.core.windows.net:port/capture", "not a container's url"),
        ("file://data/capture", "three slashes"),
        ("file:relative", "three slashes"),
        ("file:///data/capture#1", "no query, fragment"),
    ],
)
def test_any_other_url_is_refused_with_a_reason(url: str, reason: str) -> None:
    with pytest.raises(DefinitionError, match=reason) as told:
        parse(url)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://account.blob.core.windows.net/capture?sv=2024-11-04&sig=SECRET",
        "https://user:SECRET@account.blob.core.windows.net/capture",
    ],
)
def test_a_secret_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(DefinitionError, match="AZURE_STORAGE_CONNECTION_STRING") as told:
        parse(url)
    assert "SECRET" not in str(told.value)


@pytest.mark.parametrize(
    ("connection_string", "access"),
    [
        (f"AccountName=account;AccountKey={KEY}", AccountAccess(key=KEY)),
        (
            f"DefaultEndpointsProtocol=https;AccountName=account;AccountKey={KEY};EndpointSuffix=core.windows.net;",
            AccountAccess(key=KEY),
        ),
        (
            "BlobEndpoint=https://account.blob.core.windows.net/;SharedAccessSignature=?sv=1&sig=a%3D",
            AccountAccess(sas="sv=1&sig=a%3D"),
        ),
        ("", None),
    ],
)
def test_a_connection_string_grants_a_key_or_a_signature(
    monkeypatch: pytest.MonkeyPatch, connection_string: str, access: AccountAccess | None
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection_string)
    assert account_access(CLOUD) == access
    assert KEY not in repr(access)


def test_the_short_form_of_the_emulator_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true")
    emulator = parse("http://127.0.0.1:10000/devstoreaccount1/capture")
    assert isinstance(emulator, AzureAddress)
    assert account_access(emulator) is not None


@pytest.mark.parametrize(
    ("connection_string", "reason"),
    [
        (f"AccountName=other;AccountKey={KEY}", r"is for https://other\.blob\.core\.windows\.net; set the one of"),
        (f"AccountName=account;AccountKey={KEY};EndpointSuffix=elsewhere.net", r"is for https://account\.blob\.else"),
        (f"AccountName=account;AccountKey={KEY};DefaultEndpointsProtocol=http", r"is for http://account\.blob"),
        (f"AccountName=other;AccountKey={KEY};BlobEndpoint=https://account.blob.core.windows.net", r"is for https"),
        (f"AccountKey={KEY}", "neither BlobEndpoint nor AccountName"),
        ("AccountName=account", "neither AccountKey nor SharedAccessSignature"),
        (KEY.rstrip("="), "not of the form"),
    ],
)
def test_a_connection_string_of_something_else_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, connection_string: str, reason: str
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection_string)
    with pytest.raises(DefinitionError, match=reason) as told:
        account_access(CLOUD)
    assert KEY.rstrip("=") not in str(told.value)
