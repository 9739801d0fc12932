"""Connection strings and identities: what opens an account, what is refused, and that neither shows a secret."""

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

from recapture.errors import DefinitionError
from recapture.storage.address import CONNECTION_STRING, AzureAddress, parse
from recapture.storage.credentials import Access, Identity, access

CLOUD = AzureAddress("https://account.blob.core.windows.net", "account", "capture", "")
KEY = "c2VjcmV0LWtleQ=="
SIGNED = "SharedAccessSignature=sv=1&sig=a%3D"


def address(url: str) -> AzureAddress:
    parsed = parse(url)
    assert isinstance(parsed, AzureAddress)
    return parsed


def opened(connection_string: str, place: AzureAddress = CLOUD) -> Access:
    return access(place, {CONNECTION_STRING: connection_string})


@pytest.mark.parametrize(
    "connection_string",
    [
        f"AccountName=account;AccountKey={KEY}",
        f"DefaultEndpointsProtocol=https;AccountName=account;AccountKey={KEY};EndpointSuffix=core.windows.net;\n",
        f"BlobEndpoint=https://Account.blob.core.windows.net:443/;AccountName=account;AccountKey={KEY}",
        f"DefaultEndpointsProtocol=http;AccountName=account;AccountKey={KEY}",
    ],
)
def test_a_connection_string_gives_the_key_of_the_account(connection_string: str) -> None:
    access_ = opened(connection_string)
    assert isinstance(access_.credential, AzureNamedKeyCredential)
    assert access_.credential.named_key == ("account", KEY)
    assert KEY not in repr(access_)


@pytest.mark.parametrize("mark", ["", "?"])
def test_a_connection_string_gives_a_signature(mark: str) -> None:
    access_ = opened(f"BlobEndpoint=https://account.blob.core.windows.net/;SharedAccessSignature={mark}sv=1&sig=a%3D")
    assert isinstance(access_.credential, AzureSasCredential)
    assert access_.credential.signature == "sv=1&sig=a%3D"
    assert "sig=" not in repr(access_)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:10000/dev", "http://localhost:10000/dev", "http://[::1]/dev"])
@pytest.mark.parametrize("granted", [f"AccountName=dev;AccountKey={KEY}", SIGNED])
def test_an_emulator_on_this_machine_is_opened_by_http(endpoint: str, granted: str) -> None:
    access_ = opened(f"BlobEndpoint={endpoint}/;{granted}", address(f"{endpoint}/capture"))
    assert not isinstance(access_.credential, Identity)


def test_the_short_form_of_the_emulator_is_understood() -> None:
    access_ = opened("UseDevelopmentStorage=true", address("http://127.0.0.1:10000/devstoreaccount1/capture"))
    assert isinstance(access_.credential, AzureNamedKeyCredential)
    assert access_.credential.named_key.name == "devstoreaccount1"


@pytest.mark.parametrize(
    ("connection_string", "reason"),
    [
        (
            f"AccountName=account;AccountKey={KEY};EndpointSuffix=elsewhere.net;DefaultEndpointsProtocol=https",
            r"is for https://account\.blob\.elsewhere\.net; set the connection string of https://account\.blob\.core",
        ),
        (
            f"AccountName=account;AccountKey={KEY};DefaultEndpointsProtocol=http;EndpointSuffix=core.windows.net",
            r"is for http://account\.blob\.core\.windows\.net; set the connection string of https",
        ),
        (f"BlobEndpoint=http://account.blob.core.windows.net;{SIGNED}", r"is for http://account\.blob"),
        (f"AccountName=other;AccountKey={KEY};BlobEndpoint=https://account.blob.core.windows.net", r"is for https"),
        (f"AccountKey={KEY}", "cannot be read; expected AccountName="),
        (f"BlobEndpoint=https://account.blob.core.windows.net;AccountKey={KEY}", "neither AccountName and AccountKey"),
        (f"BlobEndpoint=https://[{KEY};{SIGNED}", "cannot be read"),
        ("AccountName=account", "neither AccountName and AccountKey nor SharedAccessSignature"),
        ("AccountName=account;AccountKey=", "neither AccountName and AccountKey nor SharedAccessSignature"),
        (KEY.rstrip("="), "cannot be read"),
    ],
)
def test_a_connection_string_that_opens_nothing_is_refused_and_not_repeated(
    connection_string: str, reason: str
) -> None:
    with pytest.raises(DefinitionError, match=reason) as raised:
        opened(connection_string)
    assert KEY.rstrip("=") not in str(raised.value)
    assert "sig=" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({}, f"{CONNECTION_STRING} is not set, but an emulator"),
        ({CONNECTION_STRING: f"AccountName=account;AccountKey={KEY}"}, r"is for https://account\.blob"),
        ({CONNECTION_STRING: f"BlobEndpoint=http://localhost:10000/dev;{SIGNED}"}, "is for http://localhost:10000/dev"),
    ],
)
def test_no_token_goes_over_http(environment: dict[str, str], reason: str) -> None:
    with pytest.raises(DefinitionError, match=reason):
        access(address("http://127.0.0.1:10000/dev/capture"), environment)


def test_the_account_of_another_connection_string_is_opened_by_the_identity() -> None:
    access_ = opened(f"AccountName=other;AccountKey={KEY}")
    assert isinstance(access_.credential, Identity)
    assert "or set the AZURE_STORAGE_CONNECTION_STRING of https://account.blob" in access_.advice
    assert access_.advice.endswith("(AZURE_STORAGE_CONNECTION_STRING is for https://other.blob.core.windows.net)")


def test_variables_that_name_no_identity_are_refused() -> None:
    environment = {"AZURE_TENANT_ID": "no tenant", "AZURE_CLIENT_ID": "client", "AZURE_CLIENT_SECRET": "SECRET"}
    with pytest.raises(DefinitionError, match="do not define an identity: Invalid tenant") as raised:
        access(CLOUD, environment)
    assert "SECRET" not in str(raised.value)
