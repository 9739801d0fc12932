"""Implement the protocol of a container for Azure Blob Storage and its emulator."""

import base64
import functools
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import Element

import azure.storage.blob
from azure.core import MatchConditions
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    DecodeError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import ContainerClient, ContentSettings

from recapture.errors import DefinitionError, RunError
from recapture.storage.address import AzureAddress
from recapture.storage.container import Blob, changed, content_md5, deleted, verified
from recapture.storage.credentials import Access
from recapture.storage.pages import AnswerError, checked, date_of, pages
from recapture.storage.refusals import API_VERSION, CONTAINER_MISSING, GARBLED, refusal
from recapture.storage.retries import Retries


class _Unsigned(logging.Filter):
    """Filter that removes shared access signatures from the urls that urllib3 logs; the SDK removes them itself."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(_SIGNATURE.sub(r"\1…", arg) if isinstance(arg, str) else arg for arg in record.args)
        return True


_SIGNATURE = re.compile(r"([?&]sig=)[^&]*")
logging.getLogger("urllib3.connectionpool").addFilter(_Unsigned())
logging.getLogger("azure").addHandler(logging.NullHandler())


_REQUESTS = logging.getLogger("recapture.storage.requests")
"""Logger for every request and its headers. At INFO, they would drown the log of a task."""
_REQUESTS.setLevel(logging.WARNING)


@functools.lru_cache(maxsize=64)
def _shared_client(
    endpoint: str, container: str, credential: Any, version: str | None, process: int
) -> ContainerClient:
    """Return the client of a container: one per process and credential, because every client keeps sockets open."""
    options: dict[str, Any] = {"retry_policy": Retries(), "logger": _REQUESTS, "raw_response_hook": checked}
    try:
        return ContainerClient(endpoint, container, credential=credential, api_version=version, **options)
    except ValueError:
        raise DefinitionError(
            f"{API_VERSION}: azure-storage-blob {azure.storage.blob.__version__} does not support version {version}; "
            "set one that it supports, such as 2019-07-07, or unset the variable"
        ) from None


class AzureContainer:
    """`Container` on Azure Blob Storage. It can be used from several threads."""

    def __init__(self, address: AzureAddress, access: Access) -> None:
        self._address = address
        self._advice = access.advice
        self._base = f"{address.prefix}/" if address.prefix else ""
        version = os.environ.get(API_VERSION) or None
        self._client = _shared_client(address.endpoint, address.container, access.credential, version, os.getpid())

    @property
    def url(self) -> str:
        return self._address.url

    def list(self, prefix: str = "") -> Iterator[Blob]:
        arguments = {"name_starts_with": self._base + prefix, "include": ["metadata"]}
        with self._failures_reported("list"):
            for page in pages(self._client.list_blob_names, **arguments):
                yield from list(self._blobs(page))

    def list_folders(self, prefix: str) -> Iterator[str]:
        with self._failures_reported("list"):
            for page in pages(self._client.walk_blobs, name_starts_with=self._base + prefix, delimiter="/"):
                for folder in page.iterfind("Blobs/BlobPrefix"):
                    yield _name(folder).removeprefix(self._base)

    def read(self, blob: Blob) -> bytes:
        with self._failures_reported(f"read {blob.name} from"):
            try:
                downloader = self._client.download_blob(
                    self._base + blob.name, etag=f'"{blob.etag}"', match_condition=MatchConditions.IfNotModified
                )
                content = downloader.readall()
            except ResourceModifiedError:
                raise self._changed(blob) from None
            except ResourceNotFoundError as error:
                if _is_container_missing(error):
                    raise
                raise deleted(blob) from None
        return verified(blob, content)

    def read_current(self, name: str) -> bytes | None:
        current = self.read_with_etag(name)
        return None if current is None else current[0]

    def read_with_etag(self, name: str) -> tuple[bytes, str] | None:
        with self._failures_reported(f"read {name} from"):
            try:
                downloader = self._client.download_blob(self._base + name)
                return downloader.readall(), _unquoted(downloader.properties.etag)
            except ResourceNotFoundError as error:
                if _is_container_missing(error):
                    raise
                return None

    def write(self, name: str, content: bytes) -> Blob:
        with self._failures_reported(f"write {name} to"):
            return self._upload(name, content, overwrite=True)

    def create(self, name: str, content: bytes) -> bool:
        with self._failures_reported(f"write {name} to"):
            try:
                self._upload(name, content, overwrite=False)
            except (ResourceExistsError, ResourceModifiedError) as error:
                if error.status_code == 412 or _code(error) == "BlobAlreadyExists":
                    return False
                raise
            return True

    def remove(self, blob: Blob) -> bool:
        with self._failures_reported(f"remove {blob.name} from"):
            try:
                self._client.delete_blob(
                    self._base + blob.name, etag=f'"{blob.etag}"', match_condition=MatchConditions.IfNotModified
                )
            except ResourceModifiedError:
                return False
            except ResourceNotFoundError as error:
                if _is_container_missing(error):
                    raise
                return False
        return True

    def replace(self, name: str, content: bytes, etag: str) -> bool:
        with self._failures_reported(f"write {name} to"):
            condition = {"etag": f'"{etag}"', "match_condition": MatchConditions.IfNotModified}
            try:
                self._upload(name, content, overwrite=True, **condition)
            except ResourceModifiedError:
                return False
            return True

    def clock(self) -> datetime:
        with self._failures_reported("list"):
            return _instant(date_of(self._client.list_blob_names)).astimezone(UTC)

    def remove_abandoned(self, prefix: str) -> tuple[str, ...]:
        """Return nothing: the service shows a blob only after it was written whole."""
        return ()

    def _upload(self, name: str, content: bytes, *, overwrite: bool, **condition: Any) -> Blob:
        md5 = content_md5(content)
        settings = ContentSettings(content_md5=bytearray(base64.b64decode(md5)))
        client = self._client.get_blob_client(self._base + name)
        properties = client.upload_blob(content, overwrite=overwrite, content_settings=settings, **condition)
        return Blob(
            name, _unquoted(properties["etag"]), len(content), properties["last_modified"].replace(microsecond=0), md5
        )

    def _changed(self, blob: Blob) -> RunError:
        """Return the error for a blob that no longer has its etag."""
        try:
            etag = self._client.get_blob_client(self._base + blob.name).get_blob_properties().etag
        except ResourceNotFoundError:
            return deleted(blob)
        return changed(blob, _unquoted(etag))

    def _blobs(self, page: Element) -> Iterator[Blob]:
        """Yield the blobs of a page of List Blobs."""
        for element in page.iterfind("Blobs/Blob"):
            properties = element.find("Properties")
            size = int(_text(properties, "Content-Length") or 0)
            if size == 0 and _is_directory_marker(element):
                continue
            yield Blob(
                name=_name(element).removeprefix(self._base),
                etag=_unquoted(_text(properties, "Etag")),
                size=size,
                last_modified=_instant(_text(properties, "Last-Modified")),
                md5=_text(properties, "Content-MD5") or None,
                archived=_text(properties, "AccessTier") == "Archive",
            )

    @contextmanager
    def _failures_reported(self, action: str) -> Iterator[None]:
        """Raise RunError, in one line, if the service fails. Its own text is left out: it may contain a signature."""
        request = f"{action} {self.url}"
        try:
            yield
        except (DecodeError, ValueError):
            raise RunError(f"cannot {request}: {GARBLED}") from None
        except AnswerError as error:
            raise RunError(f"cannot {request}: {error}") from None
        except AzureError as error:
            status = error.status_code if isinstance(error, HttpResponseError) else None
            if isinstance(error, ClientAuthenticationError):
                status = 401
            raise refusal(request, self._address, self._advice, status, _code(error)) from None


def _is_directory_marker(element: Element) -> bool:
    """Return whether an empty blob stands for a directory, as in accounts with a hierarchical namespace."""
    metadata = element.find("Metadata")
    values = {entry.tag.lower(): entry.text for entry in (() if metadata is None else metadata)}
    return (values.get("hdi_isfolder") or "").lower() == "true"


def _name(element: Element) -> str:
    """Return the name of a blob or folder. The service encodes one that XML cannot hold."""
    name = _text(element, "Name")
    return name if element.find("Name[@Encoded='true']") is None else unquote(name)


def _text(element: Element | None, tag: str) -> str:
    return "" if element is None else element.findtext(tag) or ""


@functools.lru_cache(maxsize=65_536)
def _instant(text: str) -> datetime:
    """Return the time of an HTTP date. It is cached because many blobs are written in the same second."""
    return parsedate_to_datetime(text)


def _is_container_missing(error: AzureError) -> bool:
    """Return whether the container, and not only the blob, does not exist."""
    return isinstance(error, ResourceNotFoundError) and _code(error) in CONTAINER_MISSING


def _code(error: AzureError) -> str:
    """Return the service's error code; empty if it gave none."""
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or "")


def _unquoted(etag: str) -> str:
    return etag.strip('"')
