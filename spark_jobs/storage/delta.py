"""The same place and credentials, in the words of delta-rs."""

from pathlib import Path
from urllib.parse import quote

from spark_jobs.storage.address import account_access, parse


def delta_table_uri(url: str) -> str:
    """What `deltalake.DeltaTable` takes for the table at this url: `az://container/prefix`, or a path."""
    address = parse(url)
    if isinstance(address, Path):
        return str(address)
    return f"az://{address.container}/{quote(address.prefix)}"


def delta_storage_options(url: str) -> dict[str, str]:
    """The `storage_options` that go with `delta_table_uri`; empty for a folder.

    They hold credentials: never print or store them. Without AZURE_STORAGE_CONNECTION_STRING they hold a token
    of DefaultAzureCredential, good for about an hour: ask for them when they are needed.
    """
    address = parse(url)
    if isinstance(address, Path):
        return {}
    options = {"azure_storage_account_name": address.account, "azure_storage_endpoint": address.endpoint}
    if address.endpoint.startswith("http://"):
        options["allow_http"] = "true"
    access = account_access(address)
    if access is None:
        return options | {"azure_storage_token": _token()}
    if access.key:
        return options | {"azure_storage_account_key": access.key}
    return options | {"azure_storage_sas_token": access.sas or ""}


def _token() -> str:
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential().get_token("https://storage.azure.com/.default").token
