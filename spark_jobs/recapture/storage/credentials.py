"""Choose the credential that opens a storage account: a connection string or an identity."""

import functools
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential, TokenCredential
from azure.core.exceptions import AzureError
from azure.storage.blob import BlobServiceClient

from recapture.errors import DefinitionError, SetupError
from recapture.storage.address import CONNECTION_STRING, AzureAddress, normal_endpoint

SCOPE = "https://storage.azure.com/.default"


@dataclass(frozen=True)
class Identity:
    """Credential of azure-identity that reports in one line why it has no token."""

    credential: TokenCredential
    url: str
    because: str
    """Reason why no connection string opens the container."""

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """Return a token that is valid for at least five minutes. Raise SetupError if no identity can sign in."""
        try:
            return self.credential.get_token(*scopes, **options)
        except AzureError as error:
            lines = str(error.message).splitlines()
            reason = next((line.strip() for line in lines if "failed:" in line), lines[0])
            raise SetupError(f"{self.url}: {self.because}, and no identity could sign in: {reason}") from None


@dataclass(frozen=True)
class Access:
    """Credential for an account."""

    credential: AzureNamedKeyCredential | AzureSasCredential | Identity
    advice: str
    """Advice for the user if the account refuses the credential."""


def access(address: AzureAddress, environment: Mapping[str, str] = os.environ) -> Access:
    """Return the connection string's credential if it is for this account, else the identity.

    Raise DefinitionError if the connection string cannot be read or is for another endpoint of the account, or if an
    emulator has none: a token is never sent over http. Messages show no part of the connection string but its endpoint.
    """
    text = environment.get(CONNECTION_STRING, "").strip()
    because = f"{CONNECTION_STRING} is not set"
    if text:
        client = _client(text)
        endpoint = normal_endpoint(urlsplit(f"{client.scheme}://{client.primary_hostname}"))
        if endpoint == address.endpoint and client.account_name in (None, address.account):
            return Access(_secret(client), f"check {CONNECTION_STRING} and its permissions")
        because = f"{CONNECTION_STRING} is for {endpoint}"
        if client.account_name == address.account or endpoint == address.endpoint or address.is_http:
            raise DefinitionError(
                f"{address.url}: {because}; set the connection string of {address.endpoint}, or unset it"
            )
    elif address.is_http:
        raise DefinitionError(f"{address.url}: {because}, but an emulator can be opened only with it: set it")
    advice = (
        "give the signed-in identity the role Storage Blob Data Reader for the input, Contributor for the table, "
        f"or set the {CONNECTION_STRING} of {address.endpoint} ({because})"
    )
    return Access(Identity(identity(environment), address.url, because), advice)


def identity(environment: Mapping[str, str] = os.environ) -> TokenCredential:
    """Return the service principal, workload identity or managed identity that the environment defines.

    The process has one identity. It caches its token, and requests a new one five minutes before it expires. Raise
    DefinitionError if the variables are not valid.
    """
    if environment is os.environ:
        return _identity()
    return _identity(*map(environment.get, ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")))


@functools.cache
def _identity(tenant: str | None = None, client: str | None = None, secret: str | None = None) -> TokenCredential:
    """Return the identity; what is None is taken from the environment of the process."""
    from azure.identity import ClientSecretCredential, DefaultAzureCredential

    logging.getLogger("azure.identity").addHandler(logging.NullHandler())
    try:
        if tenant and client and secret:
            return ClientSecretCredential(tenant, client, secret)
        arguments = {
            "managed_identity_client_id": client,
            "workload_identity_client_id": client,
            "workload_identity_tenant_id": tenant,
        }
        return DefaultAzureCredential(**{name: value for name, value in arguments.items() if value})
    except ValueError as error:
        raise DefinitionError(f"the AZURE_… environment variables do not define an identity: {error}") from None


@functools.lru_cache(maxsize=64)
def _client(connection_string: str) -> BlobServiceClient:
    """Return the parsed connection string. Raise DefinitionError, without its text, if it is not valid."""
    try:
        return BlobServiceClient.from_connection_string(connection_string)
    except ValueError:
        forms = "AccountName=…;AccountKey=… or BlobEndpoint=…;SharedAccessSignature=…"
        raise DefinitionError(f"{CONNECTION_STRING} cannot be read; expected {forms}") from None


@functools.lru_cache(maxsize=64)
def _secret(client: BlobServiceClient) -> AzureNamedKeyCredential | AzureSasCredential:
    """Return the only object for the key or signature of a client. Raise DefinitionError if it has neither."""
    key = getattr(client.credential, "account_key", None)
    if key:
        return AzureNamedKeyCredential(client.credential.account_name, key)
    signature = urlsplit(client.url).query
    if signature:
        return AzureSasCredential(signature)
    raise DefinitionError(f"{CONNECTION_STRING} has neither AccountName and AccountKey nor SharedAccessSignature")
