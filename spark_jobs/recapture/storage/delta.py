"""Translate urls, credentials and errors between Recapture and delta-rs."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from recapture.errors import DefinitionError, RunError
from recapture.storage.address import AzureAddress, parse
from recapture.storage.refusals import FOREIGN, GARBLED, refusal

_COLOURS = re.compile(r"\x1b\[\d*m")
_UNREACHED = re.compile(r"HTTP error|error sending request|timed? ?out|dns error|\(os error \d+\)", re.IGNORECASE)
_HEADERLESS = re.compile(r"\b(Last-Modified|ETag) Header missing from response", re.IGNORECASE)
"""What delta-rs says of an answer without a header that every answer of the service has."""
_PREFERRED = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_MASTER_KEY")
"""Environment variables that delta-rs reads itself and prefers to a signature that is passed to it."""


def delta_table_uri(url: str) -> str:
    """Return the uri of a table for `deltalake.DeltaTable`: `az://container/prefix`, or a path."""
    address = parse(url)
    if isinstance(address, Path):
        return str(address)
    return f"az://{address.container}/{quote(address.prefix)}"


def delta_storage_options(url: str, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the `storage_options` that go with `delta_table_uri`; empty for a folder.

    The environment supplies the credentials. The options contain them: never print or store them. Those of an identity
    contain a token that expires within the hour: call this again for every table that is opened. For the emulator this
    also sets AZURITE_BLOB_STORAGE_URL in this process. Raise DefinitionError if delta-rs would use another credential.
    """
    address = parse(url)
    if isinstance(address, Path):
        return {}
    from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

    from recapture.storage.credentials import SCOPE, access

    options = _emulator(address) if address.is_emulator else {"azure_storage_endpoint": address.endpoint}
    options["azure_storage_account_name"] = address.account
    credential = access(address, environment).credential
    match credential:
        case AzureNamedKeyCredential():
            return options | {"azure_storage_account_key": credential.named_key.key}
        case AzureSasCredential():
            for name in _PREFERRED:
                if name in os.environ:
                    raise DefinitionError(f"delta-rs would open {url} with {name}, not the signature: unset {name}")
            return options | {"azure_storage_sas_token": credential.signature}
        case identity:
            return options | {"azure_storage_token": identity.get_token(SCOPE).token}


def _emulator(address: AzureAddress) -> dict[str, str]:
    """Return the options for an emulator, and set its address in the environment: delta-rs reads it nowhere else.

    Without `use_emulator` it lists with `startFrom`, which Azurite ignores: every commit after a table's second
    fails with "Invalid table version: 1".
    """
    os.environ["AZURITE_BLOB_STORAGE_URL"] = address.endpoint.removesuffix(f"/{address.account}")
    return {"azure_storage_use_emulator": "true", "allow_http": "true"}


def refusal_of_delta(url: str, error: Exception, environment: Mapping[str, str] = os.environ) -> RunError:
    """Return the error for a failure of delta-rs, in one line: what was refused, why, and what to do.

    The text of delta-rs is left out if the service answered: the urls in it may contain a signature.
    """
    address, action = parse(url), f"use the table {url}"
    text = _COLOURS.sub("", str(error))
    refused = [os.strerror(int(number)) for number in re.findall(r"\(os error (\d+)\)", text)]
    if isinstance(address, Path):
        return RunError(f"cannot {action}: {refused[-1] if refused else text.splitlines()[0]}")
    from recapture.storage.credentials import access

    status, code = re.search(r"^\W*(\d{3}) ", text, re.MULTILINE), re.search(r"<Code>(\w+)</Code>", text)
    if status or code:
        advice = access(address, environment).advice
        return refusal(action, address, advice, int(status[1]) if status else None, code[1] if code else "")
    if "invalid list response" in text:
        return RunError(f"cannot {action}: {GARBLED}")
    if _HEADERLESS.search(text):
        return RunError(f"cannot {action}: {FOREIGN}")
    if _UNREACHED.search(text):
        return refusal(action, address, "", None)
    return RunError(f"cannot {action}: {text.splitlines()[0]}")
