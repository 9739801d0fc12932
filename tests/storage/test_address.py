"""URLs: which are understood, and which are refused without showing a secret."""

from pathlib import Path

import pytest

from recapture.errors import DefinitionError
from recapture.storage.address import AzureAddress, parse

CLOUD = AzureAddress("https://account.blob.core.windows.net", "account", "capture", "")


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
        ("abfss://capture@account.dfs.core.windows.net", CLOUD),
        ("abfss://capture@Account.dfs.core.windows.net:443/", CLOUD),
        ("wasbs://capture@account.blob.core.windows.net/", CLOUD),
        ("https://account.dfs.core.windows.net/capture/", CLOUD),
        (
            "abfss://curated@account.dfs.core.chinacloudapi.cn/a%20b/c",
            AzureAddress("https://account.blob.core.chinacloudapi.cn", "account", "curated", "a b/c"),
        ),
        (
            "https://account.z01.dfs.storage.azure.net/capture",
            AzureAddress("https://account.z01.blob.storage.azure.net", "account", "capture", ""),
        ),
        (
            "https://dfs.blob.core.windows.net/capture",
            AzureAddress("https://dfs.blob.core.windows.net", "dfs", "capture", ""),
        ),
        (
            "https://account.blob.local.azurestack.external/capture",
            AzureAddress("https://account.blob.local.azurestack.external", "account", "capture", ""),
        ),
        (
            "abfss://Fleet_Data@onelake.dfs.fabric.microsoft.com/house.Lakehouse/Files/capture",
            AzureAddress(
                "https://onelake.blob.fabric.microsoft.com", "onelake", "Fleet_Data", "house.Lakehouse/Files/capture"
            ),
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
            "http://127.8.9.1/devstoreaccount1/capture",
            AzureAddress("http://127.8.9.1/devstoreaccount1", "devstoreaccount1", "capture", ""),
        ),
        (
            "http://LocalHost/devstoreaccount1/capture",
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
        ("http://localhost.contoso.com/devstoreaccount1/capture", "use https"),
        ("http://127.0.0.1.contoso.com/devstoreaccount1/capture", "use https"),
        ("http://127.1/devstoreaccount1/capture", "use https"),
        ("http://0.0.0.0:10000/devstoreaccount1/capture", "use https"),
        ("http://[fe80::1]:10000/devstoreaccount1/capture", "use https"),
        ("http://[::]:10000/devstoreaccount1/capture", "use https"),
        ("https://account.blob.core.windows.net", "no valid container name"),
        ("https://account.blob.core.windows.net/", "no valid container name"),
        ("https://account.blob.core.windows.net/Capture", "no valid container name"),
        ("https://account.blob.core.windows.net/ab", "no valid container name"),
        ("https://account.blob.core.windows.net/capture/../other", "a part . or .."),
        ("https://account.blob.core.windows.net/capture//other", "empty part"),
        ("http://127.0.0.1:10000/devstoreaccount1", "no valid container name"),
        ("abfss://capture:SECRET@account.dfs.core.windows.net/x", "password"),
        ("abfss://account.dfs.core.windows.net/capture", "no container before the host .* abfss://CONTAINER@ACCOUNT"),
        ("abfss://@account.dfs.core.windows.net/x", "no container before the host"),
        ("wasbs://:SECRET@account.blob.core.windows.net/x", "password"),
        ("https://@account.blob.core.windows.net/capture", "not a container url"),
        ("abfs://capture@account.dfs.core.windows.net/x", "use https"),
        ("abfss://Capture@account.dfs.core.windows.net", "no valid container name"),
        ("abfss://capture@account.dfs.core.windows.net/x?sig=SECRET", "remove the query"),
        ("https://onelake.dfs.fabric.microsoft.com/Fleet%20Data/house.Lakehouse", "the workspace's GUID"),
        ("s3://bucket/x", "not a container url"),
        ("capture", "not a container url"),
        ("https://[half/capture", "not a container url"),
        ("https://account.blob.core.windows.net:port/capture", "not a container url"),
        ("file://data/capture", "three slashes"),
        ("file:relative", "three slashes"),
        ("file:///data/capture#1", "remove the query, fragment"),
    ],
)
def test_any_other_url_is_refused_with_a_reason(url: str, reason: str) -> None:
    with pytest.raises(DefinitionError, match=reason) as raised:
        parse(url)
    assert "\n" not in str(raised.value)
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://account.blob.core.windows.net/capture?sv=2024-11-04&sig=SECRET",
        "https://user:SECRET@account.blob.core.windows.net/capture",
    ],
)
def test_a_secret_in_a_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(DefinitionError, match="AZURE_STORAGE_CONNECTION_STRING") as raised:
        parse(url)
    assert "SECRET" not in str(raised.value)
