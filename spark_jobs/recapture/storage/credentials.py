"""With whose rights an account is opened: those of a connection string, or of an identity."""

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
    """A credential of azure-identity that tells in one line why it gives no token."""

    credential: TokenCredential
    url: str
    """Of what it is to open."""
    because: str
    """Why no connection string opens it."""

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """A token good for five minutes at least. Raises SetupError where nobody could sign in."""
        try:
            return self.credential.get_token(*scopes, **options)
        except AzureError as error:
            said = str(error.message).splitlines()
            reason = next((line.strip() for line in said if "failed:" in line), said[0])
            raise SetupError(f"{self.url}: {self.because}, and no identity could sign in: {reason}") from None


@dataclass(frozen=True)
class Access:
    """What opens an account."""

    credential: AzureNamedKeyCredential | AzureSasCredential | Identity
    advice: str
    """What to do where the account refuses it."""


def access(address: AzureAddress, environment: Mapping[str, str] = os.environ) -> Access:
    """The connection string, where there is one for this account; else the identity.

    Raises DefinitionError for a connection string that cannot be read, or is for another endpoint of the account, and
    for an emulator without one: no token goes over http. No message shows any part of it but the endpoint.
    """
    text = environment.get(CONNECTION_STRING, "").strip()
    because = f"{CONNECTION_STRING} is not set"
    if text:
        client = _client(text)
        elsewhere = normal_endpoint(urlsplit(f"{client.scheme}://{client.primary_hostname}"))
        if elsewhere == address.endpoint and client.account_name in (None, address.account):
            return Access(_secret(client), f"check {CONNECTION_STRING}, and what it permits")
        because = f"{CONNECTION_STRING} is for {elsewhere}"
        if client.account_name == address.account or elsewhere == address.endpoint or address.is_http:
            raise DefinitionError(f"{address.url}: {because}; set the one of {address.endpoint}, or unset it")
    elif address.is_http:
        raise DefinitionError(f"{address.url}: {because}, and an emulator is opened by nothing else: set it")
    advice = (
        "give the signed-in identity the role Storage Blob Data Reader for the input, Contributor for the table, "
        f"or set the {CONNECTION_STRING} of {address.endpoint} ({because})"
    )
    return Access(Identity(identity(environment), address.url, because), advice)


def identity(environment: Mapping[str, str] = os.environ) -> TokenCredential:
    """The service principal, workload identity or managed identity that the environment names.

    One for the process: it keeps its token, and asks for another five minutes before that runs out.
    """
    if environment is os.environ:
        return _identity()
    return _identity(*map(environment.get, ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")))


@functools.cache
def _identity(tenant: str | None = None, client: str | None = None, secret: str | None = None) -> TokenCredential:
    """What is not given is taken from the environment of the process."""
    from azure.identity import ClientSecretCredential, DefaultAzureCredential

    logging.getLogger("azure.identity").addHandler(logging.NullHandler())
    try:
        if tenant and client and secret:
            return ClientSecretCredential(tenant, client, secret)
        given = {
            "managed_identity_client_id": client,
            "workload_identity_client_id": client,
            "workload_identity_tenant_id": tenant,
        }
        return DefaultAzureCredential(**{name: value for name, value in given.items() if value})
    except ValueError as error:
        raise DefinitionError(f"the environment's AZURE_… variables name no identity: {error}") from None


def _client(connection_string: str) -> BlobServiceClient:
    try:
        return BlobServiceClient.from_connection_string(connection_string)
    except ValueError:
        forms = "AccountName=…;AccountKey=… or BlobEndpoint=…;SharedAccessSignature=…"
        raise DefinitionError(f"{CONNECTION_STRING} cannot be read; expected {forms}") from None


def _secret(client: BlobServiceClient) -> AzureNamedKeyCredential | AzureSasCredential:
    key = getattr(client.credential, "account_key", None)
    if key:
        return AzureNamedKeyCredential(client.credential.account_name, key)
    signature = urlsplit(client.url).query
    if signature:
        return AzureSasCredential(signature)
    raise DefinitionError(f"{CONNECTION_STRING} has neither AccountName and AccountKey nor SharedAccessSignature")
