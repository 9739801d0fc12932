"""Read and write blobs in an Azure container or a local folder, through one protocol."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, overload

from recapture.errors import DefinitionError
from recapture.storage.address import parse
from recapture.storage.container import Archive, Blob, Container
from recapture.storage.delta import delta_storage_options, delta_table_uri

__all__ = [
    "Address",
    "Archive",
    "Blob",
    "Container",
    "addresses",
    "delta_storage_options",
    "delta_table_uri",
    "in_parallel",
    "open_container",
]

Address = str | tuple[str, ...]
"""Url of a container, or urls of several containers that are read as one."""
REQUESTS = "RECAPTURE_STORAGE_REQUESTS"
"""Variable with the largest number of requests that a process sends at once to list blobs and to read run files."""
_MOST_REQUESTS = "16"
Item = TypeVar("Item")
Result = TypeVar("Result")


@overload
def open_container(url: str, environment: Mapping[str, str] = os.environ) -> Container: ...


@overload
def open_container(url: tuple[str, ...], environment: Mapping[str, str] = os.environ) -> Archive: ...


def open_container(url: Address, environment: Mapping[str, str] = os.environ) -> Archive:
    """Return the container at `https://ACCOUNT.blob.core.windows.net/container[/prefix]` or `file:///absolute/folder`.

    The url of an emulator is `http://127.0.0.1:10000/devstoreaccount1/container[/prefix]`. Names of blobs are relative
    to the prefix. The environment supplies the credentials (see `credentials.access`). Several containers are read as
    one, see `SeveralContainers`. Nothing is read yet. Raise DefinitionError if a url has another form, or if the
    environment has no credentials for it.
    """
    if not isinstance(url, str):
        from recapture.storage.several import SeveralContainers

        return SeveralContainers([open_container(single, environment) for single in url])
    address = parse(url)
    if isinstance(address, Path):
        from recapture.storage.folder import FolderContainer

        return FolderContainer(address)
    from recapture.storage.azure import AzureContainer
    from recapture.storage.credentials import access

    return AzureContainer(address, access(address, environment))


def addresses(address: Address) -> tuple[str, ...]:
    """Return the url of each container at an address."""
    return (address,) if isinstance(address, str) else address


def in_parallel(call: Callable[[Item], Result], items: Iterable[Item], at_once: int | None = None) -> list[Result]:
    """Return the result of a call for every item, in order. Raise the error of the first failure.

    At most `at_once` calls are made at a time, and no more than REQUESTS says: raise DefinitionError if that is not a
    number. A single call is made in this thread: to start another takes longer than many a call.
    """
    listed, setting = list(items), os.environ.get(REQUESTS) or _MOST_REQUESTS
    if not re.fullmatch("[1-9][0-9]{0,2}", setting):
        raise DefinitionError(f"{REQUESTS}={setting}: set it to a number from 1 to 999, or unset it")
    most = int(setting) if at_once is None else min(at_once, int(setting))
    if min(len(listed), most) <= 1:
        return [call(item) for item in listed]
    with ThreadPoolExecutor(most) as threads:
        return list(threads.map(call, listed))
