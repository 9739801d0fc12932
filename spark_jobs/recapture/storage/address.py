"""Parse the url of a container, folder or table."""

import os
import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

from recapture.errors import DefinitionError

CONNECTION_STRING = "AZURE_STORAGE_CONNECTION_STRING"

_CONTAINER_NAME = re.compile(r"\$(root|web|logs)|(?=.{3,63}$)[a-z0-9](-?[a-z0-9])+")
_WORKSPACE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_FABRIC = ".fabric.microsoft.com"
"""End of the hosts of OneLake, where a workspace takes the place of a container."""
_HADOOP = {"abfss": "https", "wasbs": "https", "abfs": "http", "wasb": "http"}
"""Schemes of Hadoop, with the container before the host: abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX."""
_FORMS = (
    "expected https://ACCOUNT.blob.core.windows.net/CONTAINER[/PREFIX], "
    "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net[/PREFIX] or file:///ABSOLUTE/FOLDER"
)


@dataclass(frozen=True)
class AzureAddress:
    """Container of a storage account, or a prefix in it."""

    endpoint: str
    """Blob endpoint of the account, without a slash at the end."""
    account: str
    container: str
    prefix: str
    """Prefix without slashes at its ends; empty for the whole container."""

    @property
    def is_emulator(self) -> bool:
        """Return whether the account is in the path of the endpoint, which is so for emulators only."""
        return bool(urlsplit(self.endpoint).path)

    @property
    def is_http(self) -> bool:
        """Return whether the endpoint is used without TLS, which is allowed for an emulator on this machine only."""
        return self.endpoint.startswith("http:")

    @property
    def path(self) -> str:
        """Return the container and the prefix, joined by a slash."""
        return "/".join(filter(None, (self.container, self.prefix)))

    @property
    def url(self) -> str:
        """Return the url, percent-encoded and without credentials."""
        return f"{self.endpoint}/{quote(self.path, safe='/=$')}"


def parse(url: str) -> AzureAddress | Path:
    """Return the container or folder that a url names. Raise DefinitionError for an unknown form, or a secret in it.

    The host of a Data Lake endpoint (`dfs`) names the same account as its blob endpoint, which is the one that is used.
    """
    try:
        parts = _with_container_in_path(urlsplit(url))
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise DefinitionError(f"not a container url; {_FORMS}") from None
    shown = f"{parts.scheme}://{host}{parts.path}"
    if parts.query or parts.fragment or parts.username or parts.password is not None:
        raise DefinitionError(
            f"{shown}: remove the query, fragment or password from the url; credentials belong in {CONNECTION_STRING}"
        )
    if parts.scheme == "file":
        return _folder(parts, shown)
    if parts.scheme in _HADOOP:
        raise DefinitionError(f"{shown}: no container before the host of this url; {_FORMS}")
    if parts.scheme not in ("http", "https") or not host or parts.username is not None:
        raise DefinitionError(f"{shown}: not a container url; {_FORMS}")
    if parts.scheme == "http" and not _is_loopback(host):
        raise DefinitionError(f"{shown}: http is allowed for an emulator on this machine only; use https")
    return _azure(parts, host, shown)


def _with_container_in_path(parts: SplitResult) -> SplitResult:
    """Return the https form of a url of Hadoop; any other as it is, as is one with a password."""
    if parts.scheme not in _HADOOP or not parts.username or parts.password is not None:
        return parts
    container, _, host = parts.netloc.rpartition("@")
    return parts._replace(scheme=_HADOOP[parts.scheme], netloc=host, path=f"/{container}{parts.path}")


def _folder(parts: SplitResult, shown: str) -> Path:
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or not path.startswith("/") or "\0" in path:
        raise DefinitionError(f"{shown}: a folder url has three slashes and an absolute path: file:///ABSOLUTE/FOLDER")
    return Path(os.path.normpath(path))


def _azure(parts: SplitResult, host: str, shown: str) -> AzureAddress:
    names = unquote(parts.path).strip("/").split("/")
    if _is_ip(host) or host == "localhost":
        account, names = names[0], names[1:]
        endpoint = f"{normal_endpoint(parts._replace(path=''))}/{account}"
    else:
        account, *rest = host.split(".")
        blob_host = ".".join([account, *("blob" if label == "dfs" else label for label in rest)])
        endpoint = normal_endpoint(parts._replace(netloc=parts.netloc.lower().replace(host, blob_host), path=""))
    if host.endswith(_FABRIC):
        if not names or not _WORKSPACE_NAME.fullmatch(names[0]):
            raise DefinitionError(f"{shown}: this url has no valid workspace name; use the workspace's GUID")
    elif not account or not names or not _CONTAINER_NAME.fullmatch(names[0]):
        raise DefinitionError(f"{shown}: no valid container name in this url; {_FORMS}")
    if any(name in ("", ".", "..") for name in names):
        raise DefinitionError(f"{shown}: the path has an empty part, or a part . or ..; remove it")
    return AzureAddress(endpoint, account, names[0], "/".join(names[1:]))


def normal_form(url: str) -> str:
    """Return the text that urls of one address share, with links resolved. Raise DefinitionError as `parse` does."""
    address = parse(url)
    if isinstance(address, Path):
        return os.path.realpath(address)
    return f"{address.endpoint}/{address.path}"


def normal_endpoint(parts: SplitResult) -> str:
    """Return an endpoint in normal form: host in lower case, without a default port and a slash at the end."""
    host = parts.hostname or ""
    try:
        port = parts.port
    except ValueError:
        port = None
    shown = f"[{host}]" if ":" in host else host
    default = {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{shown}{f':{port}' if port not in (None, default) else ''}{parts.path.rstrip('/')}"


def _is_ip(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_ip(host) and ip_address(host).is_loopback)
