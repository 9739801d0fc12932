"""Where a url points."""

import os
import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

from recapture.errors import DefinitionError

CONNECTION_STRING = "AZURE_STORAGE_CONNECTION_STRING"

_CONTAINER_NAME = re.compile(r"\$(root|web|logs)|(?=.{3,63}$)[a-z0-9](-?[a-z0-9])+")
_FORMS = "expected https://ACCOUNT.blob.core.windows.net/CONTAINER[/PREFIX] or file:///ABSOLUTE/FOLDER"


@dataclass(frozen=True)
class AzureAddress:
    """A container of an account, or what lies under a prefix in it."""

    endpoint: str
    """The account's blob endpoint, without a slash at its end."""
    account: str
    container: str
    prefix: str
    """Without slashes at its ends; empty for the whole container."""

    @property
    def is_emulator(self) -> bool:
        """Whether the account is in the path, as only an emulator has it."""
        return bool(urlsplit(self.endpoint).path)

    @property
    def is_http(self) -> bool:
        """Whether it is reached without TLS, as only an emulator on this machine may be."""
        return self.endpoint.startswith("http:")

    @property
    def path(self) -> str:
        return "/".join(filter(None, (self.container, self.prefix)))

    @property
    def url(self) -> str:
        return f"{self.endpoint}/{quote(self.path, safe='/=$')}"


def parse(url: str) -> AzureAddress | Path:
    """The place that a url names; DefinitionError when it is of no known form, or carries a secret."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise DefinitionError(f"not a container's url; {_FORMS}") from None
    shown = f"{parts.scheme}://{host}{parts.path}"
    if parts.query or parts.fragment or parts.username is not None:
        raise DefinitionError(
            f"{shown}: a url carries no query, fragment or password; credentials belong in {CONNECTION_STRING}"
        )
    if parts.scheme == "file":
        return _folder(parts, shown)
    if parts.scheme not in ("http", "https") or not host:
        raise DefinitionError(f"{shown}: not a container's url; {_FORMS}")
    if parts.scheme == "http" and not _is_loopback(host):
        raise DefinitionError(f"{shown}: only an emulator on this machine may be reached by http; use https")
    return _azure(parts, host, shown)


def _folder(parts: SplitResult, shown: str) -> Path:
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or not path.startswith("/") or "\0" in path:
        raise DefinitionError(f"{shown}: a folder's url is absolute and has three slashes: file:///ABSOLUTE/FOLDER")
    return Path(os.path.normpath(path))


def _azure(parts: SplitResult, host: str, shown: str) -> AzureAddress:
    names = unquote(parts.path).strip("/").split("/")
    if _is_ip(host) or host == "localhost":
        account, names = names[0], names[1:]
        endpoint = f"{normal_endpoint(parts._replace(path=''))}/{account}"
    else:
        account = host.split(".")[0]
        endpoint = normal_endpoint(parts._replace(path=""))
    if not account or not names or not _CONTAINER_NAME.fullmatch(names[0]):
        raise DefinitionError(f"{shown}: no valid container name in this url; {_FORMS}")
    if any(name in ("", ".", "..") for name in names):
        raise DefinitionError(f"{shown}: the path has an empty part, or one of dots alone")
    return AzureAddress(endpoint, account, names[0], "/".join(names[1:]))


def spelling(url: str) -> str:
    """One text for one place, however its url is spelt and whatever links lead there; DefinitionError as of `parse`."""
    place = parse(url)
    if isinstance(place, Path):
        return os.path.realpath(place)
    return f"{place.endpoint}/{place.path}"


def normal_endpoint(parts: SplitResult) -> str:
    """An endpoint as an address has it, so that equal ones are spelt alike."""
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
