"""The same place and credentials, in the words of delta-rs."""

import os
from pathlib import Path
from urllib.parse import quote

from spark_jobs.errors import DefinitionError, RunError
from spark_jobs.storage.address import AzureAddress, parse

_PREFERRED = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY")
"""Variables that delta-rs reads by itself, and takes before a signature that it is given."""


def delta_table_uri(url: str) -> str:
    """What `deltalake.DeltaTable` takes for the table at this url: `az://container/prefix`, or a path."""
    address = parse(url)
    if isinstance(address, Path):
        return str(address)
    return f"az://{address.container}/{quote(address.prefix)}"


def delta_storage_options(url: str) -> dict[str, str]:
    """The `storage_options` that go with `delta_table_uri`; empty for a folder.

    They hold credentials: never print or store them. Those of an identity hold a token that does not outlive its
    hour: ask for them again for every table that is opened. For the emulator this also sets AZURITE_BLOB_STORAGE_URL
    in this process. Raises DefinitionError where delta-rs would take another credential.
    """
    address = parse(url)
    if isinstance(address, Path):
        return {}
    from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

    from spark_jobs.storage.credentials import SCOPE, access

    options = _emulator(address) if address.is_emulator else {"azure_storage_endpoint": address.endpoint}
    options["azure_storage_account_name"] = address.account
    credential = access(address).credential
    match credential:
        case AzureNamedKeyCredential():
            return options | {"azure_storage_account_key": credential.named_key.key}
        case AzureSasCredential():
            for name in _PREFERRED:
                if name in os.environ:
                    raise DefinitionError(f"{name} is set, and would open {url} in place of the signature: unset it")
            return options | {"azure_storage_sas_token": credential.signature}
        case identity:
            return options | {"azure_storage_token": identity.get_token(SCOPE).token}


def _emulator(address: AzureAddress) -> dict[str, str]:
    """Tells delta-rs of the emulator, whose address it takes from the environment of the process and nowhere else.

    Without `use_emulator` it lists with `startFrom`, which Azurite ignores: every commit after a table's second
    fails with "Invalid table version: 1".
    """
    os.environ["AZURITE_BLOB_STORAGE_URL"] = address.endpoint.removesuffix(f"/{address.account}")
    return {"azure_storage_use_emulator": "true", "allow_http": "true"}


def refusal_of_delta(url: str, error: Exception) -> RunError:
    return RunError(f"the table {url} cannot be used: {str(error).splitlines()[0]}")
