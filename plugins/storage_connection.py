"""The Airflow connection to the storage account: where there is one, tasks take their credentials from it."""

import os
from collections.abc import Mapping

from airflow.sdk import BaseHook, Connection, Context
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import mask_secret

from recapture.errors import DefinitionError

STORAGE = "recapture_storage"
CONNECTION_STRING = "AZURE_STORAGE_CONNECTION_STRING"


def take_credentials(context: Context) -> None:
    """Put the connection's credentials into the environment of this task, which has a process of its own.

    Spark inherits them there; a command line, an operator's field or an XCom never holds them.
    """
    try:
        connection = BaseHook.get_connection(STORAGE)
    except AirflowNotFoundException:
        return
    for name, value in variables(connection).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            mask_secret(value)
            os.environ[name] = value


async def environment() -> Mapping[str, str]:
    """The environment with the connection's credentials, for a trigger: it shares its process with others."""
    try:
        connection = await BaseHook.aget_connection(STORAGE)
    except AirflowNotFoundException:
        return os.environ
    found = os.environ | variables(connection)
    return {name: value for name, value in found.items() if value is not None}


def variables(connection: Connection) -> dict[str, str | None]:
    """The Azure variables that say what a wasb connection says to Airflow's own WasbHook; None unsets one.

    Raises DefinitionError for another type, and for what these variables cannot say. No message shows a value.
    """
    if connection.conn_type != "wasb":
        raise DefinitionError(f"the connection {STORAGE} is of type {connection.conn_type}: make it one of type wasb")
    extra = connection.extra_dejson

    def field(name: str) -> str | None:
        return extra.get(name) or extra.get(f"extra__wasb__{name}") or None

    if extra.get("client_secret_auth_config"):
        raise DefinitionError(
            f"the connection {STORAGE} has client_secret_auth_config: set AZURE_AUTHORITY_HOST in the environment"
        )
    if text := field("connection_string"):
        return {CONNECTION_STRING: text}
    if tenant := field("tenant_id"):
        if not connection.login or not connection.password:
            raise DefinitionError(f"the connection {STORAGE} has a tenant: it needs a client id and its secret as well")
        client = {"AZURE_CLIENT_ID": connection.login, "AZURE_CLIENT_SECRET": connection.password}
        return {CONNECTION_STRING: None, "AZURE_TENANT_ID": tenant, **client}
    signature = field("sas_token")
    key = field("shared_access_key") or (None if signature else connection.password or field("account_key"))
    if key:
        endpoint = _endpoint(connection)
        account = connection.login or endpoint.removeprefix("https://").partition(".")[0]
        return {CONNECTION_STRING: f"BlobEndpoint={endpoint};AccountName={account};AccountKey={key}"}
    if signature:
        address, _, signed = signature.rpartition("?")
        return {CONNECTION_STRING: f"BlobEndpoint={address or _endpoint(connection)};SharedAccessSignature={signed}"}
    found: dict[str, str | None] = {CONNECTION_STRING: None}
    if client_id := field("managed_identity_client_id"):
        found |= {"AZURE_CLIENT_ID": client_id, "AZURE_CLIENT_SECRET": None}
    if tenant := field("workload_identity_tenant_id"):
        found |= {"AZURE_TENANT_ID": tenant}
    return found


def _endpoint(connection: Connection) -> str:
    """The account's blob endpoint: the host, or made of the account's name, which is the login."""
    host = connection.host or (f"{connection.login}.blob.core.windows.net" if connection.login else None)
    if host is None:
        raise DefinitionError(f"the connection {STORAGE} names no account: give its url as host, or its name as login")
    return host if "://" in host else f"https://{host}"
