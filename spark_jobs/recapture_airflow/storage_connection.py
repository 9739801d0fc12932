"""The Airflow connection to the storage account. If it exists, tasks take their credentials from it."""

import os
from collections.abc import Mapping

from airflow.providers.common.compat.sdk import AirflowNotFoundException
from airflow.sdk import BaseHook, Connection, Context
from airflow.sdk.log import mask_secret

from recapture.errors import DefinitionError

STORAGE = "recapture_storage"
TYPES = ("recapture_storage", "wasb", "generic")
"""Types of the connection. The first is that of this package, with a form in Airflow.

Without the provider microsoft-azure, `airflow connections add` stores wasb as generic.
"""
CONNECTION_STRING = "AZURE_STORAGE_CONNECTION_STRING"


def take_credentials(context: Context) -> None:
    """Put the connection's credentials into the environment of this task.

    The task has its own process, and Spark inherits its environment. The credentials are never in a command line, in a
    field of an operator or in an XCom. Raise DefinitionError if the connection is not valid, as `variables` does.
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
    """Return the environment with the connection's credentials.

    This is for triggers: they share one process, so its environment must not change. Raise DefinitionError if the
    connection is not valid, as `variables` does.
    """
    try:
        connection = await BaseHook.aget_connection(STORAGE)
    except AirflowNotFoundException:
        return os.environ
    merged = os.environ | variables(connection)
    return {name: value for name, value in merged.items() if value is not None}


def variables(connection: Connection) -> dict[str, str | None]:
    """Return the Azure variables with the credentials that Airflow's WasbHook takes from a connection; None unsets one.

    Raise DefinitionError if the connection is of another type than TYPES, lacks a value, or has a setting that the
    variables cannot express. No message shows a credential.
    """
    if connection.conn_type not in TYPES:
        raise DefinitionError(f"the connection {STORAGE} has the type {connection.conn_type}: change it to {TYPES[0]}")
    extra = connection.extra_dejson

    def field(name: str) -> str | None:
        return extra.get(name) or extra.get(f"extra__wasb__{name}") or None

    if extra.get("client_secret_auth_config"):
        raise DefinitionError(
            f"the connection {STORAGE} has client_secret_auth_config, which is not supported: remove it and set "
            "AZURE_AUTHORITY_HOST in the environment"
        )
    if text := field("connection_string"):
        return {CONNECTION_STRING: text}
    if tenant := field("tenant_id"):
        if not connection.login or not connection.password:
            raise DefinitionError(
                f"the connection {STORAGE} has a tenant_id: add the client id as login and its secret as password"
            )
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
    identity: dict[str, str | None] = {CONNECTION_STRING: None}
    if client_id := field("managed_identity_client_id"):
        identity |= {"AZURE_CLIENT_ID": client_id, "AZURE_CLIENT_SECRET": None}
    if tenant := field("workload_identity_tenant_id"):
        identity |= {"AZURE_TENANT_ID": tenant}
    return identity


def _endpoint(connection: Connection) -> str:
    """Return the blob endpoint: the host, or else the public endpoint of the account that the login names."""
    host = connection.host or (f"{connection.login}.blob.core.windows.net" if connection.login else None)
    if host is None:
        raise DefinitionError(f"the connection {STORAGE} names no account: enter its url as host, or its name as login")
    return host if "://" in host else f"https://{host}"
