"""The same place and credentials, in the words of delta-rs."""

import os
from pathlib import Path
from urllib.parse import quote

from spark_jobs.storage.address import AzureAddress, account_access, parse


def delta_table_uri(url: str) -> str:
    """What `deltalake.DeltaTable` takes for the table at this url: `az://container/prefix`, or a path."""
    address = parse(url)
    if isinstance(address, Path):
        return str(address)
    return f"az://{address.container}/{quote(address.prefix)}"


def delta_storage_options(url: str) -> dict[str, str]:
    """The `storage_options` that go with `delta_table_uri`; empty for a folder.

    They hold credentials: never print or store them. Without AZURE_STORAGE_CONNECTION_STRING they hold a token
    of DefaultAzureCredential, good for about an hour: ask for them when they are needed. For the emulator this
    also sets AZURITE_BLOB_STORAGE_URL in this process.
    """
    address = parse(url)
    if isinstance(address, Path):
        return {}
    options = _emulator(address) if address.is_emulator else {"azure_storage_endpoint": address.endpoint}
    options["azure_storage_account_name"] = address.account
    access = account_access(address)
    if access is None:
        return options | {"azure_storage_token": _token()}
    if access.key:
        return options | {"azure_storage_account_key": access.key}
    return options | {"azure_storage_sas_token": access.sas or ""}


def _emulator(address: AzureAddress) -> dict[str, str]:
    """Tells delta-rs of the emulator, whose address it takes from the environment of the process and nowhere else.

    Without `use_emulator` it lists with `startFrom`, which Azurite ignores: every commit after a table's second
    fails with "Invalid table version: 1".
    """
    os.environ["AZURITE_BLOB_STORAGE_URL"] = address.endpoint.removesuffix(f"/{address.account}")
    return {"azure_storage_use_emulator": "true", "allow_http": "true"}


def _token() -> str:
    from azure.identity import DefaultAzureCredential

    return DefaultAzureCredential().get_token("https://storage.azure.com/.default").token
