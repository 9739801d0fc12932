"""A place that holds blobs: an Azure container or a local folder, one protocol for both."""

import os
from collections.abc import Mapping
from pathlib import Path

from recapture.storage.address import parse
from recapture.storage.container import Blob, Container
from recapture.storage.delta import delta_storage_options, delta_table_uri
from recapture.storage.side_by_side import side_by_side

__all__ = ["Blob", "Container", "delta_storage_options", "delta_table_uri", "open_container", "side_by_side"]


def open_container(url: str, environment: Mapping[str, str] = os.environ) -> Container:
    """The container of `https://ACCOUNT.blob.core.windows.net/container[/prefix]` or `file:///absolute/folder`.

    The emulator's form is `http://127.0.0.1:10000/devstoreaccount1/container[/prefix]`. Names are relative to
    the prefix. Credentials are those of the environment (see `credentials.access`). Nothing is read yet. Raises
    DefinitionError for another form of url, or for an environment that cannot open it.
    """
    address = parse(url)
    if isinstance(address, Path):
        from recapture.storage.folder import FolderContainer

        return FolderContainer(address)
    from recapture.storage.azure import AzureContainer
    from recapture.storage.credentials import access

    return AzureContainer(address, access(address, environment))
