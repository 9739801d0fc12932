"""Read and write blobs in an Azure container or a local folder, through one protocol."""

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from recapture.storage.address import parse
from recapture.storage.container import Blob, Container
from recapture.storage.delta import delta_storage_options, delta_table_uri

__all__ = ["Blob", "Container", "delta_storage_options", "delta_table_uri", "in_parallel", "open_container"]

AT_ONCE = 16
Item = TypeVar("Item")
Result = TypeVar("Result")


def open_container(url: str, environment: Mapping[str, str] = os.environ) -> Container:
    """Return the container at `https://ACCOUNT.blob.core.windows.net/container[/prefix]` or `file:///absolute/folder`.

    The url of an emulator is `http://127.0.0.1:10000/devstoreaccount1/container[/prefix]`. Names of blobs are relative
    to the prefix. The environment supplies the credentials (see `credentials.access`). Nothing is read yet. Raise
    DefinitionError if the url has another form, or if the environment has no credentials for it.
    """
    address = parse(url)
    if isinstance(address, Path):
        from recapture.storage.folder import FolderContainer

        return FolderContainer(address)
    from recapture.storage.azure import AzureContainer
    from recapture.storage.credentials import access

    return AzureContainer(address, access(address, environment))


def in_parallel(call: Callable[[Item], Result], items: Iterable[Item], at_once: int = AT_ONCE) -> list[Result]:
    """Return the result of a call for every item, in order, `at_once` at a time. Raise the error of the first failure.

    A single call is made in this thread: to start another takes longer than many a call.
    """
    listed = list(items)
    if min(len(listed), at_once) <= 1:
        return [call(item) for item in listed]
    with ThreadPoolExecutor(at_once) as threads:
        return list(threads.map(call, listed))
